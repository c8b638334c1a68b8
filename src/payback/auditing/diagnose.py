"""Naming the cause of an environment's leaks: the supposition that explains all of them best.

Each cause supposes what was paid wrongly. It is scored by how much of the leak is left if that is put right, in powers
of ten and on average over the episodes: a right supposition leaves rounding errors, or the log's noise; a wrong one
leaves about as much as there was.
"""

from __future__ import annotations

import numpy as np

from payback.auditing import repairs, signs
from payback.auditing.cause import Cause, Diagnosis, because
from payback.auditing.evidence import Episode, Evidence

MOST = 4.0
"""Powers of ten beyond which nothing more is gained: the rest is rounding."""
POOLED = 200
"""Episodes of all environments that are looked at together."""
LEAST = 0.9
"""Powers of ten that a supposition must explain to be named."""


OWN = 0.5
"""Powers of ten by which an environment's own cause must explain more than that of all together."""


def diagnose_each(environments: list[list[Episode]], gamma: float, only_truncated: bool = False) -> list[Diagnosis]:
    """Return a cause for each environment: that of all of them together, unless its own explains far more."""
    everything = [e for several in environments for e in several]
    common, best = _explained(everything[:: 1 + len(everything) // POOLED], gamma, only_truncated)
    if len(environments) == 1:
        return [common]
    own = [_explained(several, gamma, only_truncated) for several in environments]
    return [mine if score > best + OWN else common for mine, score in own]


def diagnose(episodes: list[Episode], gamma: float, only_truncated: bool = False) -> Diagnosis:
    """Return the cause that explains the leaks of these episodes, all of one environment, best.

    `only_truncated` says that no terminated episode of the log leaks.

    >>> x = np.array([1.0, 1.0, 1.0])
    >>> diagnose([Episode(x, x, leak=2.71) for _ in range(3)], 0.9).cause
    <Cause.NEVER_REPAID: 'never repaid'>
    """
    return _explained(episodes, gamma, only_truncated)[0]


def _explained(episodes: list[Episode], gamma: float, only_truncated: bool) -> tuple[Diagnosis, float]:
    """Return the cause and how many powers of ten of the leaks it explains."""
    longer = [e for e in episodes if len(e.shaped) > 1]
    if not longer:
        return because(Cause.ONE_STEP_EPISODE, step=0), 0.0
    evidence = Evidence(longer, gamma)
    found = [(score(s, evidence), s) for s in (*repairs.suppositions(evidence), *signs.suppositions(evidence))]
    best, supposed = max(found, key=lambda pair: pair[0], default=(0.0, None))
    if supposed is None or best < LEAST:
        return _nothing_fits(evidence), 0.0
    cause = supposed.cause
    if cause is Cause.UNPAID_END and only_truncated:
        cause = Cause.UNSETTLED_TRUNCATION
    return because(cause, supposed.numbers, supposed.step), best


def score(supposed: repairs.Supposition, evidence: Evidence) -> float:
    """Return how many powers of ten of the leak are explained, on average; less for what was fitted to few episodes.

    Nothing is explained by what leaves more than there was in most episodes, however well it fits the others.
    """
    if np.mean(supposed.left > 1) > 0.5:
        return 0.0
    left = np.where(np.isfinite(supposed.left), supposed.left, 1.0)
    gained = np.clip(-np.log10(np.maximum(left, 10.0**-MOST)), 0, MOST)
    return float(np.average(gained, weights=evidence.weights)) - supposed.handicap


def _nothing_fits(evidence: Evidence) -> Diagnosis:
    e = evidence.episodes[0]
    owed = e.shaped[-1] - evidence.missing(e)
    return because(Cause.UNKNOWN, f"for example {owed:.4g} was owed at the last step and {e.shaped[-1]:.4g} was paid")
