"""The pure bonuses for JAX: equal to the NumPy and Torch ones, under jit, scan and vmap."""

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from payback import check_causal
from payback.bonuses import Count, EpisodicCount
from payback.bonuses.jax import count, episodic_count, icm, rnd
from payback.bonuses.torch import ICM

from .cases import NETWORKS, SMALL
from .streams import play, transitions

ROLLOUT = transitions(T=20, B=3)
PURE = {
    "RND": lambda **options: rnd(width=16, latent=8, learn_every=3, **options),
    "ICM": lambda **options: icm(3, width=16, latent=8, learn_every=3, **options),
    "count": lambda: count(4, cell=lambda obs: obs.argmax(-1)),
    "episodic_count": lambda: episodic_count(4, cell=lambda obs: obs.argmax(-1)),
}


def scanned(bonus, state, rollout, valid=None):
    """All rewards of a rollout, (T, B), in one scan."""
    columns = [jnp.asarray(rollout[key]) for key in ("obs", "action", "next_obs", "done")]
    columns += [] if valid is None else [valid]
    return jax.lax.scan(lambda state, row: bonus.update(state, *row), state, columns)


def fresh(bonus, rollout, seed=0):
    return bonus.init(jax.random.key(seed), jnp.asarray(rollout["obs"][0]))


def weights_of(name, networks):
    """A Torch bonus's weights in the form of the pure one's: (fixed, trained)."""

    def layers(network):
        values = [jnp.asarray(parameter.detach().numpy()) for parameter in network.parameters()]
        return [(values[i].T, values[i + 1]) for i in range(0, len(values), 2)]

    if name == "RND":
        return layers(networks["target"]), layers(networks["predictor"])
    return (), {part: layers(networks[part]) for part in ("encoder", "model", "inverse")}


SAME = {"share": 1.0, "batch_size": 9}
SIDES = {
    "RND": (NETWORKS["RND"], PURE["RND"]),
    "ICM": (NETWORKS["ICM"], PURE["ICM"]),
    "ICM, continuous": (
        lambda **options: ICM(gym.spaces.Box(-1, 1, (2,)), **SMALL | options),
        lambda **options: icm(2, discrete=False, width=16, latent=8, learn_every=3, **options),
    ),
}


@pytest.mark.parametrize("name", SIDES)
def test_torch_and_jax_pay_the_same_from_the_same_weights(name):
    """Through statistics and six trainings on all that was seen, with invalid rows."""
    torch_bonus, pure = (make(**SAME) for make in SIDES[name])
    rng = np.random.default_rng(1)
    valid = rng.random(ROLLOUT["done"].shape) < 0.8
    rollout = {**ROLLOUT, "action": rng.normal(size=(20, 3, 2))} if "continuous" in name else ROLLOUT
    torch_bonus._build((4,))  # at the first call otherwise
    fixed, trained = weights_of(name, torch_bonus.networks)
    rows = zip(*(rollout[key] for key in ("obs", "action", "next_obs")), valid, strict=True)
    expected = np.array([torch_bonus(*row, {"valid": counted}) for *row, counted in rows])
    state = fresh(pure, rollout)._replace(fixed=fixed, trained=trained)
    state, paid = scanned(pure, state, rollout, jnp.asarray(valid))
    assert paid.std() > 0.005
    np.testing.assert_allclose(paid, expected, rtol=2e-3, atol=1e-5)
    learned = jax.tree.leaves(weights_of(name, torch_bonus.networks)[1])
    for one, other in zip(jax.tree.leaves(state.trained), learned, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize(
    ("pure", "plain"),
    [
        (PURE["count"], Count),
        (PURE["episodic_count"], EpisodicCount),
        (lambda: count(4, root=False, cell=lambda obs: obs.argmax(-1)), lambda: Count(root=False)),
        (lambda: episodic_count(4, root=True, cell=lambda obs: obs.argmax(-1)), lambda: EpisodicCount(root=True)),
    ],
    ids=["count", "episodic_count", "count, α/n", "episodic_count, α/√n"],
)
def test_counts_are_those_of_numpy(pure, plain):
    bonus = pure()
    _, paid = scanned(bonus, fresh(bonus, ROLLOUT), ROLLOUT)
    np.testing.assert_allclose(paid, play(plain(), ROLLOUT), rtol=1e-6)


@pytest.mark.parametrize("name", PURE)
def test_booleans_are_read_as_zeros_and_ones(name):
    bonus = PURE[name]()
    flags = {key: ROLLOUT[key].astype(bool) for key in ("obs", "next_obs")}
    _, expected = scanned(bonus, fresh(bonus, ROLLOUT), ROLLOUT)
    _, paid = scanned(bonus, fresh(bonus, {**ROLLOUT, **flags}), {**ROLLOUT, **flags})
    np.testing.assert_allclose(paid, expected, rtol=1e-5)


@pytest.mark.parametrize("make", [count, episodic_count])
def test_cells_may_be_booleans(make):
    """As an index, booleans would be a mask."""
    bonus, no = make(2, alpha=1.0, root=False), jnp.zeros(2, bool)
    for cells in (jnp.array([1, 0]), jnp.array([True, False])):
        state = bonus.init(jax.random.key(0), cells)
        for _ in range(2):
            state, F = bonus.update(state, 1 - cells.astype(int), None, cells, no)
        assert F.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("outside", "nearest"), [(3, 2), (99, 2), (-1, 0), (-4, 0)])
