"""What `payback-lab run` was asked for: its options, and the command that would make the same results."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from payback_lab.runs import Asked


@dataclass(frozen=True)
class Request:
    """Make the runs of an experiment that have no record yet: `payback-lab run cliff`.

    Every run has a folder of its own below --out, written atomically. Stop the command whenever you like (Ctrl-C,
    kill): the same command goes on where it was, and the results are bitwise identical.
    """

    experiment: Annotated[Positional[str], arg(metavar="EXPERIMENT")]
    """What to run: cliff, long-cliff, doorkey, reach, delay, center, center-cliff, curiosity, arena, safe-range, depth,
    learned or hosts (`payback-lab list`)."""
    schemes: Annotated[tuple[str, ...], arg(metavar="SCHEME ...", help_behavior_hint="(default: all eight)")] = ()
    """Which reward schemes: none im pbim pbim-raw grm-1 grm-1-raw grm-10 grm-10-raw; beyond the paper also grm-D
    for any delay D, even-W, geometric-R, when and im-centred; arena and studies: pies phased adops adopes eipo hepo,
    grm-adv-D-L and two-critics-L (λ_I = L); hosts: grm-adv-D-L-lone and raw-adv-0.95."""
    seeds: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: cliffs 10, others 3 or more)")] = None
    """How many seeds, counted from --first-seed."""
    first_seed: Annotated[int, arg(metavar="K")] = 0
    """The first seed: --first-seed 3 --seeds 2 makes seeds 3 and 4."""
    settings: Annotated[tuple[str, ...], arg(metavar="SETTING ...", help_behavior_hint="(default: all)")] = ()
    """Which points of the experiment's sweep, if it has one; doorkey: a0.005-g0.99 a0.02-g0.995 a0.025-g0.995, or
    others of this form; reach, delay and center: size, α, γ and λ like s11-a0.02-g0.995-l0.95; curiosity: a bonus;
    arena and studies: task, α and γ like DoorKey-11x11_a0.02_g0.995, then _t400 for a time limit, _views or another
    bonus, _z0.2-0.5 for ζ; hosts: task, α and bonus like DoorKey-8x8_a0.02_episodic-count, then _unnormalised."""
    steps: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: as in the paper)")] = None
    """Length of training (cliffs: episodes; doorkey: steps); a small number gives a quick first picture."""
    ablation: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: none)")] = None
    """Run a documented variation instead of the paper's setting (see `payback-lab list`)."""
    out: Annotated[Path, arg(metavar="DIR")] = Path("runs")
    """The records folder."""
    engine: Literal["local", "ray"] = "local"
    """Compute in processes of this machine, or on a Ray cluster; killed runs resume there if its nodes share --out."""
    address: Annotated[str | None, arg(metavar="HOST:PORT", help_behavior_hint="(default: start one here)")] = None
    """The Ray cluster to use."""
    workers: Annotated[int | None, arg(metavar="N", help_behavior_hint="(default: one per core)")] = None
    """How many processes at a time."""
    summaries: Annotated[Path, arg(metavar="DIR")] = Path("lab/results")
    """Folder of committed summaries: what is in one is not made again, but for the cliffs."""
    again: bool = False
    """Make those runs too."""

    @property
    def asked(self) -> Asked:
        """Return which runs are asked for."""
        schemes = tuple(dict.fromkeys(self.schemes))
        return Asked(schemes, self.seeds, self.settings, self.steps, self.ablation, self.first_seed)

    @property
    def command(self) -> str:
        """Return the shortest command that makes the same results, without folder or engine."""
        from payback_lab.methods import SCHEMES  # imported here so that --help answers at once

        parts = ["payback-lab run", self.experiment]
        parts += ["--schemes", *self.schemes] if self.schemes not in ((), SCHEMES) else []
        parts += ["--seeds", str(self.seeds)] if self.seeds is not None else []
        parts += ["--first-seed", str(self.first_seed)] if self.first_seed else []
        parts += ["--settings", *self.settings] if self.settings else []
        parts += ["--steps", str(self.steps)] if self.steps is not None else []
        parts += ["--ablation", self.ablation] if self.ablation else []
        return " ".join(parts)
