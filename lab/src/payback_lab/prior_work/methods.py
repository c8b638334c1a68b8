"""The methods of the paper's table, each as the shaping it adds to a small decision problem."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from payback.core.arrays import Array
from payback.mdp import MDP, History, Shaping, Solution, ended, matched, seen_history, solve
from payback_lab.learners.arena.preference import approach_preference, keep_preference
from payback_lab.prior_work.problems import Problem

Build = Callable[[Problem, float, Solution], Shaping]
"""(problem, γ, its values without shaping) → what the method adds."""


@dataclass(frozen=True)
class Method:
    """Describe a row of the table."""

    name: str
    takes: Literal["potential", "bonus"]
    """What the method turns into shaping."""
    build: Build
    """The shaping as the paper of the method has it."""
    condition: str = ""
    """The condition under which the method preserves the optimal policies, if it does not do so without one."""
    conditioned: Build | None = None
    """The shaping under that condition."""
    only: tuple[str, ...] = ()
    """The settings it can be applied to, if not all."""
    plug_and_play: bool = False
    """Whether it takes any reward as it comes; stated, not computed."""
    repays: bool = False
    """Whether what it adds is settled later in the episode: endless problems are then decided over histories that
    reach the absorbing state."""
    advice_weight: float | None = None
    """ξ of a method that adds nothing to the reward and chooses actions by Q − ξΦ; None for all others."""
    bonus_weight: float = 1.0
    """The weight of a bonus that is added as it is."""
    conditioned_weight: float = 1.0
    """The same under the condition."""
    narrows: bool = False
    """Whether the method, under its condition, may choose among the optimal actions: some must stay, none be added."""


@dataclass(frozen=True)
class _Potential:
    """Build the variants of γΦ_{t+1} − Φ_t."""

    zeroed: bool = False
    """Φ = 0 after the last step."""
    own_time: bool = True
    """Both Φ are read at their own time; else both at t."""
    added_back: bool = False
    """Φ(s, a) is added where actions are chosen."""

    def __call__(self, problem: Problem, gamma: float, plain: Solution) -> Shaping:
        mdp, phi = problem.mdp, problem.potential
        of_action = problem.of_action

        def bonus(history: History, is_last: bool) -> float:
            seen = seen_history(mdp, history)
            before = phi(seen[:-2], seen[-2] if of_action else None)
            if is_last:
                after = 0.0 if self.zeroed or of_action else phi(seen, None)
            elif of_action:
                after = 0.0  # paid by `ahead`, once the next action is known
            else:
                after = phi(seen, None) if self.own_time else problem.frozen(seen, len(seen) // 2 - 1)
            return gamma * after - before

        advice = (lambda seen, a: phi(seen, a)) if of_action else None
        return Shaping(bonus, advice, advice if self.added_back else None)


def raw(problem: Problem, gamma: float, plain: Solution) -> Shaping:
    """Add the bonus unchanged. DPBA does the same at the fixed point of Φ, where it pays R† in expectation."""
    return Shaping(problem.bonus)


def weighted(weight: float) -> Build:
    """Add the bonus with a weight."""

    def build(problem: Problem, gamma: float, plain: Solution) -> Shaping:
        return Shaping(lambda history, is_last: weight * problem.bonus(history, is_last))

    return build


def eipo(alpha: float) -> float:
    """Return the weight of the bonus beside a reward of weight 1 while EIPO's multiplier is α.

    With the multiplier held, its policy maximises J_{E+I} + αJ_E, that is (1 + α)R + F.
    """
    return 1 / (1 + alpha)


def grm(delay: int) -> Build:
    """Lend the bonus; it is repaid after `delay` steps or at the end."""

    def build(problem: Problem, gamma: float, plain: Solution) -> Shaping:
        return Shaping(matched(problem.bonus, lambda t, i, N: float(t == min(i + delay, N - 1)), gamma))

    return build


def look_back(problem: Problem, gamma: float, plain: Solution) -> Shaping:
    """Add Φ(s_t,a_t) − γ⁻¹Φ(s_{t−1},a_{t−1}); the last Φ of an episode is never subtracted."""
    mdp, phi = problem.mdp, problem.potential

    def bonus(history: History, is_last: bool) -> float:
        seen = seen_history(mdp, history)
        earlier = phi(seen[:-4], seen[-4]) / gamma if len(seen) > 3 else 0.0
        return phi(seen[:-2], _action(seen)) - earlier

    return Shaping(bonus)


def _action(seen: History) -> Any:
    """The action of a history's last transition."""
    return seen[len(seen) - 2]


