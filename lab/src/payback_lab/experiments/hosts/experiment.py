"""In Stable-Baselines3: GRM and the advantage side, untuned, beside no bonus and a raw bonus that is tuned.

Rules and predictions: docs/predictions.md, "In Stable-Baselines3". What it runs depends on the other studies: the
delay and the form on `safe-range`, the learned bonus on `learned`, α of the raw bonus on its own tuning runs.
"""

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from payback_lab.environments.minigrid.layouts import load_layouts, pool_path
from payback_lab.experiments.arena.chosen import smallest_as_good
from payback_lab.experiments.arena.config import ADV, TWO
from payback_lab.experiments.arena.finished import Finished
from payback_lab.experiments.curiosity.experiment import SB3PPO, needing_sb3
from payback_lab.experiments.doorkey.sized import ONE_SEED_FIRST
from payback_lab.experiments.hosts.setting import (
    BONUSES,
    COUNTS,
    GAMMA,
    MOUNTAIN_CAR,
    RAW_ADVANTAGE,
    RAW_ADVANTAGE_BACK,
    Setting,
    form_of,
    parse_setting,
)
from payback_lab.experiments.studies import depth, learned, safe_range
from payback_lab.experiments.studies.study import Cell, CellStudy, committed, whole_updates
from payback_lab.runs import Asked, Result, Run
from payback_lab.user_error import UserError

TASKS: Mapping[str, float] = {"DoorKey-8x8": 0.4, "KeyCorridorS3R3": 1.0, MOUNTAIN_CAR: 0.3}
"""Task → millions of steps."""
MIDDLE: Mapping[str, float] = {MOUNTAIN_CAR: 0.4}
"""The α of GRM and of the advantage side, where it is not 0.02."""
TIMES = (0.25, 1.0, 4.0)
"""What the raw bonus is tuned over, times the middle α."""
TUNING_SEED = 10
SEEDS, FEW = 5, 3
"""Seeds of every cell; of those that ask what the normalisation of advantages does."""
NORMALISED = "DoorKey-8x8"
"""The task on which that is asked, with `EpisodicCount()`; also that of every ready bonus."""
FORMS: Mapping[str, str] = {
    ADV: "grm-adv-30-0.95-lone",
    f"{ADV}-back": "grm-adv-30-0.95-lone-back",
    TWO: RAW_ADVANTAGE,
    f"{TWO}-back": RAW_ADVANTAGE_BACK,
}
"""The form that "Learned bonuses" takes → what the library's documentation has for it in Stable-Baselines3, which has
no second critic."""


@dataclass(frozen=True)
class HostsConfig(SB3PPO):
    """Hold every choice of a run but its method and seed."""

    bonus: str = COUNTS
    """Which bonus, with the library's defaults but for α."""
    environments: int = 16
    """Environments side by side."""
    task: str = "DoorKey-8x8"
    """The task."""
    alpha: float = 0.02
    """The coefficient of the bonus."""
    normalise: bool = True
    """Whether Stable-Baselines3 normalises advantages, its default."""


class Choices(NamedTuple):
    """Hold what earlier runs have decided; None and absent while they have not."""

    grm: str | None = None
    """GRM with the delay that `depth` takes."""
    form: str | None = None
    """The advantage-side form, as it is run here."""
    bonus: str | None = None
    """The learned bonus."""
    alphas: Mapping[tuple[str, str], float] = {}
    """(task, bonus) → α of the raw bonus."""

    @property
    def bonuses(self) -> tuple[str, ...]:
        """Return the bonuses that are known."""
        return (COUNTS, *(() if self.bonus is None else (self.bonus,)))

    @property
    def waits_for(self) -> tuple[str, ...]:
        """Say what is open, and which runs decide it."""
        untuned = [(t, b) for t in TASKS for b in self.bonuses if (t, b) not in self.alphas]
        open_ = {
            "GRM's delay (seed 0 of safe-range)": self.grm is None,
            "the advantage-side form (seed 0 of safe-range)": self.form is None,
            "the learned bonus (seed 0 of learned)": self.bonus is None,
            f"α of the raw bonus ({len(untuned)} of its cells wait for their three tuning runs)": bool(untuned),
        }
        return tuple(what for what, waits in open_.items() if waits)


def middle(task: str) -> float:
    """Return the α that GRM and the advantage side have on a task."""
    return MIDDLE.get(task, safe_range.MIDDLE)


def alphas(task: str) -> tuple[float, ...]:
    """Return the three α that the raw bonus is tuned over.

    >>> alphas("MountainCar"), alphas("DoorKey-8x8")
    ((0.1, 0.4, 1.6), (0.005, 0.02, 0.08))
    """
    return tuple(times * middle(task) for times in TIMES)


