"""The ancestors: shaping by the difference of a potential, as its authors wrote it.

Each function takes arrays of potentials that the caller has looked up, and returns the shaping reward. `done` marks
transitions that end their episode. All work on NumPy, Torch and JAX arrays.
"""

from __future__ import annotations

from payback.core.arrays import Array, namespace


def shape_by_potential(phi: Array, phi_next: Array, gamma: float) -> Array:
    """Add the difference of a state's potential (Ng, Harada & Russell 1999).

        F = γΦ(s') − Φ(s)                                                        (Ng_potential)

    Keeps the optimal policies in infinite horizon, or with one absorbing state. Not in episodes that may end in
    different states or at different times: γᴺΦ(s_N) is left over.

    >>> import numpy as np
    >>> shape_by_potential(np.array([1.0]), np.array([4.0]), 0.5)
    array([1.])
    """
    return gamma * phi_next - phi


def shape_episodic(phi: Array, phi_next: Array, done: Array, gamma: float) -> Array:
    """Add the difference of a potential that is 0 after the last step (Grześ 2017).

        F = γΦ(s') − Φ(s),   Φ(s_N) = 0                                          (grzes_potential)

    Keeps the optimal policies of episodic problems, for any end. Φ may also depend on time (Devlin & Kudenko 2012:
    `phi` at t, `phi_next` at t + 1), on the belief (Eck 2016) or on the history: whatever is fixed before a_t.

    >>> import numpy as np
    >>> shape_episodic(np.array([1.0, 1.0]), np.array([4.0, 4.0]), np.array([False, True]), 0.5)
    array([ 1., -1.])
    """
    xp = namespace(phi, phi_next, done)
    return gamma * xp.where(done, 0.0, phi_next) - phi


def shape_dynamic(phi_t: Array, phi_next_t1: Array, done: Array, gamma: float) -> Array:
    """Add the difference of a potential that changes in time, each at its own time (Devlin & Kudenko 2012).

        F = γΦ(s', t') − Φ(s, t),   Φ(s_N, N) = 0                                (devlin_potential)

    Keeps the optimal policies if both are read at their own time. Reading both at time t does not.

    >>> import numpy as np
    >>> shape_dynamic(np.array([1.0]), np.array([4.0]), np.array([False]), 0.5)
    array([1.])
    """
    return shape_episodic(phi_t, phi_next_t1, done, gamma)


def look_ahead(phi: Array, phi_next: Array, done: Array, gamma: float) -> Array:
    """Add the difference of a potential of state and action, looking ahead (Wiewiora, Cottrell & Elkan 2003).

        F = γΦ(s', a') − Φ(s, a)                                                 (wewiora_potential)

    Keeps the optimal policies only if Φ is added back where actions are chosen: argmax_a Q(s,a) + Φ(s,a). The
    reward of a step is known one step later, when a' is.

    >>> import numpy as np
    >>> look_ahead(np.array([1.0]), np.array([4.0]), np.array([True]), 0.5)
    array([-1.])
    """
    return shape_episodic(phi, phi_next, done, gamma)


def look_back(phi: Array, phi_before: Array, first: Array, gamma: float) -> Array:
    """Add the difference of a potential of state and action, looking back (Wiewiora, Cottrell & Elkan 2003).

        F = Φ(s_t, a_t) − γ⁻¹ Φ(s_{t−1}, a_{t−1})

    `first` marks an episode's first step, before which there is no potential. For on-policy learning. In episodes
    the last potential is left over: `match_after(gamma, 1)` is this with Φ = F and the settlement at the end.

    >>> import numpy as np
    >>> look_back(np.array([1.0, 1.0]), np.array([9.0, 4.0]), np.array([True, False]), 0.5)
    array([ 1., -7.])
    """
    xp = namespace(phi, phi_before, first)
    return phi - xp.where(first, 0.0, phi_before) / gamma


def advise(phi: Array, phi_next: Array, advice: Array, done: Array, gamma: float, rate: float) -> Array:
    """Learn the potential whose differences are a given reward R† (Harutyunyan et al. 2015, DPBA): the new Φ(s, a).

        Φ(s,a) ← Φ(s,a) + β(−R† + γΦ(s',a') − Φ(s,a))                            (harutyanyun_potential)

    The shaping is then `look_ahead` with Φ_t for (s, a) and the newer Φ_{t+1} for (s', a'). At Φ's fixed point it pays
    R† itself in expectation, so the optimal policies change as with the raw reward (Behboudian et al. 2022).

    >>> import numpy as np
    >>> advise(np.array([0.0]), np.array([2.0]), np.array([3.0]), np.array([False]), gamma=0.5, rate=0.1)
    array([-0.2])
    """
    xp = namespace(phi, phi_next, advice, done)
    return phi + rate * (-advice + gamma * xp.where(done, 0.0, phi_next) - phi)


def shape_by_belief(values: Array, belief: Array, belief_next: Array, done: Array, gamma: float) -> Array:
    """Add the difference of a potential of the belief (Eck et al. 2016), here Φ(b) = Σ_s b(s) v(s).

        F = γΦ(b') − Φ(b),   Φ(b_N) = 0                                          (belief_potential)

    Keeps the optimal policies of a POMDP: the belief is fixed before the action.

    >>> import numpy as np
    >>> sure, unsure = np.array([[0.0, 1.0]]), np.array([[0.5, 0.5]])
    >>> shape_by_belief(np.array([0.0, 2.0]), unsure, sure, np.array([False]), gamma=0.5)
    array([0.])
    """
    xp = namespace(values, belief, belief_next)
    phi, phi_next = xp.sum(belief * values, axis=-1), xp.sum(belief_next * values, axis=-1)
    return shape_episodic(phi, phi_next, done, gamma)


def shape_by_action_frequency(values: Array, counts: Array, counts_next: Array, done: Array, gamma: float) -> Array:
    """Add the difference of a potential of the actions taken so far (Goyal et al. 2019), here linear in their shares.

        F = γΦ(f') − Φ(f),   f = counts / Σ counts,   Φ(f_N) = 0

    The action-frequency vector is a piece of history: the optimal policies are kept if Φ is zeroed at the end.

    >>> import numpy as np
    >>> none, one = np.array([[0.0, 0.0]]), np.array([[0.0, 1.0]])
    >>> shape_by_action_frequency(np.array([5.0, 4.0]), none, one, np.array([False]), gamma=0.5)
    array([2.])
    """
    xp = namespace(values, counts, counts_next)

    def phi(c: Array) -> Array:
        total = xp.sum(c, axis=-1)
        return xp.sum(c * values, axis=-1) / xp.where(total == 0, 1.0, total)

    return shape_episodic(phi(counts), phi(counts_next), done, gamma)
