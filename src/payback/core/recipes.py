"""The paper's methods under the paper's names, as chains."""

from __future__ import annotations

from dataclasses import replace

from payback.core.center import center as centering
from payback.core.chain import chain
from payback.core.matches import match_after, match_at_end
from payback.core.transform import Match, RewardTransform


def pbim(gamma: float, *, center: bool | RewardTransform = True) -> Match:
    """Pay F_t − F̄ as it comes and take it all back at the episode's last step (PBIM).

        F'_t = F_t − F̄ for t < N−1,   F'_{N−1} = −Σ_{n=0}^{N−2} γ^(n+1−N) F'_n         (conversion)

    `center=False` is the raw form (naive_conversion); a transform in its place, such as `center(horizon)`,
    is used as it is.

    >>> import numpy as np
    >>> shaping = pbim(0.5, center=False)
    >>> state = shaping.init(np.zeros(1))
    >>> for reward, done in [(1.0, False), (2.0, False), (9.0, True)]:
    ...     state, shaped = shaping.update(state, np.array([reward]), np.array([done]))
    ...     print(shaped)
    [1.]
    [2.]
    [-8.]
    """
    match = match_at_end(gamma)
    return _centered(center, match, f"pbim(gamma={match.gamma!r}")


def grm(gamma: float, delay: int, *, center: bool | RewardTransform = True) -> Match:
    """Pay F_t − F̄ as it comes and take it back `delay` steps later, or at the last step (GRM with delay D).

        F'_t = G_t − γ⁻ᴰ G_{t−D},   G_t = F_t − F̄_t with F̄_t frozen at receipt          (hyperparam_tuning)

    The paper gives no equation for the centred form; this one repays what was actually paid.

    >>> import numpy as np
    >>> shaping = grm(0.5, delay=1, center=False)
    >>> state = shaping.init(np.zeros(1))
    >>> for reward, done in [(1.0, False), (3.0, False), (9.0, True)]:
    ...     state, shaped = shaping.update(state, np.array([reward]), np.array([done]))
    ...     print(shaped)
    [1.]
    [1.]
    [-6.]
    """
    match = match_after(gamma, delay)  # which says what is wrong with γ or the delay
    return _centered(center, match, f"grm(gamma={match.gamma!r}, delay={int(delay)}")


def _centered(center: bool | RewardTransform, match: Match, call: str) -> Match:
    if isinstance(center, RewardTransform):
        shaping, call = chain(center, match), f"{call}, center={center!r}"
    elif not isinstance(center, bool):
        raise TypeError(f"center must be True, False or a transform such as payback.center(1000), got {center!r}")
    elif center:
        shaping = chain(centering(), match)
    else:
        shaping, call = match, f"{call}, center=False"
    assert isinstance(shaping, Match)
    return replace(shaping, _call=f"{call})")
