"""What the curiosity runs show: figures of a run and of a cell, how two cells compare, and what was predicted.

The rules are those of docs/predictions.md, committed before the first run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy.stats import fisher_exact

from payback_lab.experiments.curiosity.experiment import FEW, PAIRED, SCHEMES
from payback_lab.experiments.doorkey.figures import first_step, stays
from payback_lab.statistics import Estimate, share_interval, stratified_interval

WINDOW = 100
"""Episodes of training that a point of the curve looks back on."""
SOLVED = 0.9
"""An agent solves the task while at least this share of the last 100 episodes reaches the goal."""


def single_figures(columns: Mapping[str, np.ndarray]) -> dict[str, float | int | None]:
    """Sum a curve up; None for what was not reached.

    `solved_step` is the first step from which on, to the end of training, at least 90 of the last 100 episodes reached
    the goal; a run with such a step solves the task. `first_solved_step` is the first at which they did.

    >>> curve = {"steps": np.array([1, 2, 3, 4]), "solved": np.array([0.95, 0.5, 0.9, 1.0])}
    >>> single_figures(curve)
    {'trained_steps': 4, 'solved_step': 3, 'first_solved_step': 1, 'final_training_solved': 1.0}
    """
    steps, solves = columns["steps"], np.nan_to_num(columns["solved"]) >= SOLVED
    last = float(columns["solved"][-1])
    return {
        "trained_steps": int(steps[-1]),
        "solved_step": first_step(steps, stays(solves)),
        "first_solved_step": first_step(steps, solves),
        "final_training_solved": None if np.isnan(last) else round(last, 6),
    }


Runs = Sequence[Mapping[str, Any]]
"""Single figures of the runs of one cell, as a summary holds them."""
Gain = Literal["better", "worse", "open"]
LEVEL = 0.05


@dataclass(frozen=True)
class Compared:
    """Hold one way of paying beside another; differences are the first minus the second."""

    share: float
    """Difference of the shares of seeds that solve the task."""
    p: float
    """Fisher's exact test of these shares."""
    steps: Estimate
    """Difference of the steps until solved."""
    length: Estimate
    """Difference of the final lengths."""

    @property
    def each(self) -> tuple[Gain, Gain, Gain]:
        """Say what is decided of share, steps and length."""
        share: Gain = "open" if self.p >= LEVEL else "better" if self.share > 0 else "worse"
        return share, _fewer(self.steps), _fewer(self.length)

    @property
    def gains(self) -> bool:
        """Say whether the first is better in at least one of the three and worse in none."""
        return "better" in self.each and "worse" not in self.each


def solved(runs: Runs) -> np.ndarray:
    """Return which seeds solve the task."""
    return np.array([run["solved_step"] is not None for run in runs])


def steps_until(runs: Runs) -> np.ndarray:
    """Return the step from which each seed solves the task; one that does not counts with all of its training."""
    return np.array(
        [run["trained_steps"] if run["solved_step"] is None else run["solved_step"] for run in runs], dtype=float
    )


def lengths(runs: Runs) -> np.ndarray:
    """Return each seed's mean final length."""
    return np.array([run["sampled_length"] for run in runs], dtype=float)


def share(runs: Runs) -> Estimate:
    """Return the share of seeds that solve the task."""
    found = solved(runs)
    return Estimate(float(found.mean()), *share_interval(int(found.sum()), len(found)))


def compare(one: Runs, other: Runs) -> Compared:
    """Hold one cell against another."""
    first, second = solved(one), solved(other)
    table = [[int(first.sum()), int((~first).sum())], [int(second.sum()), int((~second).sum())]]
    return Compared(
        share=float(first.mean() - second.mean()),
        p=float(fisher_exact(table).pvalue),  # pyright: ignore[reportAttributeAccessIssue]
        steps=gap([(steps_until(one), steps_until(other))]),
        length=gap([(lengths(one), lengths(other))]),
    )


