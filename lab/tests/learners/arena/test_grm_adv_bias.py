"""What grm-adv does to the best policy, by the exact solver: its bias, the bound, the smallest MDP that it changes."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest

from payback.mdp import MDP, History, Shaping, compare, matched, solve
from payback_lab.learners.arena import advantage_side
from payback_lab.methods import parse_advantage_side

pytestmark = pytest.mark.slow

Bonus = dict[tuple[str, str, str], Fraction]
"""G of (state, action, next state)."""


def paid(bonus: Bonus):
    return lambda history, ended: bonus.get(tuple(history[-3:]), Fraction(0))


def due(delay: int):
    """Each loan is repaid after `delay` steps, or at the last step."""
    return lambda t, i, N: int(t == min(i + delay, N - 1))


def extremes(
    mdp: MDP, bonus: Bonus, delay: int, gamma: Fraction, lam: Fraction
) -> dict[str, tuple[Fraction, Fraction]]:
    """Action at the start → the smallest and largest E[A^I] of any policy afterwards.

    A^I of the loans from now on is the return of GRM's reward, discounted with γλ_I instead of γ: a repayment of γ⁻ᴷG
    after K steps counts for λ_I^K·G.
    """
    plain = MDP({s: {a: tuple((p, n, 0) for p, n, _ in ways) for a, ways in acts.items()}
                 for s, acts in mdp.transitions.items()}, mdp.start, mdp.horizon)  # fmt: skip
    lowest = {key: -G for key, G in bonus.items()}
    most, least = (
        solve(plain, gamma * lam, Shaping(matched(paid(own), due(delay), gamma))).q[(mdp.start,)]
        for own in (bonus, lowest)
    )
    return {action: (-least[action], most[action]) for action in most}


def draw(rng: np.random.Generator, *, certain: bool = False) -> tuple[MDP, Bonus]:
    """Draw an MDP of three states and an end, two actions each, at most four steps."""
    states, ends = "stu", "stu."
    transitions: dict[str, dict[str, tuple]] = {}
    bonus: Bonus = {}
    for state, action in product(states, "ab"):
        weights = rng.integers(1, 5, size=1 if certain else 2)
        following = rng.choice(list(ends), size=len(weights), replace=False)
        total = int(weights.sum())
        ways = [
            (Fraction(int(w), total), str(n), Fraction(int(rng.integers(0, 3))))
            for w, n in zip(weights, following, strict=True)
        ]
        transitions.setdefault(state, {})[action] = tuple(ways)
        bonus |= {(state, action, n): Fraction(int(rng.integers(-4, 5)), 4) for _, n, _ in ways}
    return MDP(transitions, "s", 4), bonus


def walks(mdp: MDP, history: History) -> Iterator[History]:
    """Every way an MDP without chance can go on."""
    if history[-1] not in mdp.transitions or len(history) // 2 >= mdp.horizon:
        yield history
        return
    for action, ((_, following, _),) in mdp.transitions[history[-1]].items():
        yield from walks(mdp, (*history, action, following))


def signal(history: History, bonus: Bonus, delay: int, gamma: Fraction, lam: Fraction, begin: int = 0) -> Fraction:
    """A^I of step `begin` as THEORY writes it: Σ_j (γλ_I)^j (1 − λ_I^K) G, K = min(D, steps to the last step)."""
    last, found = len(history) // 2 - 1, Fraction(0)
    for t in range(begin, last + 1):
        share = 1 - lam ** min(delay, last - t)
        found += (gamma * lam) ** (t - begin) * share * bonus.get(tuple(history[2 * t : 2 * t + 3]), 0)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_solver_finds_the_extremes_of_the_signal(seed):
    rng = np.random.default_rng(seed)
    mdp, bonus = draw(rng, certain=True)
    gamma, lam, delay = Fraction(9, 10), Fraction(int(rng.integers(0, 11)), 10), int(rng.integers(1, 4))
    told: dict[str, list[Fraction]] = {}
    for walk in walks(mdp, (mdp.start,)):
        told.setdefault(walk[1], []).append(signal(walk, bonus, delay, gamma, lam))
    found = extremes(mdp, bonus, delay, gamma, lam)
    assert found == {action: (min(own), max(own)) for action, own in told.items()}


@pytest.mark.parametrize("seed", range(40))
def test_no_policy_has_a_bias_beyond_the_bound(seed):
    """|E A^I| ≤ (1 − λ_I^D)·max|G| / (1 − γλ_I), exactly, for every policy and action of a random MDP."""
    rng = np.random.default_rng(seed)
    mdp, bonus = draw(rng)
    gamma, lam = Fraction(int(rng.integers(5, 11)), 10), Fraction(int(rng.integers(0, 10)), 10)
    delay = int(rng.integers(1, 5))
    bound = (1 - lam**delay) * max(map(abs, bonus.values())) / (1 - gamma * lam)
    for least, most in extremes(mdp, bonus, delay, gamma, lam).values():
        assert -bound <= least <= most <= bound


def test_the_bound_is_reached_in_a_long_episode():
    walk = tuple("s" if n % 2 == 0 else "a" for n in range(2 * 300 + 1))
    gamma, lam, delay = 0.99, 0.95, 5
    found = float(signal(walk, {("s", "a", "s"): 1}, delay, gamma, lam))  # pyright: ignore[reportArgumentType]
    bound = (1 - lam**delay) / (1 - gamma * lam)
    assert 0.99 * bound < found < bound


def preferred(mdp: MDP, bonus: Bonus, delay: int, gamma: Fraction, lam: Fraction) -> dict[History, tuple[set, set]]:
    """History → the task's best actions, and those that A^E + A^I prefers, both critics exact for the best policy."""
    task = solve(mdp, gamma)
    found = {}
    for history, values in task.q.items():
        scores = {}
        for action, value in values.items():
            ((_, following, _),) = mdp.transitions[history[-1]][action]
            walk = (*history, action, following)
            while walk in task.q:  # goes on as the task's best policy does
                best = min(task.optimal(walk))
                walk = (*walk, best, mdp.transitions[walk[-1]][best][0][1])
            scores[action] = value + signal(walk, bonus, delay, gamma, lam, begin=len(history) // 2)
        most = max(scores.values())
        found[history] = (task.optimal(history), {a for a, score in scores.items() if score == most})
    return found


SURE = Fraction(1)
GAMMA, LAM = Fraction(9, 10), Fraction(1, 2)
STAY_OR_GO = MDP({"s": {"stay": ((SURE, "s", 0),), "go": ((SURE, ".", 1),)}}, "s", horizon=2)
STAYING = {("s", "stay", "s"): Fraction(1)}
"""One state, two actions, two steps: going is worth 1, staying is paid a bonus of 1."""


def small(horizon: int) -> Iterator[tuple[MDP, Bonus]]:
    """Every MDP of one state without chance, two actions, rewards and bonuses of 0 and 1."""
    ways = list(product("s.", (0, 1), (0, 1)))
    for chosen in product(ways, repeat=2):
        own = dict(zip("ab", chosen, strict=True))
        transitions = {"s": {a: ((SURE, n, reward),) for a, (n, reward, _) in own.items()}}
        yield MDP(transitions, "s", horizon), {("s", a, n): Fraction(G) for a, (n, _, G) in own.items()}


def is_changed(mdp: MDP, bonus: Bonus) -> bool:
    return any(not theirs <= best for best, theirs in preferred(mdp, bonus, 1, GAMMA, LAM).values())


def test_the_smallest_mdp_whose_best_policy_grm_adv_changes():
    """One state, because there is none smaller; two actions; two steps, because the last step has no signal."""
    assert not any(is_changed(*one) for one in small(1))
    changed = [one for one in small(2) if is_changed(*one)]
    assert len(changed) == 4  # stay or go: with the names exchanged, and with a bonus for going or without
    for mdp, bonus in changed:
        acts = {a: (n, reward) for a, ((_, n, reward),) in mdp.transitions["s"].items()}
        assert sorted(acts.values()) == [(".", 1), ("s", 0)]
        assert all(G for (_, _, n), G in bonus.items() if n == "s")


def test_it_procrastinates_where_grm_does_not():
    best, theirs = preferred(STAY_OR_GO, STAYING, 1, GAMMA, LAM)[("s",)]
    assert (best, theirs) == ({"go"}, {"stay"})
    task, extra = solve(STAY_OR_GO, GAMMA).q[("s",)], signal(("s", "stay", "s", "go", "."), STAYING, 1, GAMMA, LAM)
    assert (task["go"] - task["stay"], extra) == (Fraction(1, 10), Fraction(1, 2))
    assert compare(STAY_OR_GO, GAMMA, Shaping(matched(paid(STAYING), due(1), GAMMA))).preserved


def test_the_learner_pays_that_signal():
    form = parse_advantage_side("grm-adv-1-0.5-lone")
    f = advantage_side.signal(form, jnp.array([[1.0], [0.0]]), jnp.array([[False], [True]]))
    assert f.ravel().tolist() == [0.5, 0.0]


def test_the_example_of_a_detour_of_twenty_steps():
    gamma, lam, delay, steps = 0.99, 0.95, 30, 20
    walk = (*("s" if n % 2 == 0 else "a" for n in range(2 * steps + 1)), "a", ".")
    gain = float(signal(walk, {("s", "a", "s"): 0.04}, delay, gamma, lam))  # pyright: ignore[reportArgumentType]
    assert 1 - gamma**steps == pytest.approx(0.182, abs=5e-4)
    assert gain == pytest.approx(0.214, abs=5e-4)