def look_back_settled(problem: Problem, gamma: float, plain: Solution) -> Shaping:
    """Look back, and subtract the last potential at the end: GRM with D = 1."""
    left = look_back(problem, gamma, plain).bonus
    assert left is not None
    mdp, phi = problem.mdp, problem.potential

    def bonus(history: History, is_last: bool) -> float:
        seen = seen_history(mdp, history)
        return left(history, is_last) - (phi(seen[:-2], seen[-2]) if is_last else 0.0)

    return Shaping(bonus)


def frequencies(zeroed: bool) -> Build:
    """Add Goyal's potential, a function of how often each action was taken."""

    def build(problem: Problem, gamma: float, plain: Solution) -> Shaping:
        def phi(seen: History) -> float:
            taken = tuple(sorted(map(str, seen[1::2])))
            return problem.potential(("actions taken", *taken), None)

        def bonus(history: History, is_last: bool) -> float:
            after = 0.0 if is_last and zeroed else phi(history)
            return gamma * after - phi(history[:-2])

        return Shaping(bonus)

    return build


def pies(xi: float) -> Build:
    """Act by argmax Q − ξΦ with −Φ = Q†, the advice's own values."""

    def build(problem: Problem, gamma: float, plain: Solution) -> Shaping:
        if xi == 0:
            return Shaping(added=lambda seen, a: 0.0)
        advice = solve(_without_reward(problem.mdp), gamma, Shaping(problem.bonus)).q
        return Shaping(added=lambda seen, a: xi * advice[seen][a])

    return build


def adops(share: float) -> Build:
    """Add what ADOPS adds with exact critics of the optimal policy (V_E, Q_E, V_I), or a share of it (ADOPES)."""

    def build(problem: Problem, gamma: float, plain: Solution) -> Shaping:
        changes = _adops_changes(problem, gamma, plain, share)
        return Shaping(lambda history, is_last: problem.bonus(history, is_last) + changes[history[:-2], history[-2]])

    return build


def _adops_changes(problem: Problem, gamma: float, plain: Solution, share: float) -> dict[tuple[History, Any], float]:
    """Return F' − F after every history, for every action, by backward induction."""
    mdp, changes = problem.mdp, {}

    def value(history: History) -> float:
        """V_I of a history, filling in the changes for each of its actions."""
        q = plain.q[history]
        best = max(q.values())
        now, later = {}, {}
        for a, ways in mdp.transitions[history[-1]].items():
            after = [(p, (*history, a, s)) for p, s, _ in ways if p]
            now[a] = sum(p * problem.bonus(h, ended(mdp, h)) for p, h in after)
            later[a] = sum(p * value(h) for p, h in after if not ended(mdp, h))
        optimal = plain.optimal(history)
        v = max(now[a] + gamma * later[a] for a in optimal)
        for a in q:
            q_e = best if a in optimal else q[a]
            F, q_e, v_e, v_i, after = (np.asarray(x) for x in (now[a], q_e, best, v, later[a]))
            kept = keep_preference(F, q_e, v_e, v_i, after, np.asarray(False), gamma, epsilon=0.1)
            changes[history, a] = float(approach_preference(F, kept, share)) - now[a]
        return v

    value((mdp.start,))
    return changes


