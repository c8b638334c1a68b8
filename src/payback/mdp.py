"""Exact optimal values over the histories of a small episodic MDP, with any history-dependent bonus.

Backward induction over the tree of all histories h_t = (s_0, a_0, s_1, …, s_t), exact with `fractions.Fraction`:

    Q(h,a) = E[ R + F(h') + γ V(h') ],   V(h) = max_a Q(h,a)                                  (Q, corrected)

Under partial observability h is what the agent has seen, and the tree keeps the probabilities of all true histories.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from payback.theory import Matching

History = tuple[Any, ...]  # (s_0, a_0, s_1, …, s_t), flat; for what the agent has seen, with observations for states
Worlds = list[tuple[Any, History]]  # (probability, true history) of each world behind what the agent has seen
Bonus = Callable[[History, bool], Any]  # F of a history's last transition; the flag says whether it ended the episode
Advice = Callable[[History, Any], Any]  # a number for choosing an action after a history
LIMIT = 100_000  # the most histories a solution may hold: about 1 kB and 20 µs each, so 100 MB and a few seconds


@dataclass(frozen=True)
class MDP:
    """A small episodic decision problem."""

    transitions: Mapping[Any, Mapping[Any, tuple[tuple[Any, Any, Any], ...]]]
    """state → action → ((probability, next state, reward), …). A state that is not a key is terminal."""
    start: Any
    """The first state."""
    horizon: int
    """Steps after which an episode ends in any case."""
    observe: Callable[[Any], Any] | None = None
    """What the agent sees of a state; None means all of it. Terminal states are always seen as such."""


class Shaping(NamedTuple):
    """What shaping adds to the environment's reward, and to the scores that choose actions."""

    bonus: Bonus | None = None  # F of the last transition of a (true) history
    ahead: Advice | None = None
    """Paid at the step before, for the action chosen after this (seen) history: γ·ahead, as γΦ(s',a')."""
    added: Advice | None = None  # to Q where the agent chooses: Wiewiora's Φ added back, PIES's −ξΦ


@dataclass
class Solution:
    """The values of every history that can be reached."""

    q: dict[History, dict[Any, Any]] = field(default_factory=dict[History, dict[Any, Any]])
    """seen history → action → Q."""
    scores: dict[History, dict[Any, Any]] = field(default_factory=dict[History, dict[Any, Any]])
    """What the agent maximises: Q, plus `Shaping.added` where it is given."""

    def optimal(self, history: History, tolerance: float = 1e-9) -> set[Any]:
        """Return the optimal actions after a history."""
        scores = self.scores[history]
        best = max(scores.values())
        return {a for a, x in scores.items() if best - x <= tolerance * (1 + abs(best))}


@dataclass(frozen=True)
class Verdict:
    """Whether shaping preserves the optimal actions, and the first history where it does not."""

    preserved: bool
    histories: int
    """The number of histories that were compared."""
    history: History | None = None
    before: frozenset[Any] = frozenset()
    """The optimal actions there without shaping."""
    after: frozenset[Any] = frozenset()
    """The optimal actions there with shaping."""

    def __str__(self) -> str:
        if self.preserved:
            return f"the optimal actions are the same after all {self.histories} histories"
        return f"after {self.history} the optimal actions are {set(self.before)}, and with shaping {set(self.after)}"


def solve(mdp: MDP, gamma: Any, shaping: Shaping = Shaping(), limit: int = LIMIT) -> Solution:  # noqa: B008
    """Return the optimal values of every history, by backward induction.

    >>> walk = MDP({"s": {"stay": ((1, "s", 0),), "go": ((1, "goal", 1),)}}, start="s", horizon=3)
    >>> solve(walk, 0.5).q[("s",)]
    {'stay': 0.5, 'go': 1}
    """
    _read(mdp)
    solution = Solution()
    _value(mdp, gamma, shaping, limit, solution, seen_history(mdp, (mdp.start,)), [(1, (mdp.start,))])
    return solution


def compare(mdp: MDP, gamma: Any, shaping: Shaping, limit: int = LIMIT, tolerance: float = 1e-9) -> Verdict:
    """Compare the optimal actions with and without shaping, after every history that can be reached.

    >>> walk = MDP({"s": {"stay": ((1, "s", 0),), "go": ((1, "goal", 1),)}}, start="s", horizon=3)
    >>> print(compare(walk, 0.5, Shaping(bonus=lambda history, ended: 2 * (history[-1] == "s"))))
    after ('s',) the optimal actions are {'go'}, and with shaping {'stay'}
    """
    plain, shaped = solve(mdp, gamma, limit=limit), solve(mdp, gamma, shaping, limit)
    for history in sorted(plain.q, key=len):
        before, after = (frozenset(s.optimal(history, tolerance)) for s in (plain, shaped))
        if before != after:
            return Verdict(False, len(plain.q), history, before, after)
    return Verdict(True, len(plain.q))


