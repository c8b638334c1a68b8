"""How DoorKey runs are made, and grids of any size with any λ: what `reach`, `delay` and `center` share.

A setting names all that varies: `s11-a0.02-g0.995-l0.95` is an 11×11 grid with α = 0.02, γ = 0.995 and λ = 0.95. The
learner and everything else are those of the DoorKey experiment.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from payback_lab.experiments.doorkey.config import DoorKeyConfig, name_of, numbers_of, refuse_alpha_or_gamma
from payback_lab.experiments.doorkey.figures import single_figures
from payback_lab.learners.ppo.config import LEARNER_VERSION
from payback_lab.running.experiment import Experiment
from payback_lab.runs import Asked, Result, Run, Scalar, by_group
from payback_lab.user_error import UserError


@dataclass(frozen=True, kw_only=True)
class DoorKeyRuns(Experiment):
    """Describe an experiment on DoorKey but for which runs are planned."""

    config: type[DoorKeyConfig] = DoorKeyConfig
    learner_version: int = LEARNER_VERSION
    points: int = 300
    adds_up: bool = True

    def execute(
        self, batch: tuple[Run, ...], progress: Callable[[float], None], out: Path | None = None
    ) -> dict[str, Result]:
        """Train one run, from its checkpoint if there is one."""
        from payback_lab.experiments.doorkey.training import train

        (run,) = batch
        return {run.id: train(run, self.learner_version, progress, out)}

    def cost(self, batch: tuple[Run, ...]) -> float:
        """Estimate the seconds on one core: compiling, training, and watching the trained agent."""
        return sum(30 + run.config.total_steps / 38_000 for run in batch)

    def figures(self, result: Result, config: Mapping[str, Any]) -> dict[str, Scalar]:
        """Return the figures, those of the curve computed from it again."""
        return {**result.summary, **single_figures(result.columns, config["size"])}


SMALLEST = 5
"""Side of the smallest DoorKey grid: two rooms and a wall between them."""
THREE_MILLION = 3_000_320
"""Steps of training unless an experiment says otherwise: the first whole number of updates beyond 3 million."""
ONE_SEED_FIRST = (
    "Each seed of every cell is trained before the next seed, so an unfinished study is balanced. Runs whose summary "
    "is committed are skipped."
)


@dataclass(frozen=True)
class PlannedCell:
    """Name one cell of the plan: a scheme at a setting, and how many seeds it has by default."""

    setting: str
    scheme: str
    seeds: int = 3


@dataclass(frozen=True, kw_only=True)
class SizedDoorKey(DoorKeyRuns):
    """Describe one experiment on DoorKey grids of several sizes; see `experiment.Experiment`.

    `seeds` is how many a cell has that the plan does not name.
    """

    cells: tuple[PlannedCell, ...]
    """What is run by default, in order of interest."""
    steps: Callable[[int], int] = lambda size: THREE_MILLION
    """Size of the grid → steps of training."""

    def __post_init__(self) -> None:
        """Take the settings from the cells."""
        object.__setattr__(self, "settings", tuple(dict.fromkeys(cell.setting for cell in self.cells)))

    def schemes(self, ablation: str | None) -> tuple[str, ...]:
        """Return the schemes of the plan."""
        return tuple(dict.fromkeys(cell.scheme for cell in self.cells))

    def plan(self, asked: Asked) -> list[Run]:
        """List seed 0 of every cell, then seed 1, and so on. Named schemes and settings are run at each other."""
        asked.refuse_part_of("update", self.config().samples)
        planned = {(cell.setting, cell.scheme): cell.seeds for cell in self.cells}
        cells = {cell: planned.get(cell, self.seeds) for cell in self._chosen(asked)}
        return [
            Run(self.name, asked.ablation, setting, scheme, seed, self._config(setting, asked.steps, asked.ablation))
            for seed, (setting, scheme) in asked.seed_by_seed(cells)
        ]

    def _chosen(self, asked: Asked) -> list[tuple[str, str]]:
        """Pair the named schemes with the named settings; where one kind is not named, as the plan pairs them.

        A scheme or a setting that the plan does not have is paired with all that it has of the other kind.
        """
        names = [named_setting(setting) for setting in asked.settings or self.settings]
        if asked.schemes and asked.settings:
            return list(product(names, asked.schemes))
        schemes = asked.schemes or self.schemes(None)
        kept = [(c.setting, c.scheme) for c in self.cells if c.setting in names and c.scheme in schemes]
        new_settings = [name for name in names if name not in self.settings]
        new_schemes = [scheme for scheme in schemes if scheme not in self.schemes(None)]
        return [*kept, *product(new_settings, schemes), *product(names, new_schemes)]

    def _config(self, setting: str, steps: int | None, ablation: str | None) -> DoorKeyConfig:
        size, alpha, gamma, lam = parse_sized_setting(setting)
        config = self.config(gamma=gamma, alpha=alpha, shaping_gamma=gamma, size=size, gae_lambda=lam)
        changes = self.ablations[ablation] if ablation else {}
        return replace(config, total_steps=self.steps(size) if steps is None else steps, **changes)

    def sections(self, ids: Sequence[str]) -> dict[str, list[str]]:
        """Report setting by setting, the smallest grid first; ablations after all of them."""

        def place(section: tuple[str, list[str]]) -> tuple[str, tuple[int, float, float, float]]:
            run = Run.parse(section[1][0])
            return run.ablation or "", parse_sized_setting(run.setting or "")

        return dict(sorted(by_group(ids).items(), key=place))


def parse_sized_setting(setting: str) -> tuple[int, float, float, float]:
    """Read size, α, γ and λ from the name of a setting; a `UserError` says what is wrong with it.

    >>> parse_sized_setting("s11-a0.02-g0.995-l0.95")
    (11, 0.02, 0.995, 0.95)
    """
    found = numbers_of(setting)
    if list(found) != ["s", "a", "g", "l"] or "." in found["s"]:
        raise UserError(f'There is no setting "{setting}": write size, α, γ and λ like s11-a0.02-g0.995-l0.95.')
    size, alpha, gamma, lam = int(found["s"]), *(float(found[letter]) for letter in "agl")
    if size < SMALLEST:
        raise UserError(f"The size is {size} in {setting}: two rooms and a wall between them need at least {SMALLEST}.")
    refuse_alpha_or_gamma(alpha, gamma, setting)
    if not 0 <= lam <= 1:
        raise UserError(f"λ is {lam:g} in {setting}: it must be between 0 and 1.")
    return size, alpha, gamma, lam


def named_setting(setting: str) -> str:
    """Write a setting as run ids have it.

    >>> named_setting("s11-a0.020-g0.9950-l1.0")
    's11-a0.02-g0.995-l1'
    """
    size, alpha, gamma, lam = parse_sized_setting(setting)
    return name_of({"s": size, "a": alpha, "g": gamma, "l": lam})
