"""Learned bonuses: RND, ICM, NovelD, E3B and counts of the view, raw, repaid, and on the advantage side."""

from dataclasses import replace
from pathlib import Path

from payback_lab.experiments.arena.finished import Finished
from payback_lab.experiments.doorkey.sized import ONE_SEED_FIRST
from payback_lab.experiments.studies import safe_range
from payback_lab.experiments.studies.study import (
    ADVANTAGE_SIDE,
    Cell,
    Study,
    committed,
    setting_of,
    solving,
    whole_updates,
)
from payback_lab.learners.arena.config import ARENA_VERSION

BONUSES = ("views", "rnd-views", "e3b", "noveld", "icm", "rnd")
TUNED = "DoorKey-8x8"
TUNING_SEED = 10
ALPHAS = (0.005, 0.02, 0.08)
TASKS = ("DoorKey-11x11", "KeyCorridorS3R3", "MultiRoom-N4-S5-NoisyTV")
TUNING_STEPS, STEPS = whole_updates(1), whole_updates(3)
PAID = ("im", "grm-30")


def better_form(finished: Finished) -> str | None:
    """Return the advantage-side form with the largest `solving` at its own α in the safe range; None before that."""
    found = {method: safe_range.chosen_alpha(finished, method) for method in ADVANTAGE_SIDE}
    known = {method: chosen[1] for method, chosen in found.items() if chosen is not None}
    return max(known, key=lambda method: known[method]) if len(known) == len(found) else None


def chosen_alpha(tuning: Finished, bonus: str, method: str) -> float | None:
    """Return the smallest α whose `solving` on DoorKey-8x8 is within 0.01 of the largest; None if one lacks."""
    runs = {alpha: tuning.get((setting_of(TUNED, alpha, bonus), method), {}).get(TUNING_SEED) for alpha in ALPHAS}
    found = {alpha: solving([run]) for alpha, run in runs.items() if run is not None}
    if len(found) < len(ALPHAS):
        return None
    return min(alpha for alpha, share in found.items() if share >= max(found.values()) - safe_range.ALIKE)


class Learned(Study):
    """The study as the committed runs leave it: the form from the safe range, α from DoorKey-8x8."""

    def informed(self, summaries: Path) -> "Learned":
        """Return the tuning runs, and the cells whose α they have decided."""
        form = better_form(committed(summaries, safe_range.EXPERIMENT))
        methods = (*PAID, *(() if form is None else (form,)))
        pairs = [(bonus, method) for bonus in BONUSES for method in methods]
        tuning = tuple(
            Cell(setting_of(TUNED, alpha, bonus), method, TUNING_STEPS, first_seed=TUNING_SEED, seeds=1)
            for bonus, method in pairs
            for alpha in ALPHAS
        )
        finished = committed(summaries, replace(self, cells=tuning))
        alphas = {pair: chosen_alpha(finished, *pair) for pair in pairs}
        study = tuple(
            Cell(setting_of(task, alpha, bonus), method, STEPS)
            for task in TASKS
            for (bonus, method), alpha in alphas.items()
            if alpha is not None
        )
        cells = (*tuning, *study)
        complete = form is not None and None not in alphas.values()
        settings = tuple(dict.fromkeys(cell.setting for cell in cells))
        return replace(self, cells=cells, settings=settings, waiting="" if complete else WAITING)


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
