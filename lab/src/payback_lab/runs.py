"""A run and its result: their names, which runs are asked for, and the groups they are reported in."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from payback_lab.user_error import UserError

Scalar = float | int | str | bool | None
Cell = TypeVar("Cell", bound=Hashable)
"""What is run with several seeds."""


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


@dataclass(frozen=True)
class Asked:
    """Hold which runs are asked for; () and None stand for what the experiment plans."""

    schemes: tuple[str, ...] = ()
    seeds: int | None = None
    """How many, counted from `first_seed`."""
    settings: tuple[str, ...] = ()
    steps: int | None = None
    """A shorter training; None for the whole of it."""
    ablation: str | None = None
    first_seed: int = 0

    def seed_by_seed(self, cells: Mapping[Cell, int]) -> list[tuple[int, Cell]]:
        """List one seed of every cell after the other, so that whatever is stopped is balanced.

        `cells` has the number of seeds of each cell, unless `seeds` is given.

        >>> Asked(first_seed=5).seed_by_seed({"im": 2, "none": 1})
        [(5, 'im'), (5, 'none'), (6, 'im')]
        """
        counts = {cell: self.seeds or usual for cell, usual in cells.items()}
        most = max(counts.values(), default=0)
        return [(self.first_seed + n, cell) for n in range(most) for cell, count in counts.items() if n < count]

    def refuse_part_of(self, what: str, length: int) -> None:
        """Refuse a length of training that is no whole number of updates, or rollouts, of so many steps.

        >>> Asked(steps=5000).refuse_part_of("update", 2048)
        Traceback (most recent call last):
        payback_lab.user_error.UserError: --steps 5,000 is not a whole number of updates of 2,048 steps: give 4,096 ...
        """
        if self.steps is not None and self.steps % length:
            below = self.steps // length * length
            near = f"{below:,} or {below + length:,}" if below else f"{length:,}"
            raise UserError(
                f"--steps {self.steps:,} is not a whole number of {what}s of {length:,} steps: give {near}."
            )


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
