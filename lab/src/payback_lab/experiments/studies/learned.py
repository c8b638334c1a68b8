"""Learned bonuses: RND, ICM, NovelD, E3B and counts of the view, raw, repaid, and on the advantage side."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from payback_lab.experiments.arena.chosen import smallest_as_good
from payback_lab.experiments.arena.config import ADVANTAGE_SIDE
from payback_lab.experiments.arena.finished import Finished
from payback_lab.experiments.doorkey.sized import ONE_SEED_FIRST
from payback_lab.experiments.studies import safe_range
from payback_lab.experiments.studies.study import Cell, Study, committed, setting_of, solving, whole_updates
from payback_lab.learners.arena.config import ARENA_VERSION

LEARNED = ("rnd-views", "e3b", "noveld", "icm", "rnd")
"""The bonuses that learn: the best of them is what `hosts` runs."""
BONUSES = ("views", *LEARNED)
TUNED = "DoorKey-8x8"
TUNING_SEED = 10
ALPHAS = (0.005, 0.02, 0.08)
TASKS = ("DoorKey-11x11", "KeyCorridorS3R3", "MultiRoom-N4-S5-NoisyTV")
TUNING_STEPS, STEPS = whole_updates(1), whole_updates(3)
PAID = ("im", "grm-30")


def better_form(finished: Finished) -> str | None:
    """Return the advantage-side form with the largest `solving` at its own α in the safe range; None before that."""
    return safe_range.best_of(finished, ADVANTAGE_SIDE)


def chosen_alpha(tuning: Finished, bonus: str, method: str) -> float | None:
    """Return the smallest α whose `solving` on DoorKey-8x8 is within 0.01 of the largest; None if one lacks."""
    runs = {alpha: tuning.get((setting_of(TUNED, alpha, bonus), method), {}).get(TUNING_SEED) for alpha in ALPHAS}
    found = {alpha: solving([run]) for alpha, run in runs.items() if run is not None}
    if len(found) < len(ALPHAS):
        return None
    return smallest_as_good(found)


class Choices(NamedTuple):
    """Hold what earlier runs have decided."""

    form: str | None
    """The advantage-side form; None before the safe range has decided it."""
    alphas: dict[tuple[str, str], float]
    """(bonus, method) → α, of the pairs that are tuned."""

    @property
    def methods(self) -> tuple[str, ...]:
        """Return the methods of the study."""
        return (*PAID, *(() if self.form is None else (self.form,)))

    @property
    def complete(self) -> bool:
        """Say whether all is decided."""
        return self.form is not None and len(self.alphas) == len(BONUSES) * len(self.methods)


def choices(summaries: Path, finished: Finished) -> Choices:
    """Return what the safe range's committed runs, and the tuning runs among `finished`, have decided."""
    form = better_form(committed(summaries, safe_range.EXPERIMENT))
    found = {(b, m): chosen_alpha(finished, b, m) for b in BONUSES for m in Choices(form, {}).methods}
    return Choices(form, {pair: alpha for pair, alpha in found.items() if alpha is not None})


def best_bonus(chosen: Choices, finished: Finished) -> str | None:
    """Return the learned bonus with the largest mean `solving`, over GRM-30, the form and the tasks, by seed 0.

    None while one of these runs is missing.
    """
    found = {}
    for bonus in LEARNED:
        cells = [(task, method) for task in TASKS for method in chosen.methods if method != "im"]
        names = [(setting_of(t, chosen.alphas.get((bonus, m), ALPHAS[0]), bonus), m) for t, m in cells]
        found[bonus] = [finished.get(name, {}).get(0) for name in names]
    runs = {bonus: [run for run in own if run is not None] for bonus, own in found.items()}
    if not chosen.complete or any(len(runs[bonus]) < len(found[bonus]) for bonus in LEARNED):
        return None
    return max(LEARNED, key=lambda bonus: solving(runs[bonus]))


class Learned(Study):
    """The study as the committed runs leave it: the form from the safe range, α from DoorKey-8x8."""

    def informed(self, summaries: Path) -> "Learned":
        """Return the tuning runs, and the cells whose α they have decided."""
        methods = choices(summaries, {}).methods
        tuning = tuple(
            Cell(setting_of(TUNED, alpha, bonus), method, TUNING_STEPS, first_seed=TUNING_SEED, seeds=1)
            for bonus in BONUSES
            for method in methods
            for alpha in ALPHAS
        )
        chosen = choices(summaries, committed(summaries, replace(self, cells=tuning)))
        study = tuple(
            Cell(setting_of(task, alpha, bonus), method, STEPS)
            for task in TASKS
            for (bonus, method), alpha in chosen.alphas.items()
        )
        cells = (*tuning, *study)
        settings = tuple(dict.fromkeys(cell.setting for cell in cells))
        return replace(self, cells=cells, settings=settings, waiting="" if chosen.complete else WAITING)


WAITING = (
    "The advantage-side form comes from seed 0 of safe-range, each α from the tuning runs: save their summaries "
    "(payback-lab report --save-summaries), then the same command goes on."
)
EXPERIMENT = Learned(
    name="learned",
    title="Learned bonuses",
    notes=(
        "Not in the paper. The arena's learner with γ = 0.99. All bonuses see the agent's own view and are brought to "
        "one causal scale before α; `rnd` is the arena's.",
        'Rules and predictions: docs/predictions.md, "Learned bonuses".',
        ONE_SEED_FIRST,
    ),
    learner_version=ARENA_VERSION,
    points=75,
    adds_up=True,
)
