"""The arena's bonuses: none looks at what comes later, a first visit pays α, and only `counts` reads the state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from payback import InvarianceError, check_causal
from payback_lab.environments.minigrid.view import VIEW
from payback_lab.learners.arena.bonus import BONUSES, Bonus
from payback_lab.learners.ppo.rollout import Environment

pytestmark = pytest.mark.slow

T, B, STATES = 24, 16, 5
"""So many rows that the bonuses of networks pay something: their first 256 pay 0."""
VIEWS = np.random.default_rng(0).integers(1, 9, (STATES, VIEW * VIEW)).astype(np.uint16)
VIEWS[1] = VIEWS[0]
"""What is seen in each state of the simulator; two of them look alike."""
ENVIRONMENT = Environment(
    draws=1,
    start=lambda uniform: jnp.zeros(uniform.shape[1:], jnp.int32),
    step=lambda state, action: (state, jnp.zeros(B), jnp.zeros(B, bool), jnp.zeros(B, bool)),
    observe=lambda state: jnp.asarray(VIEWS)[state],
    cells=STATES,
    cell=lambda state: state,
)
"""It only says what a bonus looks at: the tests make up the steps."""


def steps(seed: int = 1) -> dict[str, np.ndarray]:
    """Make up transitions between the states, with ends of episodes."""
    rng = np.random.default_rng(seed)
    return {
        "state": rng.integers(STATES, size=(T, B)).astype(np.int32),
        "action": rng.integers(7, size=(T, B)).astype(np.int32),
        "after": rng.integers(STATES, size=(T, B)).astype(np.int32),
        "done": rng.random((T, B)) < 0.15,
    }


def player(bonus: Bonus):
    """Return what `check_causal` takes: the rewards of a rollout, each time from the same start."""

    @jax.jit
    def run(made: dict[str, jax.Array]) -> jax.Array:
        def one(state, row):
            before, then = bonus.sees(row["state"]), bonus.sees(row["after"])
            return bonus.pure.update(state, before, row["action"], then, row["done"])

        key = jax.random.key_data(jax.random.key(0))
        return lax.scan(one, bonus.pure.init(key, bonus.sees(jnp.zeros(B, jnp.int32))), made)[1]

    def play(made: dict[str, np.ndarray]) -> np.ndarray:
        # Other values of the states and actions, as `check_causal` makes them, are states and actions again.
        sizes = {"state": STATES, "action": 7, "after": STATES}
        kept = {name: column % sizes[name] if name in sizes else column for name, column in made.items()}
        return np.asarray(run({name: jnp.asarray(column) for name, column in kept.items()}))

    return play


@pytest.mark.parametrize("name", BONUSES)
def test_no_bonus_of_the_arena_looks_at_what_comes_later(name):
    play = player(BONUSES[name](ENVIRONMENT, 0.5))
    check_causal(play, steps())
    assert play(steps()).std() > 0


@pytest.mark.parametrize(
    "late",
    [lambda F: F / F.std(), lambda F: np.append(F[1:], F[:1], axis=0), lambda F: F - F.mean(axis=0)],
    ids=["standardised over the rollout", "one step early", "centred over the rollout"],
)
def test_a_bonus_that_looks_ahead_is_noticed(late):
    play = player(BONUSES["views"](ENVIRONMENT, 0.5))
    with pytest.raises(InvarianceError):
        check_causal(lambda made: late(play(made)), steps())


@pytest.mark.parametrize("name", BONUSES)
def test_alpha_is_a_factor(name):
    one, other = (player(BONUSES[name](ENVIRONMENT, alpha))(steps()) for alpha in (0.5, 0.125))
    np.testing.assert_allclose(one, 4 * other, rtol=1e-5)


def visits(shown: list[int]) -> np.ndarray:
    """Return α/n of what is shown after each step by a plain loop, the episode's start counted once; α = 1/2."""
    made, paid = steps(), np.zeros((T, B))
    for b in range(B):
        seen: list[int] = []
        for t in range(T):
            seen = [*(seen or [shown[made["state"][t, b]]]), shown[made["after"][t, b]]]
            paid[t, b] = 0.5 / seen.count(seen[-1])
            if made["done"][t, b]:
                seen = []
    return paid


@pytest.mark.parametrize(("name", "shown"), [("counts", list(range(STATES))), ("views", [0, 0, *range(2, STATES)])])
def test_a_visit_pays_alpha_over_the_visits_of_this_episode(name, shown):
    np.testing.assert_allclose(player(BONUSES[name](ENVIRONMENT, 0.5))(steps()), visits(shown), rtol=1e-6)


@pytest.mark.parametrize("name", BONUSES)
def test_only_counts_distinguish_states_that_look_alike(name):
    play, made = player(BONUSES[name](ENVIRONMENT, 0.5)), steps()
    merged = {**made, **{k: np.where(made[k] == 1, 0, made[k]) for k in ("state", "after")}}
    assert np.array_equal(play(made), play(merged)) == (name != "counts")
