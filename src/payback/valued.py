"""Neighbours that need critics: what they add is measured against learned values, not against the reward alone."""

from __future__ import annotations

from payback.arrays import Array, namespace


def bias_choice(q: Array, phi: Array, xi: float) -> Array:
    """Score actions by the environment's own values and a fading piece of advice (PIES, Behboudian et al. 2022).

        act by argmax_a Q(s,a) − ξΦ(s,a),   ξ → 0

    Q is learned from the environment's reward alone; Φ as in `advise`, so −Φ is the advice's own value. The optimal
    policies are kept in the limit, ξ = 0: then nothing is left of the advice.

    >>> import numpy as np
    >>> bias_choice(np.array([1.0, 0.9]), np.array([0.0, -1.0]), xi=0.5)
    array([1. , 1.4])
    """
    if xi < 0:
        raise ValueError(f"xi must not be negative, got {xi!r}; it fades to 0")
    return q - xi * phi


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
    that the critics belong to a stable policy; with learned critics it is as good as they are. The formula is
    second-hand (public notes, a co-author's code).

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