def length_of(task: str) -> int:
    """Return the steps of training: the first whole number of rollouts at or beyond those of docs/predictions.md."""
    return whole_updates(TASKS.get(task, TASKS[NORMALISED]), HostsConfig().samples)


def cell_of(
    task: str, method: str, bonus: str = COUNTS, alpha: float | None = None, *, normalised: bool = True
) -> Cell:
    """Return a cell with its five seeds; the middle α if none is given."""
    setting = Setting(task, middle(task) if alpha is None else alpha, bonus, normalised)
    return Cell(setting.name, method, length_of(task), SEEDS)


def tuning_cells(bonuses: Sequence[str]) -> list[Cell]:
    """Return the runs that choose α of the raw bonus."""
    cells = [cell_of(task, "im", bonus, alpha) for task in TASKS for bonus in bonuses for alpha in alphas(task)]
    return [replace(cell, seeds=1, first_seed=TUNING_SEED) for cell in cells]


def study_cells(chosen: Choices) -> list[Cell]:
    """Return the cells of the comparison: no bonus once, everything else with both bonuses."""
    untuned = [method for method in (chosen.grm, chosen.form) if method is not None]
    cells = []
    for task in TASKS:
        cells.append(cell_of(task, "none"))
        for bonus in chosen.bonuses:
            raw = chosen.alphas.get((task, bonus))
            cells += [] if raw is None else [cell_of(task, "im", bonus, raw)]
            cells += [cell_of(task, method, bonus) for method in untuned]
    return cells


def normalisation_cells(chosen: Choices) -> list[Cell]:
    """Return the cells that ask what the normalisation of advantages does to α."""
    methods = ("im", *(() if chosen.form is None else (chosen.form,)))
    cells = [
        cell_of(NORMALISED, method, alpha=alpha, normalised=normalised)
        for normalised in (True, False)
        for method in methods
        for alpha in alphas(NORMALISED)
    ]
    return [replace(cell, seeds=FEW) for cell in cells]


def ready_cells(chosen: Choices) -> list[Cell]:
    """Return GRM with every ready bonus of the library at its default α."""
    if chosen.grm is None:
        return []
    return [replace(cell_of(NORMALISED, chosen.grm, bonus), seeds=FEW) for bonus in BONUSES]


def cells_of(chosen: Choices) -> tuple[Cell, ...]:
    """Return all cells that are decided; one that is in two parts has the seeds of the larger."""
    found: dict[tuple[str, str, int], Cell] = {}
    parts = (tuning_cells(chosen.bonuses), study_cells(chosen), ready_cells(chosen), normalisation_cells(chosen))
    for cell in (cell for part in parts for cell in part):
        key = (cell.setting, cell.method, cell.first_seed)
        found[key] = max(cell, found.get(key, cell), key=lambda one: one.seeds)
    return tuple(found.values())


PLANNED = sum(
    cell.seeds
    for cell in cells_of(
        Choices(
            "grm-30", FORMS[ADV], "rnd", {(task, bonus): middle(task) for task in TASKS for bonus in (COUNTS, "rnd")}
        )
    )
)
"""The runs of the whole study, whatever is chosen."""


def chosen_alpha(finished: Finished, task: str, bonus: str) -> float | None:
    """Return α of the raw bonus by the arena's rule: the share solved over training; None while a run is missing."""
    runs = {a: finished.get((Setting(task, a, bonus).name, "im"), {}).get(TUNING_SEED) for a in alphas(task)}
    shares = {alpha: float(run["mean_training_solved"] or 0.0) for alpha, run in runs.items() if run is not None}
    return smallest_as_good(shares) if len(shares) == len(runs) else None


def choices(summaries: Path) -> Choices:
    """Return what the committed runs decide."""
    safe = committed(summaries, safe_range.EXPERIMENT)
    bonuses = learned.EXPERIMENT.informed(summaries)
    finished = committed(summaries, bonuses)
    chosen = learned.choices(summaries, finished)
    found = Choices(
        grm=depth.better_delay(safe),
        form=None if chosen.form is None else FORMS[chosen.form],
        bonus=learned.best_bonus(chosen, finished),
    )
    tuned = committed(summaries, replace(EXPERIMENT, cells=tuple(tuning_cells(found.bonuses))))
    own = {(task, bonus): chosen_alpha(tuned, task, bonus) for task in TASKS for bonus in found.bonuses}
    return found._replace(alphas={cell: alpha for cell, alpha in own.items() if alpha is not None})


