"""The paper's methods under the paper's names, as chains."""

from __future__ import annotations

from payback.core.center import center as centering
from payback.core.matches import match_after, match_at_end
from payback.core.transform import RewardTransform, chain


def pbim(gamma: float, *, center: bool | RewardTransform = True) -> RewardTransform:
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
    return _centered(center, match_at_end(gamma))


def grm(gamma: float, delay: int, *, center: bool | RewardTransform = True) -> RewardTransform:
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
    return _centered(center, match_after(gamma, delay))


def _centered(center: bool | RewardTransform, match: RewardTransform) -> RewardTransform:
    if isinstance(center, RewardTransform):
        return chain(center, match)
    if not isinstance(center, bool):
        raise TypeError(f"center must be True, False or a transform such as payback.center(1000), got {center!r}")
    return chain(centering(), match) if center else match
