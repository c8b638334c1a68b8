"""What the paper prints about cliff walking, what is measured of the runs, and rules for claims about both cliffs."""

from collections.abc import Mapping, Sequence

import numpy as np

from payback_lab.claims.claim import Verdict, combined, positive
from payback_lab.claims.evidence import Cell, Evidence, Measure, cells, of_figure
from payback_lab.claims.rules import Decision, Rule, measuring, rule
from payback_lab.claims.wording import format_cells, ratio_with_interval
from payback_lab.environments.cliff import Cliff, path_return, shortest_path
from payback_lab.methods import SCHEMES
from payback_lab.policy import kind, majority, walk
from payback_lab.runs import Result
from payback_lab.statistics import bootstrap_interval, stratified_interval

MOVES, RETURN = 13, 88
"""The shortest path."""
AT_OPTIMUM = ("none", "grm-1", "grm-1-raw")
"""The schemes that reach it consistently."""
PRINTED_CONVERGED: Mapping[str, float] = {"none": 500, "im": 4000}
"""Around which episode the paper sees these converge."""
PAPER: Mapping[str, Mapping[str, str]] = {
    "greedy_return": dict.fromkeys(AT_OPTIMUM, f"{RETURN}"),
    "greedy_length": dict.fromkeys(AT_OPTIMUM, f"{MOVES}"),
}
"""Summary key → scheme → figure as printed."""


FINAL = 0.1
"""The share of the episodes, at the end, that counts as the final level of training."""
WINDOW = 100
"""Episodes over which a return is averaged before it counts as reached."""
REACHED = 0.9
"""The share of no-IM's final training return that counts as converged."""


def cells_of(*schemes: str) -> tuple[Cell, ...]:
    """Name the cells of some schemes; the cliffs have no settings."""
    return cells([""], schemes)


def trained(run: Result) -> int:
    """Return how many episodes a run was trained for."""
    return len(run.columns["return"])


def converged(evidence: Evidence, cell: Cell) -> np.ndarray:
    """Measure the episode at which the 100-episode mean return first is at 90 % of no-IM's final level.

    A seed that never is there counts with the number of episodes.
    """
    level = REACHED * _last(evidence.curves(("", "none"), "return")).mean()
    returns = evidence.curves(cell, "return")
    there = trailing_mean(returns) >= level
    first = there.argmax(axis=1) + min(WINDOW, returns.shape[1])
    return np.where(there.any(axis=1), first, there.shape[1] + WINDOW - 1).astype(np.float64)


def first_arrival(evidence: Evidence, cell: Cell) -> np.ndarray:
    """Measure the first episode that reaches the goal; only those have a positive return."""
    arrived = evidence.curves(cell, "return") > 0
    return np.where(arrived.any(axis=1), arrived.argmax(axis=1) + 1, arrived.shape[1]).astype(np.float64)