NOTES = (
    "Not in the paper. Stable-Baselines3's PPO with its MLP policy: 16 environments × 128 steps, otherwise the numbers "
    "of the curiosity experiment. MiniGrid's tasks are stepped on the lab's engine, in lock-step with the package: its "
    "7×7 view as one vector of 147 numbers, its time limit, its reward 1 − 0.9·steps/limit at the goal. MountainCar is "
    "Gymnasium's, 200 steps, with reward 1 at the flag and 0 before it. An episode that a time limit ends counts as "
    "ended for every method.",
    "Bonuses are the library's with its defaults but for α. On MountainCar, visits are counted in 20 × 20 bins of "
    "position and velocity, also where a learned bonus divides by them; the learned ones see the observation itself.",
    "α of GRM and of the advantage side is 0.02 on MiniGrid and 0.4 on MountainCar, untuned. The raw bonus is tuned on "
    "each task with each bonus over a quarter of it, itself and four times it: seed 10, whole length.",
    "Stable-Baselines3 has no second critic, so the advantage side has one critic here and λ_I = 0.95, as the "
    "library's documentation advises.",
    'Rules and predictions: docs/predictions.md, "In Stable-Baselines3".',
    ONE_SEED_FIRST,
)
SECONDS_PER_STEP = 1 / 5000
"""On one core that is not shared."""


@dataclass(frozen=True, kw_only=True)
class Hosts(CellStudy):
    """Describe the experiment; see `experiment.Experiment`."""

    config: type[HostsConfig] = HostsConfig

    def informed(self, summaries: Path) -> "Hosts":
        """Return the study with the cells that the committed runs decide."""
        chosen = choices(summaries)
        cells = cells_of(chosen)
        settings = tuple(dict.fromkeys(cell.setting for cell in cells))
        return replace(self, cells=cells, settings=settings, waiting=_waiting(chosen))

    def name_of(self, setting: str) -> str:
        """Return a setting's name as run ids have it."""
        return parse_setting(setting).name

    def length_of(self, setting: str) -> int:
        """Return the steps of training on the setting's task."""
        return length_of(parse_setting(setting).task)

    def refuse_scheme(self, scheme: str) -> None:
        """Refuse a method that cannot be run here."""
        form_of(scheme)

    def config_at(self, cell: Cell, asked: Asked) -> HostsConfig:
        """Return the config of a cell."""
        asked.refuse_part_of("rollout", HostsConfig().samples)
        setting = parse_setting(cell.setting)
        return HostsConfig(
            task=setting.task,
            alpha=setting.alpha,
            gamma=GAMMA,
            bonus=setting.bonus,
            normalise=setting.normalised,
            total_steps=asked.steps or cell.steps,
        )

    def prepare(self, runs: Sequence[Run]) -> None:
        """Refuse what cannot be run: a package that is missing, layouts of another version of MiniGrid."""
        for package in ("stable_baselines3", "minigrid"):
            if importlib.util.find_spec(package) is None:
                raise UserError(f"hosts needs {package}, which is not installed: pip install 'payback-lab[sb3]'.")
        for task in dict.fromkeys(run.config.task for run in runs):
            if task != MOUNTAIN_CAR and pool_path(task).exists():  # otherwise the version there is will draw them
                load_layouts(task)

    def execute(
        self, batch: tuple[Run, ...], progress: Callable[[float], None], out: Path | None = None
    ) -> dict[str, Result]:
        """Train one run; some minutes are not worth a checkpoint."""
        with needing_sb3(self.name):
            from payback_lab.experiments.hosts.training import train
        (run,) = batch
        return {run.id: train(run, progress)}

    def cost(self, batch: tuple[Run, ...]) -> float:
        """Estimate the seconds on one core."""
        return sum(30 + run.config.total_steps * SECONDS_PER_STEP for run in batch)


def _waiting(chosen: Choices) -> str:
    """Say in one sentence what is not planned yet; "" if all is."""
    if not chosen.waits_for:
        return ""
    made = sum(cell.seeds for cell in cells_of(chosen))
    return (
        f"{made} of {PLANNED} runs are planned; the same command goes on once the summaries that decide the rest are "
        f"saved (payback-lab report --save-summaries): {', '.join(chosen.waits_for)}."
    )


EXPERIMENT = Hosts(
    name="hosts",
    title="In Stable-Baselines3",
    cells=cells_of(Choices()),
    settings=tuple(dict.fromkeys(cell.setting for cell in cells_of(Choices()))),
    seeds=SEEDS,
    notes=NOTES,
    learner_version=1,
    points=75,
    adds_up=True,
)
