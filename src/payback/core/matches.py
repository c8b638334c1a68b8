"""Matchings: when each loan is repaid. The only code that carries the guarantee.

A reward F_i is paid out at step i and taken back later in the same episode, with interest 1/γ per step:

    F'_t = F_t − Σ_{i≤t} γ^(i−t) F_i m(t,i)                                          (drawer)

Each function here is one choice of m that repays every loan exactly once (Condition1), never before it is
lent (Condition2), and that does not depend on when the episode will end. At an episode's last step all that
is still owed falls due; the last reward itself is lent and repaid at once. So in every finished episode

    Σ_t γ^t F'_t = 0.

The loans of a whole window are kept and summed anew at each step: the recursion debt ← debt/γ + F − due
has the same value on paper, but its rounding error grows as γ⁻ᵗ.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from payback.core.errors import InterestWarning
from payback.core.repay_at_ages import match_at_ages
from payback.core.repay_at_once import AtEndState, WhenState, match_at_once
from payback.core.repay_geometric import match_geometrically
from payback.core.transform import Match
from payback.core.validate import read_count, read_gamma, refuse_too_many


def match_at_end(gamma: float) -> Match:
    """Pay every reward as it comes and take all of them back, with interest, at the episode's last step.

        F'_t = F_t for t < N−1,   F'_{N−1} = −Σ_{n=0}^{N−2} γ^(n+1−N) F_n            (naive_conversion, pbimmatching)

    The settlement grows as γ⁻ᴺ. It cannot know N: `init` warns from which length the dtype overflows, where
    that is within reach, and eager NumPy and Torch raise when it happens.

    >>> import numpy as np
    >>> match = match_at_end(0.5)
    >>> state = match.init(np.zeros(1))
    >>> for reward, done in [(1.0, False), (2.0, False), (9.0, True)]:
    ...     state, shaped = match.update(state, np.array([reward]), np.array([done]))
    ...     print(shaped)
    [1.]
    [2.]
    [-8.]
    """
    return match_at_once("match_at_end", read_gamma(gamma), AtEndState)


def match_when(gamma: float) -> Match:
    """Take back all earlier rewards at the next flagged step (`settle=True`), or at the episode's last.

        F'_t = F_t − [t is flagged or last] · Σ_{s≤i<t} γ^(i−t) F_i,   s the last flagged step      (drawer)

    The flagged step's own reward is a new loan. The flag must be known at its step (a key picked up, a door
    opened) and must not look ahead.

    >>> import numpy as np
    >>> match = match_when(0.5)
    >>> state = match.init(np.zeros(1))
    >>> for reward, done, event in [(1.0, False, False), (3.0, False, True), (9.0, True, False)]:
    ...     state, shaped = match.update(state, np.array([reward]), np.array([done]), settle=np.array([event]))
    ...     print(shaped)
    [1.]
    [1.]
    [-6.]
    """
    return match_at_once("match_when", read_gamma(gamma), WhenState)


def match_after(gamma: float, delay: int) -> Match:
    """Take each reward back `delay` steps after it was paid, or at the episode's last step if that is sooner.

        F'_t = F_t − γ⁻ᴰ F_{t−D} [t ≥ D]            for t < N−1
        F'_{N−1} = −Σ_{k=1}^{min(D,N−1)} γ⁻ᵏ F_{N−1−k}                               (hyperparam_tuning)

    Departs from the paper's print where it slips: the last step's case comes first and its sum stops at the
    episode's start, so that short episodes (N ≤ D) are right. D = 0 pays nothing; D ≥ N−1 is `match_at_end`.

    >>> import numpy as np
    >>> match = match_after(0.5, delay=1)
    >>> state = match.init(np.zeros(1))
    >>> for reward, done in [(1.0, False), (3.0, False), (9.0, True)]:
    ...     state, shaped = match.update(state, np.array([reward]), np.array([done]))
    ...     print(shaped)
    [1.]
    [1.]
    [-6.]
    """
    delay = read_count("delay", delay, least=0)
    gamma = read_gamma(gamma)
    with refuse_too_many("match_after", "delay", delay):
        shares = np.zeros(delay)
        shares[delay - 1 :] = 1
        return match_at_ages("match_after", gamma, shares, f"match_after(gamma={gamma!r}, delay={delay})")


def match_evenly(gamma: float, window: int) -> Match:
    """Take each reward back in `window` equal shares over the next steps; what is left, at the last step.

        m(t,i) = 1/W for 1 ≤ t−i ≤ W,   m(N−1,i) = 1 − (N−2−i)/W for N−1−i ≤ W                     (drawer)

    `match_evenly(gamma, 1)` is `match_after(gamma, 1)`.

    >>> import numpy as np
    >>> match = match_evenly(1.0, window=2)
    >>> state = match.init(np.zeros(1))
    >>> for reward, done in [(4.0, False), (0.0, False), (0.0, False), (6.0, False), (0.0, True)]:
    ...     state, shaped = match.update(state, np.array([reward]), np.array([done]))
    ...     print(shaped)
    [4.]
    [-2.]
    [-2.]
    [6.]
    [-6.]
    """
    window = read_count("window", window, least=1)
    gamma = read_gamma(gamma)
    call = f"match_evenly(gamma={gamma!r}, window={window})"
    with refuse_too_many("match_evenly", "window", window):
        return match_at_ages("match_evenly", gamma, np.full(window, 1 / window), call)


def match_from_ages(gamma: float, shares: Sequence[float] | np.ndarray) -> Match:
    """Take the share `shares[k]` of each reward back k + 1 steps after it was paid; what is left, at the last step.

        m(t,i) = shares[t−i−1] for t < N−1,   m(N−1,i) = 1 − Σ_{t<N−1} m(t,i)                          (drawer)

    The shares must add up to 1, so that a loan is repaid in full as soon as the last age is reached. `match_after` and
    `match_evenly` are two choices of them.

    >>> import numpy as np
    >>> match = match_from_ages(1.0, [0.75, 0.25])
    >>> state = match.init(np.zeros(1))
    >>> for reward, done in [(4.0, False), (0.0, False), (0.0, False), (8.0, False), (0.0, True)]:
    ...     state, shaped = match.update(state, np.array([reward]), np.array([done]))
    ...     print(shaped)
    [4.]
    [-3.]
    [-1.]
    [8.]
    [-8.]
    """
    gamma, parts = read_gamma(gamma), np.asarray(shares, dtype=np.float64)
    if parts.ndim != 1 or not len(parts) or not np.isfinite(parts).all():
        raise ValueError(f"shares must be a list of finite numbers, one for each age from 1 on, got {shares!r}")
    if abs(parts.sum() - 1) > 1e-9:
        raise ValueError(
            f"shares add up to {parts.sum():g}, not 1, so not every loan would be repaid exactly once; divide them by "
            "their sum"
        )
    last = int(np.flatnonzero(parts)[-1]) + 1
    call = f"match_from_ages(gamma={gamma!r}, shares={parts.tolist()})"
    return match_at_ages("match_from_ages", gamma, parts[:last], call)


def match_geometric(gamma: float, rate: float) -> Match:
    """Take back the share 1 − λ of what is owed at each step, and the rest at the episode's last.

        m(t,i) = (1−λ) λ^(k−1) at age k = t−i ≥ 1,   m(N−1,i) = λ^(k−1)                             (drawer)
        P ← (λP + F_t)/γ,   paying (1−λ)P                                          λ = `rate`

    Needs one number per environment. Stable while λ < γ; beyond, the debt grows as (λ/γ)^t.
    `match_geometric(gamma, 0)` is `match_after(gamma, 1)`.

    >>> import numpy as np
    >>> match = match_geometric(1.0, rate=0.5)
    >>> state = match.init(np.zeros(1))
    >>> for reward, done in [(8.0, False), (0.0, False), (0.0, False), (0.0, True)]:
    ...     state, shaped = match.update(state, np.array([reward]), np.array([done]))
    ...     print(shaped)
    [8.]
    [-4.]
    [-2.]
    [-2.]
    """
    gamma = read_gamma(gamma)
    if not isinstance(rate, (int, float, np.floating)) or isinstance(rate, bool) or not 0 <= rate < 1:
        raise ValueError(f"rate must lie in [0, 1), got {rate!r}; 0 repays all at the next step")
    rate = float(rate)
    if rate >= gamma:
        warnings.warn(
            f"match_geometric: with rate {rate} ≥ gamma {gamma} the debt grows as (rate/gamma)^t over an episode; "
            "choose a rate below gamma",
            InterestWarning,
            stacklevel=2,
        )
    return match_geometrically("match_geometric", gamma, rate)