def episodes(mdp: MDP, limit: int = LIMIT) -> Iterator[History]:
    """Yield every possible episode, flat: s_0, a_0, s_1, …, s_N, as `payback.theory.check_boundary` takes them."""
    _read(mdp)
    open_: list[History] = [(mdp.start,)]
    count = 0
    while open_:
        history = open_.pop()
        count += 1
        _refuse_past(count, limit)
        if ended(mdp, history):
            yield history
            continue
        for action, ways in mdp.transitions[history[-1]].items():
            open_.extend((*history, action, s) for p, s, _ in ways if p)


def matched(bonus: Bonus, matching: Matching, gamma: Any) -> Bonus:
    """Repay a bonus as a matching says: F'_t = F_t − Σ_{i≤t} γ^(i−t) F_i m(t,i)                       (drawer)

    >>> repaid = matched(lambda history, ended: 1.0, lambda t, i, N: t == N - 1, gamma=0.5)
    >>> repaid(("s", 0, "s"), False), repaid(("s", 0, "s", 0, "s"), True)
    (1.0, -2.0)
    """
    if not callable(matching):
        raise TypeError("a matching over histories is a function m(t, i, N): episodes differ in length")

    def repaid(history: History, is_last: bool) -> Any:
        t = len(history) // 2 - 1
        # Before the last step m may not depend on N, so any longer episode will do.
        N = t + 1 if is_last else t + 2
        F = [bonus(history[: 2 * i + 3], is_last and i == t) for i in range(t + 1)]
        return F[t] - sum(gamma ** (i - t) * F[i] * matching(t, i, N) for i in range(t + 1))

    return repaid


def potential_difference(potential: Callable[[History, bool], Any], gamma: Any) -> Bonus:
    """F_t = γΦ_{t+1} − Φ_t with Φ of the history                                        (shaping_reward)"""
    return lambda history, is_last: gamma * potential(history, is_last) - potential(history[:-2], False)


def ended(mdp: MDP, history: History) -> bool:
    """Return whether the episode is over: a terminal state, or the horizon."""
    return history[-1] not in mdp.transitions or len(history) // 2 >= mdp.horizon


def seen_history(mdp: MDP, history: History) -> History:
    """Return what the agent has seen of a true history."""
    if mdp.observe is None:
        return history
    return tuple(x if k % 2 or x not in mdp.transitions else mdp.observe(x) for k, x in enumerate(history))


def _value(mdp: MDP, gamma: Any, shaping: Shaping, limit: int, found: Solution, seen: History, worlds: Worlds) -> Any:
    _refuse_past(len(found.q) + 1, limit)
    q_of = found.q[seen] = {}
    for action in mdp.transitions[worlds[0][1][-1]]:
        now: Any = 0
        later: dict[History, Worlds] = {}
        for p, history in worlds:
            for q, state, reward in mdp.transitions[history[-1]][action]:
                if not q:
                    continue
                after = (*history, action, state)
                over = ended(mdp, after)
                now += p * q * (reward + (shaping.bonus(after, over) if shaping.bonus else 0))
                if not over:
                    later.setdefault(seen_history(mdp, after), []).append((p * q, after))
        for key, group in later.items():
            total = sum(p for p, _ in group)
            value = _value(mdp, gamma, shaping, limit, found, key, [(p / total, h) for p, h in group])
            now += total * gamma * value
        q_of[action] = now
    scores = {a: x + (shaping.added(seen, a) if shaping.added else 0) for a, x in q_of.items()}
    found.scores[seen] = scores
    chosen = max(scores, key=lambda a: scores[a])
    return q_of[chosen] + (shaping.ahead(seen, chosen) if shaping.ahead else 0)


def _refuse_past(count: int, limit: int) -> None:
    if count > limit:
        what = f"this MDP has more than {limit:,} histories, the limit of the exact solver"
        raise ValueError(f"{what}; shorten its horizon, give it fewer actions, or raise `limit` (about 1 kB each)")


def _read(mdp: MDP) -> None:
    if mdp.horizon < 1 or mdp.start not in mdp.transitions:
        raise ValueError("an MDP needs a horizon of at least 1 step and a start that is not terminal")
    for state, actions in mdp.transitions.items():
        if not actions:
            raise ValueError(f"state {state!r} has no actions; leave it out if it is terminal")
        for action, ways in actions.items():
            if abs(sum(p for p, _, _ in ways) - 1) > 1e-9:
                raise ValueError(f"the probabilities of state {state!r}, action {action!r} do not add up to 1")
