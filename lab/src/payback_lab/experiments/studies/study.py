"""What the studies share: a list of cells, seeds in turn, what decides α, and figures that show a collapse."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from payback_lab.claims.decide import Claims
from payback_lab.experiments.arena.config import ArenaConfig, config_of
from payback_lab.experiments.arena.experiment import ArenaExperiment, refuse_method
from payback_lab.experiments.arena.figures import recent_share
from payback_lab.experiments.arena.finished import Figures, Finished
from payback_lab.experiments.arena.setting import Setting, parse_setting
from payback_lab.running.experiment import Experiment, committed_figures
from payback_lab.runs import Asked, Result, Run, Scalar

GAMMA = 0.99
"""γ of all studies but the arena's own; the arena's settings default to 0.995, so that settings here always say it."""
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
class CellStudy(Experiment):
    """Plan cells, seed 0 of all of them first; which cells there are may wait for committed runs."""

    cells: tuple[Cell, ...] = ()
    """What is run by default, in order of interest."""
    waiting: str = ""
    """What is not planned yet, and what it waits for; "" if all is planned."""

    @abstractmethod
    def name_of(self, setting: str) -> str:
        """Return a setting's name as run ids have it; a `UserError` says what is wrong with it."""

    @abstractmethod
    def config_at(self, cell: Cell, asked: Asked) -> Any:
        """Return the config of a cell; a `UserError` says why it cannot be run, or not for so many steps."""

    @abstractmethod
    def length_of(self, setting: str) -> int:
        """Return the steps of training at a setting that the plan does not have."""

    @property
    def later(self) -> str:
        """Say what waits for committed runs."""
        return self.waiting

    def schemes(self, ablation: str | None) -> tuple[str, ...]:
        """Return the methods of the plan."""
        return tuple(dict.fromkeys(cell.method for cell in self.cells))

    def plan(self, asked: Asked) -> list[Run]:
        """List seed 0 of every cell, then seed 1, and so on; named settings and methods are run at each other."""
        cells = {cell: cell.seeds for cell in self._chosen(asked)}
        return [
            Run(self.name, None, cell.setting, cell.method, seed + cell.first_seed, self.config_at(cell, asked))
            for seed, cell in asked.seed_by_seed(cells)
        ]

    def _chosen(self, asked: Asked) -> list[Cell]:
        settings = tuple(self.name_of(setting) for setting in asked.settings)
        kept = [
            cell
            for cell in self.cells
            if (not settings or cell.setting in settings) and (not asked.schemes or cell.method in asked.schemes)
        ]
        if kept and not (settings and asked.schemes):
            return kept
        there: dict[tuple[str, str], list[Cell]] = {}
        for cell in kept:
            there.setdefault((cell.setting, cell.method), []).append(cell)
        here = settings or tuple(dict.fromkeys(cell.setting for cell in self.cells))
        keys = product(here, asked.schemes or self.schemes(None))
        return [cell for key in keys for cell in there.get(key) or [Cell(*key, self.length_of(key[0]))]]


@dataclass(frozen=True, kw_only=True)
class Study(CellStudy, ArenaExperiment):
    """Describe one study in the arena's learner; see `experiment.Experiment`."""

    config: type[ArenaConfig] = ArenaConfig
    steps: int = whole_updates(2)
    """The steps of settings that the plan does not have."""

    def informed(self, summaries: Path) -> "Study":
        """Return the study with the cells that the committed runs decide."""
        return self

    def name_of(self, setting: str) -> str:
        """Return a setting's name as run ids have it."""
        return parse_setting(setting).name

    def config_at(self, cell: Cell, asked: Asked) -> ArenaConfig:
        """Return the config of a cell."""
        setting = parse_setting(cell.setting)
        asked.refuse_part_of("update", config_of(setting, None).samples)
        refuse_method(setting, cell.method)
        return config_of(setting, asked.steps or cell.steps)

    def length_of(self, setting: str) -> int:
        """Return as many updates as the plan's runs on the same task take; the study's own length for other tasks."""
        asked, samples = parse_setting(setting), config_of(parse_setting(setting), None).samples
        planned = {cell.steps for cell in self.cells if parse_setting(cell.setting).task == asked.task}
        return -(-min(planned, default=self.steps) // samples) * samples

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


def committed(summaries: Path, experiment: CellStudy) -> Finished:
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
