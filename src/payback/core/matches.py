"""Matchings: when each loan is repaid. The guarantee rests on this code; `grm` and `pbim` build on it.

A reward F_i is paid at step i and taken back later in the same episode, with interest 1/γ per step:

    F'_t = F_t − Σ_{i≤t} γ^(i−t) F_i m(t,i)                                          (drawer)

Each function is one choice of m that repays every loan exactly once (Condition1), never before it is lent (Condition2),
whenever the episode will end. The last step repays the whole debt and its own reward: Σ_t γ^t F'_t = 0 in each episode.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from payback.core.center import read_center
from payback.core.errors import InterestWarning
from payback.core.repay_at_ages import RepayAtAges
from payback.core.repay_at_once import RepayAtOnce, WhenState
from payback.core.repay_geometric import RepayGeometric
from payback.core.transform import Match, RewardTransform, altered, chain
from payback.core.validate import read_count, read_gamma, refuse_too_many


def match_at_end(gamma: float) -> Match:
    """Pay every reward as it comes and take all of them back, with interest, at the episode's last step.

        F'_t = F_t for t < N−1,   F'_{N−1} = −Σ_{n=0}^{N−2} γ^(n+1−N) F_n            (naive_conversion, pbimmatching)

    The settlement grows as γ⁻ᴺ. `init` warns if long episodes would overflow the dtype; eager NumPy and Torch raise.

    >>> import numpy as np, payback
    >>> match, F, done = match_at_end(0.5), np.array([[1.0, 2.0, 9.0]]).T, np.array([[0, 0, 1]]).T
    >>> payback.shape_rollout(match, match.init(F[0]), F, done)[1].ravel()
    array([ 1.,  2., -8.])
    """
    return RepayAtOnce(read_gamma(gamma))


def match_when(gamma: float) -> Match:
    """Take back all earlier rewards at the next flagged step (`settle=True`), or at the episode's last.

        F'_t = F_t − [t is flagged or last] · Σ_{s≤i<t} γ^(i−t) F_i,   s the last flagged step      (drawer)

    The flagged step's own reward is a new loan. The flag must not look ahead: "picked up a key", "opened a door".

    >>> import numpy as np, payback
    >>> match, F, done = match_when(0.5), np.array([[1.0, 3.0, 9.0]]).T, np.array([[0, 0, 1]]).T
    >>> payback.shape_rollout(match, match.init(F[0]), F, done, settle=np.array([[0, 1, 0]]).T)[1].ravel()
    array([ 1.,  1., -6.])
    """
    return _When(read_gamma(gamma))


def match_after(gamma: float, delay: int) -> Match:
    """Take each reward back `delay` steps after it was paid, or at the episode's last step if that is sooner.

        F'_t = F_t − γ⁻ᴰ F_{t−D} [t ≥ D]            for t < N−1
        F'_{N−1} = −Σ_{k=1}^{min(D,N−1)} γ⁻ᵏ F_{N−1−k}                               (hyperparam_tuning)

    Departs from the paper as printed: the last step's case comes first and its sum stops at the episode's start, so
    that short episodes (N ≤ D) are right. D = 0 pays nothing; D ≥ N−1 is `match_at_end`.

    >>> import numpy as np, payback
    >>> match, F, done = match_after(0.5, delay=1), np.array([[1.0, 3.0, 9.0]]).T, np.array([[0, 0, 1]]).T
    >>> payback.shape_rollout(match, match.init(F[0]), F, done)[1].ravel()
    array([ 1.,  1., -6.])
    """
    delay = read_count("delay", delay, least=0)
    gamma = read_gamma(gamma)
    with refuse_too_many("match_after", "delay", delay):
        return _After(gamma, delay)


def match_evenly(gamma: float, window: int) -> Match:
    """Take each reward back in `window` equal shares over the next steps, and the rest at the last step.

        m(t,i) = 1/W for 1 ≤ t−i ≤ W,   m(N−1,i) = 1 − (N−2−i)/W for N−1−i ≤ W                     (drawer)

    `match_evenly(gamma, 1)` is `match_after(gamma, 1)`.

    >>> import numpy as np, payback
    >>> match, F, done = match_evenly(1.0, 2), np.array([[4.0, 0.0, 0.0, 6.0, 0.0]]).T, np.array([[0, 0, 0, 0, 1]]).T
    >>> payback.shape_rollout(match, match.init(F[0]), F, done)[1].ravel()
    array([ 4., -2., -2.,  6., -6.])
    """
    window, gamma = read_count("window", window, least=1), read_gamma(gamma)
    with refuse_too_many("match_evenly", "window", window):
        return _Evenly(gamma, window)


def match_from_ages(gamma: float, shares: Sequence[float] | np.ndarray) -> Match:
    """Take the share `shares[k]` of each reward back k + 1 steps after it was paid, and the rest at the last step.

        m(t,i) = shares[t−i−1] for t < N−1,   m(N−1,i) = 1 − Σ_{t<N−1} m(t,i)                          (drawer)

    The shares must add up to 1. `match_after` and `match_evenly` are two choices of them.

    >>> import numpy as np, payback
    >>> match, F, done = match_from_ages(1.0, [0.75, 0.25]), np.array([[4.0, 0.0, 8.0]]).T, np.array([[0, 0, 1]]).T
    >>> payback.shape_rollout(match, match.init(F[0]), F, done)[1].ravel()
    array([ 4., -3., -1.])
    """
    gamma, parts = read_gamma(gamma), np.asarray(shares, dtype=np.float64)
    if parts.ndim != 1 or not len(parts) or not np.isfinite(parts).all():
        raise ValueError(f"shares must be a list of finite numbers, one for each age from 1 on, got {shares!r}")
    if abs(parts.sum() - 1) > 1e-9:
        raise ValueError(f"shares add up to {parts.sum():g}, not 1 as exact repayment needs; divide them by their sum")
    last = int(np.flatnonzero(parts)[-1]) + 1
    return _FromAges(gamma, tuple(parts[:last].tolist()))


def match_geometric(gamma: float, rate: float) -> Match:
    """Take back the share 1 − λ of the debt at each step, and the rest at the episode's last.

        m(t,i) = (1−λ) λ^(k−1) at age k = t−i ≥ 1,   m(N−1,i) = λ^(k−1)                             (drawer)
        P ← (λP + F_t)/γ,   paying (1−λ)P                                          λ = `rate`

    Needs one number per environment. Beyond λ < γ the debt grows as (λ/γ)^t. λ = 0 is `match_after(gamma, 1)`.

    >>> import numpy as np, payback
    >>> match, F, done = match_geometric(1.0, 0.5), np.array([[8.0, 0.0, 0.0, 0.0]]).T, np.array([[0, 0, 0, 1]]).T
    >>> payback.shape_rollout(match, match.init(F[0]), F, done)[1].ravel()
    array([ 8., -4., -2., -2.])
    """
    gamma = read_gamma(gamma)
    if not isinstance(rate, (int, float, np.floating)) or isinstance(rate, bool) or not 0 <= rate < 1:
        raise ValueError(f"rate must lie in [0, 1), got {rate!r}; 0 repays all at the next step")
    if rate >= gamma:
        words = f"with rate {float(rate)} ≥ gamma {gamma} the debt grows as (rate/gamma)^t over an episode"
        warnings.warn(f"match_geometric: {words}; choose a rate below gamma", InterestWarning, stacklevel=2)
    return RepayGeometric(gamma, float(rate))


def pbim(gamma: float, *, center: bool | RewardTransform = True) -> Match:
    """Pay F_t − F̄ as it comes and take it all back at the episode's last step (PBIM).

        F'_t = F_t − F̄ for t < N−1,   F'_{N−1} = −Σ_{n=0}^{N−2} γ^(n+1−N) F'_n         (conversion)

    `center=False` is the raw form (naive_conversion). `center` may also be a transform, such as `center(horizon)`.

    >>> import numpy as np, payback
    >>> match, F, done = pbim(0.5, center=False), np.array([[1.0, 2.0, 9.0]]).T, np.array([[0, 0, 1]]).T
    >>> payback.shape_rollout(match, match.init(F[0]), F, done)[1].ravel()
    array([ 1.,  2., -8.])
    """
    match = match_at_end(gamma)
    return _centered(center, match, f"pbim(gamma={match.gamma!r}")


def grm(gamma: float, delay: int, *, center: bool | RewardTransform = True) -> Match:
    """Pay F_t − F̄ as it comes and take it back `delay` steps later, or at the last step (GRM with delay D).

        F'_t = G_t − γ⁻ᴰ G_{t−D},   G_t = F_t − F̄_t with F̄_t frozen at receipt          (hyperparam_tuning)

    The paper gives no equation for the centred form; this one repays what was actually paid.

    >>> import numpy as np, payback
    >>> match, F, done = grm(0.5, delay=1, center=False), np.array([[1.0, 3.0, 9.0]]).T, np.array([[0, 0, 1]]).T
    >>> payback.shape_rollout(match, match.init(F[0]), F, done)[1].ravel()
    array([ 1.,  1., -6.])
    """
    match = match_after(gamma, delay)  # validates γ and the delay
    return _centered(center, match, f"grm(gamma={match.gamma!r}, delay={int(delay)}")


def _centered(center: bool | RewardTransform, match: Match, call: str) -> Match:
    before = read_center(center)
    shaping = match if before is None else chain(before, match)
    assert isinstance(shaping, Match)
    shown = "" if center is True else f", center={center!r}"
    return altered(shaping, _call=f"{call}{shown})")


@dataclass(frozen=True, repr=False)
class _When(RepayAtOnce):
    _name = "match_when"
    _kind = WhenState


@dataclass(frozen=True, repr=False)
class _After(RepayAtAges):
    delay: int
    _name = "match_after"

    @property
    def _shares(self) -> np.ndarray:
        shares = np.zeros(self.delay)
        shares[self.delay - 1 :] = 1
        return shares


@dataclass(frozen=True, repr=False)
class _Evenly(RepayAtAges):
    window: int
    _name = "match_evenly"

    @property
    def _shares(self) -> np.ndarray:
        return np.full(self.window, 1 / self.window)


@dataclass(frozen=True, repr=False)
class _FromAges(RepayAtAges):
    shares: tuple[float, ...]
    _name = "match_from_ages"

    @property
    def _shares(self) -> np.ndarray:
        return np.array(self.shares)

    def __repr__(self) -> str:
        return f"match_from_ages(gamma={self.gamma!r}, shares={list(self.shares)})"
