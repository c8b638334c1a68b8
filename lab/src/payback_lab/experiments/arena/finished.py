"""The finished runs of the arena, by cell and seed: what choices, measures and pages are computed from."""

from collections.abc import Iterable, Mapping
from typing import Any

from payback_lab.experiments.arena.config import config_of
from payback_lab.experiments.arena.setting import parse_setting
from payback_lab.runs import Run

Figures = Mapping[str, Any]
"""The single figures of one run, as a summary holds them."""
Finished = Mapping[tuple[str, str], Mapping[int, Figures]]
"""(setting, method) → seed → single figures; a cell of which nothing is finished is not there."""


def finished_runs(runs: Iterable[Figures]) -> Finished:
    """Sort the runs of a summary; one that was cut short is not finished.

    >>> run = {"id": "arena/DoorKey-11x11_a0.02_g0.995/im/seed0", "trained_steps": 5_001_216}
    >>> list(finished_runs([run])), list(finished_runs([{**run, "trained_steps": 2048}]))
    ([('DoorKey-11x11_a0.02_g0.995', 'im')], [])
    """
    found: dict[tuple[str, str], dict[int, Figures]] = {}
    for figures in runs:
        run = Run.parse(figures["id"])
        setting = run.setting or ""
        if figures["trained_steps"] == config_of(parse_setting(setting), None).total_steps:
            found.setdefault((setting, run.scheme), {})[run.seed] = figures
    return found


SEEDS = 3
"""Seeds of every cell of the study: 0, 1 and 2."""


def seeds_of(finished: Finished, setting: str, method: str) -> list[Figures]:
    """Return the runs of a cell in the order of their seeds; [] if there are none."""
    runs = finished.get((setting, method), {})
    return [runs[seed] for seed in sorted(runs)]


def first_seeds(finished: Finished, setting: str, method: str) -> list[Figures]:
    """Return the runs of a cell with the seeds that every cell has, by which choices and the sweep are judged."""
    runs = finished.get((setting, method), {})
    return [runs[seed] for seed in sorted(runs) if seed < SEEDS]