def early_length(evidence: Evidence, cell: Cell) -> np.ndarray:
    """Measure the mean episode length over the first fifth of training."""
    lengths = evidence.curves(cell, "length")
    return lengths[:, : max(1, lengths.shape[1] // 5)].mean(axis=1)


def bonus_left(evidence: Evidence, cell: Cell) -> np.ndarray:
    """Measure F per step at the end of training; a move costs 1."""
    return _last(evidence.curves(cell, "intrinsic")).sum(1) / _last(evidence.curves(cell, "length")).sum(1)


CONVERGED = Measure("", converged, label="converged, episode", paper=lambda cell: PRINTED_CONVERGED.get(cell[1]))
FIRST_ARRIVAL = Measure("", first_arrival, label="first arrival at the goal, episode")
EARLY_LENGTH = Measure("", early_length, label="length over the first fifth of training")
BONUS_LEFT = Measure("", bonus_left, label="F per step at the end of training")
OPTIMAL = Measure("", of_figure("optimal"), label="share of seeds that end optimal")
GREEDY_RETURN = Measure("", of_figure("greedy_return"), label="greedy return")
FINAL_RETURN = Measure("", of_figure("final_return"), label="return at the end of training")
FINAL_LENGTH = Measure("", of_figure("final_length"), label="length at the end of training")


def trailing_mean(curve: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """Average each stretch of `window` episodes: (…, n) -> (…, n − window + 1).

    >>> trailing_mean(np.array([1.0, 3.0, 5.0]), window=2)
    array([2., 4.])
    """
    window = min(window, curve.shape[-1])
    sums = np.concatenate([np.zeros_like(curve[..., :1]), np.cumsum(curve, axis=-1)], axis=-1)
    return (sums[..., window:] - sums[..., :-window]) / window


def _last(curve: np.ndarray) -> np.ndarray:
    return curve[:, -max(1, int(FINAL * curve.shape[1])) :]


def shortest_path_is(grid: Cliff, moves: int, total: float) -> Rule:
    """Decide whether the shortest path, by breadth-first search, takes so many moves and returns so much."""
    path = shortest_path(grid)
    here = len(path) - 1, path_return(grid, path)
    verdict: Verdict = "holds" if here == (moves, total) else "does not hold"
    return lambda evidence: (f"{here[0]} moves, return {here[1]:.0f}", verdict)


@measuring(OPTIMAL)
@rule
def every_seed(evidence: Evidence, *schemes: str) -> Decision:
    """Decide whether the greedy policy of every seed takes a shortest path."""
    optimal = {scheme: evidence.figures(("", scheme), "optimal") for scheme in schemes}
    texts = [f"{scheme} {int(x.sum())} of {len(x)} seeds{_share(x)}" for scheme, x in optimal.items()]
    return "; ".join(texts), "holds" if all(x.all() for x in optimal.values()) else "does not hold"


@rule
def arrows(evidence: Evidence, grid: Cliff, optimal: Sequence[str], not_optimal: Sequence[str]) -> Decision:
    """Decide whether the most common actions over seeds lead along a shortest path in just these schemes."""
    shortest = len(shortest_path(grid)) - 1
    lengths = {scheme: walked(evidence, scheme) for scheme in (*optimal, *not_optimal)}
    texts = [f"{scheme} {length} moves" if length else f"{scheme} never" for scheme, length in lengths.items()]
    right = all(lengths[s] == shortest for s in optimal) and all(lengths[s] != shortest for s in not_optimal)
    return f"to the goal: {', '.join(texts)}", "holds" if right else "does not hold"


def walked(evidence: Evidence, scheme: str) -> int | None:
    """Follow the most common action of each cell; return the moves to the goal, None if it is not reached."""
    action = majority(np.stack([run.arrays["q"] for run in evidence.cells["", scheme]])).action
    places = walk(action)
    return len(places) - 1 if kind(*places[-1], *action.shape) == "goal" else None


@measuring(GREEDY_RETURN)
@rule
def suboptimal(evidence: Evidence, grid: Cliff, *schemes: str) -> Decision:
    """Decide whether the greedy return of each scheme is below that of the shortest path."""
    best, those = path_return(grid, shortest_path(grid)), cells_of(*schemes)
    values = [evidence.values(cell, GREEDY_RETURN) for cell in those]
    return format_cells(evidence, GREEDY_RETURN, those), combined(_above(np.full_like(x, best), x) for x in values)


def rise_and_fall(evidence: Evidence) -> Decision:
    """Decide whether episodes first grow longer and then shorter again, in every scheme."""
    texts, verdicts = [], []
    for scheme in SCHEMES:
        lengths = evidence.curves(("", scheme), "length")
        smooth = trailing_mean(lengths)
        first, peak, last = lengths[:, :20].mean(1), smooth.max(1), smooth[:, -1]
        texts.append(f"{scheme} {first.mean():.0f} → {peak.mean():.0f} → {last.mean():.0f}")
        verdicts += [_above(peak, first), _above(peak, last)]
    return "; ".join(texts), combined(verdicts)


def longer_is_better_in_training(evidence: Evidence) -> Decision:
    """Decide whether, over the schemes, final training return and final episode length go together (Spearman)."""
    strata = [
        np.stack([evidence.figures(("", s), "final_return"), evidence.figures(("", s), "final_length")], axis=1)
        for s in SCHEMES
    ]

    def correlation(draws: list[np.ndarray]) -> np.ndarray:
        means = np.stack([draw.mean(1) for draw in draws], axis=1)
        ranks = means.argsort(axis=1).argsort(axis=1) - (len(SCHEMES) - 1) / 2
        return (ranks[..., 0] * ranks[..., 1]).sum(1) / (ranks[0, :, 0] ** 2).sum()

    low, high = stratified_interval(strata, correlation)
    value = correlation([stratum[None] for stratum in strata])[0]
    return f"rank correlation {value:.2f} [{low:.2f}, {high:.2f}]", positive(float(low), float(high))


def matters_more_with_delay(evidence: Evidence) -> Decision:
    """Decide whether leaving out F̄ delays convergence by a larger factor for a larger D; PBIM is the largest."""
    pairs = {
        s: [evidence.values(cell, CONVERGED) for cell in cells_of(f"{s}-raw", s)] for s in ("grm-1", "grm-10", "pbim")
    }

    def growth(one: str, other: str) -> tuple[float, float]:
        low, high = stratified_interval(
            [*pairs[one], *pairs[other]],
            lambda d: np.log(d[2].mean(1) / d[3].mean(1)) - np.log(d[0].mean(1) / d[1].mean(1)),
        )
        return float(low), float(high)

    here = "; ".join(f"{name} {ratio_with_interval(*pair)}" for name, pair in pairs.items())
    return here, combined((positive(*growth("grm-1", "grm-10")), positive(*growth("grm-10", "pbim"))))


def _above(one: np.ndarray, other: np.ndarray) -> Verdict:
    """Say whether one is above the other, seed by seed."""
    low, high = bootstrap_interval(one - other)
    return positive(float(low), float(high))


def _share(x: np.ndarray) -> str:
    low, high = bootstrap_interval(x)
    return f" [{low:.0%}, {high:.0%}]"