@pytest.mark.parametrize("make", [count, episodic_count])
def test_a_cell_outside_counts_as_the_nearest(make, outside, nearest):
    """Nothing can be raised under jit, and a place that is never counted would pay α for ever."""
    bonus, no = make(3, alpha=1.0, root=False), jnp.array([False])
    paid = []
    for cell in (outside, nearest):
        state = bonus.init(jax.random.key(0), jnp.array([1]))
        for _ in range(3):
            state, F = jax.jit(bonus.update)(state, jnp.array([1]), None, jnp.array([cell]), no)
        _, inside = bonus.update(state, jnp.array([1]), None, jnp.array([nearest]), no)
        paid.append([*F.tolist(), *inside.tolist()])
    assert paid[0] == paid[1]
    np.testing.assert_allclose(paid[0], [1 / 3, 1 / 4], rtol=1e-6)


@pytest.mark.parametrize("name", PURE)
def test_no_reward_depends_on_what_comes_later(name):
    bonus = PURE[name]()
    state = fresh(bonus, ROLLOUT)
    run = jax.jit(lambda rollout: scanned(bonus, state, rollout)[1])
    check_causal(lambda rollout: np.asarray(run(rollout)), ROLLOUT)


@pytest.mark.parametrize("name", PURE)
def test_invalid_rows_are_paid_nothing_and_change_nothing(name):
    bonus = PURE[name]()
    state = fresh(bonus, ROLLOUT)
    row = [jnp.asarray(ROLLOUT[key][0]) for key in ("obs", "action", "next_obs", "done")]
    update = jax.jit(bonus.update)
    for t in range(2):
        state, _ = update(state, *(jnp.asarray(ROLLOUT[key][t]) for key in ("obs", "action", "next_obs", "done")))
    never = jnp.zeros(3, bool)
    after, F = update(state, jnp.full_like(row[0], jnp.nan), row[1], jnp.full_like(row[2], jnp.nan), ~never, never)
    np.testing.assert_array_equal(F, 0)
    if name in ("RND", "ICM"):  # a kept row that is not valid is overwritten by the next call
        after = after._replace(kept=state.kept)
    for one, other in zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True):
        assert jnp.array_equal(one, other)


@pytest.mark.parametrize("name", ["RND", "episodic_count"])
def test_seeds_may_be_mapped_over(name):
    bonus, keys = PURE[name](), jax.random.split(jax.random.key(0), 2)
    states = jax.vmap(lambda key: bonus.init(key, jnp.asarray(ROLLOUT["obs"][0])))(keys)
    _, paid = jax.vmap(lambda state: scanned(bonus, state, ROLLOUT))(states)
    _, alone = scanned(bonus, bonus.init(keys[1], jnp.asarray(ROLLOUT["obs"][0])), ROLLOUT)
    np.testing.assert_allclose(paid[1], alone, rtol=1e-3, atol=1e-5)


def test_learn_takes_one_step_on_the_callers_rows():
    bonus = icm(3, width=16, latent=8, learn_every=0)
    state = fresh(bonus, ROLLOUT)
    rows = [jnp.asarray(ROLLOUT[key].reshape(60, *ROLLOUT[key].shape[2:])) for key in ("obs", "action", "next_obs")]
    state, first = bonus.learn(state, *rows)
    learn = jax.jit(bonus.learn)
    for _ in range(50):
        state, last = learn(state, *rows)
    assert last < first
    assert int(state.optimiser.step) == 51


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match=r"share must lie in \(0, 1\]"):
        rnd(share=2)
    with pytest.raises(ValueError, match="actions must be a whole number"):
        icm(0)


def test_an_invalid_row_does_not_begin_an_episode():
    """After an end, Gymnasium's NEXT_STEP gives an invalid row; the next valid one still starts at its own `obs`."""
    bonus, yes, no = episodic_count(3, alpha=1.0), jnp.array([True]), jnp.array([False])
    state = bonus.init(jax.random.key(0), jnp.array([0]))
    state, _ = bonus.update(state, jnp.array([0]), None, jnp.array([1]), yes)
    state, _ = bonus.update(state, jnp.array([1]), None, jnp.array([0]), no, no)
    _, F = bonus.update(state, jnp.array([0]), None, jnp.array([0]), no, yes)
    assert F.tolist() == [0.5]
