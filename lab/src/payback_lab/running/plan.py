"""What an experiment consists of: runs to make, results to keep, claims to decide.

Each `experiments/*/experiment.py` has one object `EXPERIMENT` with the attributes of `Experiment` below. Runner,
records, report and command line know experiments through this file alone.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from payback_lab.claims.claim import Claim
from payback_lab.running.asked import Asked

Scalar = float | int | str | bool | None


@dataclass(frozen=True)
class Run:
    """Name one training run: what is trained, on which scheme, with which seed.

    >>> Run("cliff", None, None, "grm-10", 3, config=None).id
    'cliff/grm-10/seed3'
    >>> Run("cliff", "cumulative-mean", None, "grm-10", 3, config=None).id
    'cliff+cumulative-mean/grm-10/seed3'
    >>> Run("doorkey", None, "a0.02-g0.995", "grm-10", 3, config=None).id
    'doorkey/a0.02-g0.995/grm-10/seed3'
    """

    experiment: str
    """The experiment's name: "cliff", "long-cliff", "doorkey"."""
    ablation: str | None
    """None for the paper's own setting, else the name of the ablation."""
    setting: str | None
    """One point of a sweep, e.g. "a0.02-g0.995"; None where the experiment has no sweep."""
    scheme: str
    """A scheme id, see `methods`."""
    seed: int
    """The seed, from 0."""
    config: Any
    """The experiment's own frozen dataclass; scheme and seed are not in it."""

    @property
    def group(self) -> str:
        """Return what the run is reported under: the experiment and its ablation."""
        return self.experiment if self.ablation is None else f"{self.experiment}+{self.ablation}"

    @property
    def id(self) -> str:
        """Return the run's name, which is also its folder below `--out`."""
        return "/".join(part for part in (self.group, self.setting, self.scheme, f"seed{self.seed}") if part)

    @classmethod
    def parse(cls, name: str) -> "Run":
        """Read a run's id back; its config is not in it and is None.

        >>> run = Run.parse("doorkey+plain-settlement/a0.02-g0.995/grm-10/seed3")
        >>> run.experiment, run.ablation, run.setting, run.scheme, run.seed
        ('doorkey', 'plain-settlement', 'a0.02-g0.995', 'grm-10', 3)
        >>> Run.parse("cliff/none/seed0").setting is None
        True
        """
        found = re.fullmatch(r"([^/+]+)(?:\+([^/]+))?(?:/([^/]+))?/([^/]+)/seed(\d+)", name)
        if found is None:
            raise ValueError(f'"{name}" is not the id of a run: write it like cliff/grm-10/seed3.')
        experiment, ablation, setting, scheme, seed = found.groups()
        return cls(experiment, ablation, setting, scheme, int(seed), config=None)


@dataclass(frozen=True)
class Result:
    """Hold the result of one run; NumPy only, because it is stored without pickle.

    The report draws what it finds under these names and leaves out what is missing:
    columns `return` and `length` (one row per episode, while training); arrays `q` (rows, columns, actions up,
    right, down, left), the final Q table of a grid; summary `greedy_return` and `greedy_length` (ε = 0). Every
    other number in the summary becomes a column of the table by scheme.
    """

    columns: dict[str, np.ndarray]
    """Columns of one length, one row per point of the learning curve (float32 or int32)."""
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    """Small arrays of any shape, e.g. the final Q table."""
    summary: dict[str, Scalar] = field(default_factory=dict)
    """Single figures, e.g. the greedy return."""


class GroupName(NamedTuple):
    """Name runs that differ in scheme and seed alone, as the report shows them together.

    >>> GroupName.parse("doorkey+plain-settlement/a0.02-g0.995")
    GroupName(experiment='doorkey', ablation='plain-settlement', setting='a0.02-g0.995')
    >>> str(GroupName("cliff", None, None))
    'cliff'
    """

    experiment: str
    ablation: str | None
    """An ablation's name, or another label that an experiment reports some of its runs under."""
    setting: str | None

    @classmethod
    def parse(cls, name: str) -> "GroupName":
        """Read a group's name back."""
        label, _, setting = name.partition("/")
        experiment, _, ablation = label.partition("+")
        return cls(experiment, ablation or None, setting or None)

    def __str__(self) -> str:
        label = self.experiment if self.ablation is None else f"{self.experiment}+{self.ablation}"
        return label if self.setting is None else f"{label}/{self.setting}"


