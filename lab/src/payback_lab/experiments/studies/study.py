"""What the studies share: a list of cells in the arena's learner, seeds in turn, and figures that show a collapse."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from payback_lab.claims.decide import Claims
from payback_lab.experiments.arena.config import config_of
from payback_lab.experiments.arena.experiment import ArenaExperiment, refuse_method
from payback_lab.experiments.arena.figures import recent_share
from payback_lab.experiments.arena.finished import Figures, Finished
from payback_lab.experiments.arena.setting import Setting, parse_setting
from payback_lab.running.experiment import committed_figures
from payback_lab.runs import Asked, Result, Run, Scalar

GAMMA = 0.99
"""γ of all studies but the arena's own; the arena's settings default to 0.995, so that settings here always say it."""
ADV, TWO = "grm-adv-300-0.99", "two-critics-0.99"
"""The advantage-side form with the longest reach of the single-seed leads, and its rival with the same horizon."""
ADVANTAGE_SIDE = (ADV, f"{ADV}-back", TWO, f"{TWO}-back")
UPDATE = 2048
"""Steps of an update with the learner's own rollouts."""


def whole_updates(millions: float, samples: int = UPDATE) -> int:
    """Return the first whole number of updates at or beyond so many million steps.

    >>> whole_updates(2), whole_updates(2) % UPDATE
    (2000896, 0)
    """
    return -int(-millions * 1e6 // samples) * samples


@dataclass(frozen=True)
class Cell:
    """Name one cell of a study: a method at a setting, how long it is trained, how many seeds it gets."""

    setting: str
    method: str
    steps: int
    seeds: int = 3
    first_seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Study(ArenaExperiment):
    """Describe one study; see `experiment.Experiment`. `steps` is for settings that the plan does not have."""

    cells: tuple[Cell, ...] = ()
    """What is run unless told otherwise, in order of interest."""
    steps: int = whole_updates(2)
    waiting: str = ""
    """What is not planned yet, and what it waits for; "" if all is planned."""

    def informed(self, summaries: Path) -> "Study":
        """Return the study with the cells that the committed runs decide."""
        return self

    @property
    def later(self) -> str:
        """Say what waits for committed runs."""
        return self.waiting

    def schemes(self, ablation: str | None) -> tuple[str, ...]:
        """Return the methods of the plan."""
        return tuple(dict.fromkeys(cell.method for cell in self.cells))

    def plan(self, asked: Asked) -> list[Run]:
        """List seed 0 of every cell, then seed 1, and so on; named settings and methods are run at each other."""
        planned = {(cell.setting, cell.method): cell for cell in self.cells}
        chosen = self._chosen(asked, planned)
        runs = []
        for seed, (setting, method) in asked.seed_by_seed({key: self._cell(planned, key).seeds for key in chosen}):
            cell = self._cell(planned, (setting, method))
            steps, seed = asked.steps or cell.steps, seed + cell.first_seed
            parsed = parse_setting(setting)
            asked.refuse_part_of("update", config_of(parsed, None).samples)
            refuse_method(parsed, method)
            runs.append(Run(self.name, None, setting, method, seed, config_of(parsed, steps)))
        return runs

    def _cell(self, planned: Mapping[tuple[str, str], Cell], key: tuple[str, str]) -> Cell:
        return planned.get(key) or Cell(*key, self.steps)

    def _chosen(self, asked: Asked, planned: Mapping[tuple[str, str], Cell]) -> list[tuple[str, str]]:
        settings = tuple(parse_setting(setting).name for setting in asked.settings)
        if settings and asked.schemes:
            return list(product(settings, asked.schemes))
        if settings:
            kept = [key for key in planned if key[0] in settings]
            return kept or list(product(settings, self.schemes(None)))
        kept = [key for key in planned if not asked.schemes or key[1] in asked.schemes]
        return kept or list(product(dict.fromkeys(setting for setting, _ in planned), asked.schemes))

    def figures(self, result: Result, config: Mapping[str, Any]) -> dict[str, Scalar]:
        """Return the arena's figures, and the best of training beside the final agent, so that a collapse shows."""
        found = super().figures(result, config)
        return {**found, "best_training_solved": best_share(result.columns)}

    def claimed_of(self, results: Mapping[str, Result]) -> Claims | None:
        """Return what was predicted; predictions of the studies are judged on their pages."""
        return self.claimed


def best_share(columns: Mapping[str, np.ndarray]) -> float | None:
    """Return the largest share solved of any 100 successive episodes of training; None before there are 100."""
    shares = recent_share(columns["episodes"], columns["solved"])
    return None if np.isnan(shares).all() else round(float(np.nanmax(shares)), 6)


def setting_of(task: str, alpha: float, bonus: str = "views", gamma: float = GAMMA, **more: Any) -> str:
    """Name a setting of the studies.

    >>> setting_of("DoorKey-11x11", 0.02)
    'DoorKey-11x11_a0.02_g0.99_views'
    """
    return Setting(task, alpha, gamma, bonus=bonus, **more).name


def committed(summaries: Path, experiment: Study) -> Finished:
    """Sort the committed runs of a study by cell and seed; runs that were cut short are left out."""
    planned = {(cell.setting, cell.method): cell.steps for cell in experiment.cells}
    found: dict[tuple[str, str], dict[int, Figures]] = {}
    for (name, steps), figures in committed_figures(summaries, experiment).items():
        run = Run.parse(name)
        key = (run.setting or "", run.scheme)
        if planned.get(key) == steps:
            found.setdefault(key, {})[run.seed] = figures
    return found


def solving(runs: Sequence[Figures]) -> float:
    """Return how much of a task runs solve: the mean of the final agent's share and of the share over training."""
    return float(np.mean([(run["sampled_solved"] + (run["mean_training_solved"] or 0.0)) / 2 for run in runs]))
