"""ADOPS's formula: change an intrinsic reward only where it would change which action is preferred.

For NumPy, where `prior_work` decides it with exact critics, and for JAX, where the arena's learner has learned ones.
"""

from __future__ import annotations

from payback.core.arrays import Array, namespace


def keep_preference(
    reward: Array,
    q_extrinsic: Array,
    v_extrinsic: Array,
    v_intrinsic: Array,
    v_intrinsic_next: Array,
    done: Array,
    gamma: float,
    epsilon: float = 0.0,
) -> Array:
    """Change an intrinsic reward only where it would change which action is best (ADOPS, Forbes et al. 2025).

        Ω = V_E − Q_E + V_I − γV_I(s') − F
        F' = F + min(0, Ω − ε)   where Q_E < V_E,        F' = F + max(0, Ω)   where Q_E = V_E

    V_I(s') counts as 0 after the last step. Needs both critics. The optimal policies are kept under its assumption
    that the critics belong to a stable policy; with learned critics it is as good as they are. Give Q_E = R + γV_E(s')
    with V_E(s') = 0 after the last step. The formula is second-hand (public notes, a co-author's code, which leaves
    out that γ).

    >>> import numpy as np
    >>> one, zero, no = np.array([1.0]), np.array([0.0]), np.array([False])
    >>> keep_preference(np.array([5.0]), zero, one, zero, zero, no, gamma=0.9), keep_preference(
    ...     np.array([5.0]), one, one, zero, zero, no, gamma=0.9)
    (array([1.]), array([5.]))
    """
    xp = namespace(reward, q_extrinsic, v_extrinsic)
    omega = v_extrinsic - q_extrinsic + v_intrinsic - gamma * xp.where(done, 0.0, v_intrinsic_next) - reward
    worse = q_extrinsic < v_extrinsic
    lower, higher = xp.where(omega < epsilon, omega - epsilon, 0.0), xp.where(omega > 0, omega, 0.0)
    return reward + xp.where(worse, lower, higher)


def approach_preference(reward: Array, kept: Array, share: float | Array) -> Array:
    """Apply only a share of what ADOPS changes, in the end all of it (ADOPES, Forbes et al. 2025).

        F' = F + c·F₂,   F₂ = `keep_preference`(F, …) − F,   c → 1

    c is 0 at first, so that the raw bonus explores, and grows by the same step after every rollout. The optimal
    policies are preserved only at c = 1, and there as far as ADOPS preserves them. Second-hand: it is defined in a
    co-author's code (github.com/lyonva/bad-apple), not in a text that we could read.

    >>> import numpy as np
    >>> approach_preference(np.array([5.0]), np.array([1.0]), share=0.25)
    array([4.])
    """
    if isinstance(share, int | float) and not 0 <= share <= 1:
        raise ValueError(f"share must lie between 0 and 1, got {share!r}; it rises from 0 to 1")
    return reward + share * (kept - reward)