def by_group(ids: Sequence[str]) -> dict[str, list[str]]:
    """Group runs that differ in scheme and seed alone, the paper's own setting before the ablations.

    >>> by_group(["cliff+wide-rnd/im/seed0", "cliff/im/seed0", "cliff/none/seed0"])
    {'cliff': ['cliff/im/seed0', 'cliff/none/seed0'], 'cliff+wide-rnd': ['cliff+wide-rnd/im/seed0']}
    """
    found: dict[str, list[str]] = {}
    for name in ids:
        found.setdefault(str(group_of(Run.parse(name))), []).append(name)
    return dict(sorted(found.items(), key=lambda group: (GroupName.parse(group[0]).ablation is not None, group[0])))


def group_of(run: Run) -> GroupName:
    """Return the group that a run belongs to unless its experiment says otherwise."""
    return GroupName(run.experiment, run.ablation, run.setting)


def checkpoint_of(out: Path, run: Run) -> Path:
    """Return the path of a run's checkpoint, which is removed when the record is written.

    >>> str(checkpoint_of(Path("runs"), Run("doorkey", None, "a0.02-g0.995", "im", 3, config=None)))
    'runs/doorkey/a0.02-g0.995/im/.seed3.checkpoint.npz'
    """
    return (out / run.id).with_name(f".seed{run.seed}.checkpoint.npz")


class Experiment(Protocol):
    """Describe one experiment: constants, how to run it, how to judge it."""

    @property
    def name(self) -> str:
        """Return the name on the command line and in run ids."""
        ...

    @property
    def title(self) -> str:
        """Return the heading in the report."""
        ...

    @property
    def learner_version(self) -> int:
        """Return the number that is increased only when results would change."""
        ...

    @property
    def config(self) -> type:
        """Return the frozen dataclass of every choice, a docstring under each field."""
        ...

    @property
    def ablations(self) -> Mapping[str, Mapping[str, object]]:
        """Return, by name, the config fields that an ablation replaces."""
        ...

    @property
    def settings(self) -> tuple[str, ...]:
        """Return the points of the sweep; () if there is none."""
        ...

    @property
    def seeds(self) -> int:
        """Return how many seeds are run unless told otherwise."""
        ...

    @property
    def later(self) -> str:
        """Say what is planned only once earlier runs are committed, in one sentence; "" if nothing is."""
        ...

    def informed(self, summaries: Path) -> "Experiment":
        """Return the experiment as the committed summaries leave it, where its plan depends on earlier results."""
        ...

    def schemes(self, ablation: str | None) -> tuple[str, ...]:
        """Return the schemes that are run unless told otherwise: all eight, or those an ablation is about."""
        ...

    def refuse_scheme(self, scheme: str) -> None:
        """Raise a ValueError, one sentence, for a scheme that this experiment cannot run."""
        ...

    def prepare(self, runs: Sequence[Run]) -> None:
        """Raise a `UserError` if this machine lacks what the runs need; called before any of them is started."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """Return sentences for the report: how open choices were made, where the paper differs."""
        ...

    @property
    def paper(self) -> Mapping[str, Mapping[str, str]]:
        """Return the paper's own figures: summary key → scheme → figure as printed ({} if it gives none)."""
        ...

    def plan(self, asked: Asked) -> list[Run]:
        """List the runs that are asked for: every scheme × setting × seed."""
        ...

    def batches(self, runs: list[Run]) -> list[tuple[Run, ...]]:
        """Group runs that one process computes together; the grouping does not affect the results."""
        ...

    def execute(self, batch: tuple[Run, ...], progress: Callable[[float], None], out: Path | None) -> dict[str, Result]:
        """Train the runs of one batch; return the results by run id; `progress` is told the share done, 0 … 1.

        A long run may write `checkpoint_of(out, run)` and resume from it; `out` is None where there is no disk. The
        first call of `progress` tells what a checkpoint held, and must come before any training.
        """
        ...

    def cost(self, batch: tuple[Run, ...]) -> float:
        """Estimate the seconds a batch takes, for the ETA and to start the longest first."""
        ...

    def claims(self, results: Mapping[str, Result]) -> list[Claim]:
        """Decide the paper's sentences from the results there are, by run id."""
        ...

    def figures(self, result: Result, config: Mapping[str, Any]) -> dict[str, Scalar]:
        """Return the single figures of a result by their present definition, also for older records."""
        ...

    @property
    def adds_up(self) -> bool:
        """Return whether runs can be added to committed summaries, because claims need only single figures."""
        ...

    def sections(self, ids: Sequence[str]) -> dict[str, list[str]]:
        """Return which runs are reported together: a name each, the paper's own first, and the run ids."""
        ...

    @property
    def points(self) -> int:
        """Return to how many points a committed curve is thinned."""
        ...

    @property
    def reference(self) -> Mapping[str, tuple[str, float]]:
        """Return lines to draw into the curves: column → label and value, e.g. the optimum."""
        ...
