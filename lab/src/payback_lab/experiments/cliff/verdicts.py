"""Sentences about cliff walking that are decided each in its own way."""

import numpy as np

from payback_lab.claims.evidence import Evidence, converged, trailing_mean
from payback_lab.claims.verdicts import Decide, Decision, all_of, positive, ratio_with_interval, said
from payback_lab.environments.cliff import path_return, shortest_path
from payback_lab.methods import SCHEMES
from payback_lab.running.plan import Verdict
from payback_lab.statistics import bootstrap_interval, stratified_interval


def grid_facts(evidence: Evidence) -> Decision:
    """Compare the shortest path by breadth-first search with the one that is printed."""
    path = shortest_path(evidence.cliff)
    here = len(path) - 1, path_return(evidence.cliff, path)
    return f"{here[0]} moves, return {here[1]:.0f}", "holds" if here == (13, 88) else "does not hold"


def rise_and_fall(evidence: Evidence) -> Decision:
    """Decide whether episodes first grow longer and then shorter again, in every scheme."""
    first, peak, last = {}, {}, {}
    for scheme in SCHEMES:
        lengths = evidence.column(scheme, "length")
        smooth = trailing_mean(lengths)
        first[scheme], peak[scheme], last[scheme] = lengths[:, :20].mean(1), smooth.max(1), smooth[:, -1]
    texts = [f"{s} {first[s].mean():.0f} → {peak[s].mean():.0f} → {last[s].mean():.0f}" for s in SCHEMES]
    return "; ".join(texts), all_of(_above(peak[s], end) for s in SCHEMES for end in (first[s], last[s]))


def longer_is_better_in_training(evidence: Evidence) -> Decision:
    """Decide whether, over the schemes, final training return and final episode length go together (Spearman)."""
    strata = [
        np.stack([evidence.figure(s, "final_return"), evidence.figure(s, "final_length")], axis=1) for s in SCHEMES
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
    pairs = {s: (converged(evidence, f"{s}-raw"), converged(evidence, s)) for s in ("grm-1", "grm-10", "pbim")}

    def growth(one: str, other: str) -> tuple[float, float]:
        low, high = stratified_interval(
            [*pairs[one], *pairs[other]],
            lambda d: np.log(d[2].mean(1) / d[3].mean(1)) - np.log(d[0].mean(1) / d[1].mean(1)),
        )
        return float(low), float(high)

    here = "; ".join(f"{name} {ratio_with_interval(*pair)}" for name, pair in pairs.items())
    return here, all_of((positive(*growth("grm-1", "grm-10")), positive(*growth("grm-10", "pbim"))))


def suboptimal(*schemes: str) -> Decide:
    """Decide whether the greedy return of each scheme is below that of the shortest path."""

    def decide(evidence: Evidence) -> Decision:
        best = path_return(evidence.cliff, shortest_path(evidence.cliff))
        values = {scheme: evidence.figure(scheme, "greedy_return") for scheme in schemes}
        return said(values), all_of(_above(np.full_like(x, best), x) for x in values.values())

    return decide


def _above(one: np.ndarray, other: np.ndarray) -> Verdict:
    """Say whether one is above the other, seed by seed."""
    low, high = bootstrap_interval(one - other)
    return positive(float(low), float(high))
