"""The laws of repayment, on what was paid for a stream. Each function raises a `Finding` where its law is broken.

    Σ_t γ^t F'_t = 0                               in every finished episode                  (zero sum)
    Σ_{n≥t} γ^(n−t) F'_n = −Debt_t                 for every way to go on from step t         (the law)

Rounding is measured against what was lent and paid in the same episode of the same environment. The last reward of an
episode is not part of that, because it is lent and repaid at once: a settlement that loses its digits beside a large
last reward does not repay the loans.
"""

from __future__ import annotations

import numpy as np

from payback.check.finding import Finding
from payback.check.stream import Stream, episodes_of

TINY = 1e-300
"""Added to every scale, so that 0 is within rounding of 0."""


def check_zero_sum(gamma: float, epsilon: float, stream: Stream, shaped: np.ndarray, last: float = 0.0) -> None:
    """Σ_t γ^t F'_t = 0 in every finished episode of every environment.

    `last` is the share of the last reward that rounding may be measured against, too.
    """
    cut = episodes_of(stream)
    if not cut.finished.any():
        return
    paid = shaped[cut.step, cut.environment]
    lent = np.abs(stream.rewards[cut.step, cut.environment])
    lent[cut.ends[cut.finished]] *= last
    weight = np.float64(gamma) ** cut.age
    leaks = np.add.reduceat(weight * paid, cut.starts)
    scales = np.add.reduceat(weight * (np.abs(paid) + lent), cut.starts) + TINY
    bad = np.flatnonzero(~(np.abs(leaks) <= epsilon * scales) & cut.finished)
    if bad.size:
        first, end = cut.starts[bad[0]], cut.ends[bad[0]]
        what = f"an episode of {end - first + 1} steps sums to {leaks[bad[0]]:.6g}, not 0"
        owed = settlement(gamma, paid[first : end + 1])
        raise Finding("zero sum", what, stream, cut.step[end], cut.environment[end], paid[end], owed)


def check_each_step(
    gamma: float, epsilon: float, stream: Stream, shaped: np.ndarray, endings: np.ndarray | None
) -> None:
    """What is paid for ending now is what is paid for one more step and ending then.

        E_t = F'_t + γE_{t+1},   E_t = −Debt_t what is paid if the episode ends at t

    It is the law between neighbours: no discount hides what goes wrong late in a long episode.
    """
    if endings is None:
        return
    live, dones = stream.live, stream.dones
    later = np.where(dones & live, 0.0, endings[1:]) * np.where(live, gamma, 1.0)
    now = np.where(live & ~dones, np.abs(stream.rewards), 0.0)
    scale = np.abs(endings[:-1]) + np.abs(shaped) + np.abs(later) + now + stream.lent_before[:-1] + TINY
    bad = np.argwhere(~(np.abs(endings[:-1] - shaped - later) <= epsilon * scale))
    if len(bad):
        t, b = bad[0]
        what = (
            f"ending at step {t} pays {endings[t, b]:.6g}; going on pays {shaped[t, b]:.6g} and is then worth "
            f"{later[t, b]:.6g}: not the same"
        )
        raise Finding("the law", what, stream, t, b, shaped[t, b], endings[t, b] - later[t, b])


def worth(gamma: float, way: Stream, shaped: np.ndarray, last: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return Σ_n γ^n F'_n over the rest of each environment's episode, and the size that rounding is measured against.

    The rest ends with the first `done` of the way; `last` is as in `check_zero_sum`.
    """
    is_open = np.cumsum(way.dones, axis=0) - way.dones == 0
    weight = is_open * np.float64(gamma) ** np.arange(len(shaped))[:, None]
    lent = np.abs(way.rewards) * np.where(way.dones, last, 1.0)
    return (weight * shaped).sum(axis=0), (weight * (np.abs(shaped) + lent)).sum(axis=0)


def settlement(gamma: float, paid: np.ndarray) -> float:
    """Return what the last step would have had to pay: −Σ_{n<N−1} γ^(n−N+1) F'_n, infinite where float64 ends."""
    with np.errstate(over="ignore", invalid="ignore"):
        weight = np.float64(gamma) ** -np.arange(len(paid) - 1.0, 0, -1)
        return 0.0 - float(np.where(paid[:-1] == 0, 0, weight * paid[:-1]).sum())