def _without_reward(mdp: MDP) -> MDP:
    free = {
        s: {a: tuple((p, after, 0.0) for p, after, _ in ways) for a, ways in actions.items()}
        for s, actions in mdp.transitions.items()
    }
    return replace(mdp, transitions=free)


ZEROED = "Φ zeroed at the end"
_OF_ACTIONS = ("action", "free end", "absorbing")
_OBSERVED = ("absorbing", "free end", "action", "time", "history")
_AT_ONE_TIME = _Potential(own_time=False)
CONSTRAINED = 1e7
"""A multiplier of EIPO that is large enough on these problems for its constraint, J_E(π) ≥ max J_E, to be met."""
_ZEROED_AT_ONE_TIME = _Potential(zeroed=True, own_time=False)


def _pies(xi: float, name: str) -> Method:
    return Method(f"Behboudian 2022 (PIES), {name}", "bonus", pies(xi), plug_and_play=True, advice_weight=xi)


METHODS = (
    Method("raw bonus", "bonus", raw, plug_and_play=True),
    Method("Ng 1999", "potential", _AT_ONE_TIME, ZEROED, _ZEROED_AT_ONE_TIME),
    Method("Wiewiora 2003, look-ahead", "potential", _AT_ONE_TIME, "Φ added back to Q, zeroed at the end",
           _Potential(zeroed=True, own_time=False, added_back=True), only=_OF_ACTIONS),
    Method("Wiewiora 2003, look-back", "potential", look_back, "settled at the end (GRM, D = 1)", look_back_settled,
           only=_OF_ACTIONS, repays=True),
    Method("Devlin 2012", "potential", _Potential(), ZEROED, _Potential(zeroed=True)),
    Method("Harutyunyan 2015 (DPBA)", "bonus", raw, plug_and_play=True),
    Method("Eck 2016", "potential", _AT_ONE_TIME, ZEROED, _ZEROED_AT_ONE_TIME),
    Method("Grześ 2017", "potential", _ZEROED_AT_ONE_TIME),
    Method("Goyal 2019", "potential", frequencies(zeroed=False), ZEROED, frequencies(zeroed=True),
           only=("free end", "history", "partial")),
    _pies(0.5, "ξ = ½"),
    _pies(0.0, "ξ = 0"),
    Method("PBIM 2024", "bonus", grm(10**6), plug_and_play=True, repays=True),
    Method("GRM 2024, D = 1", "bonus", grm(1), plug_and_play=True, repays=True),
    Method("GRM 2024, D = 2", "bonus", grm(2), plug_and_play=True, repays=True),
    Method("ADOPS 2025", "bonus", adops(1.0), only=_OBSERVED, plug_and_play=True, repays=True),
    Method("ADOPES 2025, c = ½", "bonus", adops(0.5), "c = 1 (ADOPS)", adops(1.0), only=_OBSERVED,
           plug_and_play=True, repays=True),
    Method("Chen 2022 (EIPO), α = ½", "bonus", weighted(eipo(0.5)), "its constraint is met",
           weighted(eipo(CONSTRAINED)), bonus_weight=eipo(0.5), conditioned_weight=eipo(CONSTRAINED), narrows=True),
)  # fmt: skip


def bias_choice(q: Array, phi: Array, xi: float) -> Array:
    """Score actions by the environment's own values and by advice that fades out (PIES, Behboudian et al. 2022).

        act by argmax_a Q(s,a) − ξΦ(s,a),   ξ → 0

    Q is learned from the environment's reward alone; −Φ is the value of the advice. The optimal policies are preserved
    only at ξ = 0, where nothing is left of the advice.

    >>> import numpy as np
    >>> bias_choice(np.array([1.0, 0.9]), np.array([0.0, -1.0]), xi=0.5)
    array([1. , 1.4])
    """
    if xi < 0:
        raise ValueError(f"xi must not be negative, got {xi!r}; it fades to 0")
    return q - xi * phi