def gap(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Estimate:
    """Return the mean difference of the pairs' means, seeds drawn anew within each cell.

    >>> gap([(np.array([1.0, 1.0]), np.array([3.0, 3.0])), (np.array([2.0]), np.array([2.0]))])
    Estimate(value=-1.0, low=-1.0, high=-1.0)
    """

    def difference(draws: list[np.ndarray]) -> np.ndarray:
        means = [draw.mean(axis=1) for draw in draws]
        return np.mean([a - b for a, b in zip(means[::2], means[1::2], strict=True)], axis=0)

    strata = [cell for pair in pairs for cell in pair]
    low, high = stratified_interval(strata, difference)
    return Estimate(float(np.mean([a.mean() - b.mean() for a, b in pairs])), float(low), float(high))


def _fewer(difference: Estimate) -> Gain:
    return "better" if difference.high < 0 else "worse" if difference.low > 0 else "open"


Cells = Mapping[tuple[str, str], Runs]
LASTING = ("episodic-count", "e3b", "ride")
"""Bonuses that do not fade while the agent learns."""


@dataclass(frozen=True)
class Prediction:
    """Hold a prediction, what was measured, and whether the two agree."""

    text: str
    here: str
    verdict: Literal["yes", "no", "not run yet"]


def predictions(cells: Cells) -> list[Prediction]:
    """Return every prediction with what came out; a cell of fewer than three seeds decides nothing."""
    cells = {cell: runs for cell, runs in cells.items() if len(runs) >= FEW}
    return [_most_solve(cells), _same_length(cells), _not_slower(cells), *_lasting(cells), _e3b_most(cells)]


def _most_solve(cells: Cells) -> Prediction:
    text = "Most seeds of every scheme of RND solve it, and no share differs from another."
    own = {scheme: cells[key] for scheme in SCHEMES if (key := ("rnd", scheme)) in cells}
    if len(own) < len(SCHEMES):
        return Prediction(text, "–", "not run yet")
    least = min(float(solved(runs).mean()) for runs in own.values())
    p = min(compare(one, other).p for one, other in combinations(own.values(), 2))
    return Prediction(text, f"smallest share {least:.2f}, smallest p {p:.2f}", _said(least > 0.5 and p >= 0.05))


def _same_length(cells: Cells) -> Prediction:
    text = "RND raw and with `grm-30` do not differ in final length."
    pair = _pair(cells, ("rnd", "grm-30"), ("rnd", "im"))
    if pair is None:
        return Prediction(text, "–", "not run yet")
    found = compare(*pair).length
    return Prediction(text, f"{found.format('+.1f')} steps", _said(found.low <= 0 <= found.high))


def _not_slower(cells: Cells) -> Prediction:
    text = "`grm-30` of RND is not slower than no bonus, and eight seeds do not decide whether it is faster."
    pair = _pair(cells, ("rnd", "grm-30"), ("rnd", "none"))
    if pair is None:
        return Prediction(text, "–", "not run yet")
    found = compare(*pair).steps
    here = f"{found.format('+.0f', per=1000)} thousand steps"
    return Prediction(text, here, _said(found.low <= 0 <= found.high))


def _lasting(cells: Cells) -> list[Prediction]:
    found = []
    for bonus in LASTING:
        text, longer = f"`{bonus}` ends with longer episodes raw than with `grm-30`.", _longer(cells, bonus)
        verdict = "not run yet" if longer is None else _said(longer > 0)
        found.append(Prediction(text, "–" if longer is None else f"{longer:+.1f} steps", verdict))
    return found


def _e3b_most(cells: Cells) -> Prediction:
    text = "The difference is largest with `e3b`."
    longer = {bonus: found for bonus in LASTING if (found := _longer(cells, bonus)) is not None}
    if len(longer) < len(LASTING):
        return Prediction(text, "–", "not run yet")
    most = max(longer, key=lambda bonus: longer[bonus])
    return Prediction(text, f"largest with `{most}`", _said(most == "e3b"))


def _longer(cells: Cells, bonus: str) -> float | None:
    """Return how much longer the final episodes are when the bonus is paid raw."""
    pair = _pair(cells, *((bonus, scheme) for scheme in PAIRED))
    return None if pair is None else float(lengths(pair[0]).mean() - lengths(pair[1]).mean())


def _pair(cells: Cells, one: tuple[str, str], other: tuple[str, str]) -> tuple[Runs, Runs] | None:
    return (cells[one], cells[other]) if one in cells and other in cells else None


def _said(holds: bool) -> Literal["yes", "no"]:
    return "yes" if holds else "no"
