"""The pure bonuses for JAX: equal to the NumPy and Torch ones, under jit, scan and vmap."""

from functools import cache, partial
from types import SimpleNamespace

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from payback import check_causal
from payback.bonuses import Count, EpisodicCount
from payback.bonuses.jax import count, e3b, episodic, episodic_count, icm, noveld, ride, rnd
from payback.bonuses.jax.counts import SLOTS, hash_rows
from payback.bonuses.jax.engine import mlp
from payback.bonuses.torch import ICM

from .cases import NETWORKS, SMALL
from .streams import play, transitions

pytestmark = pytest.mark.jax

ROLLOUT = transitions(T=20, B=3)
SIZES = {"width": 16, "latent": 8, "learn_every": 3, "warmup": 12, "clip": 1.5}
SAME = {"alpha": 1.0, "share": 1.0, "batch_size": 9}
"""Learn from all that was seen in one batch, so that Torch and JAX draw the same rows."""
PURE = {
    "RND": lambda **options: rnd(**SIZES | SAME | options),
    "ICM": lambda **options: icm(3, **SIZES | SAME | options),
    "RIDE": lambda **options: ride(3, **SIZES | SAME | options),
    "NovelD": lambda **options: noveld(**SIZES | SAME | options),
    "E3B": lambda **options: e3b(3, **SIZES | SAME | options),
    "count": lambda: count(4, cell=places),
    "episodic_count": lambda: episodic_count(4, cell=places),
    "episodic_count, hashed": lambda: episodic_count(cell=places),
    "episodic RND": lambda: episodic(rnd(**SIZES, share=0.5, batch_size=3)),
}
quick = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
"""These programs run for milliseconds and would be optimised for seconds."""


def places(obs):
    return obs.argmax(-1)


def scanned(bonus, state, rollout, valid=None):
    """The state after a rollout, and all its rewards, (T, B)."""
    return quick(bonus.of_rollout)(state, *columns(rollout), valid)


def columns(rollout):
    return [jnp.asarray(rollout[key]) for key in ("obs", "action", "next_obs", "done")]


def fresh(bonus, rollout, seed=0):
    return quick(bonus.init)(jax.random.key(seed), jnp.asarray(rollout["obs"][0]))


@cache
def compiled(name):
    """A bonus, its first state, and its `of_rollout`, compiled once for all tests, with `valid` (T, B)."""
    bonus = SIDES[name][1](**SAME) if name in SIDES else PURE[name]()
    return bonus, fresh(bonus, ROLLOUT), quick(bonus.of_rollout)


EVERY = jnp.ones(ROLLOUT["done"].shape, bool)


def weights_of(name, networks):
    """A Torch bonus's weights in the form of the pure one's: (fixed, trained)."""

    def layers(network):
        # Copied, because JAX may share the memory, which Torch changes when it learns.
        values = [jnp.asarray(parameter.detach().numpy().copy()) for parameter in network.parameters()]
        return [(values[i].T, values[i + 1]) for i in range(0, len(values), 2)]

    if name in ("RND", "NovelD"):
        return layers(networks["target"]), layers(networks["predictor"])
    return (), {part: layers(networks[part]) for part in ("encoder", "model", "inverse") if part in networks}


SIDES = {
    **{name: (NETWORKS[name], PURE[name]) for name in ("RND", "ICM", "RIDE", "NovelD", "E3B")},
    "ICM, continuous": (
        lambda **options: ICM(gym.spaces.Box(-1, 1, (2,)), **SMALL | options),
        lambda **options: icm(2, discrete=False, **SIZES | options),
    ),
}


RICH = ("RIDE", "episodic RND", "count", "episodic_count", "episodic_count, hashed")
"""Their programs have all the parts of the others, each of which takes seconds to compile."""


def rich_first(names, slow=()):
    """The names as parameters; `make test` leaves those out whose parts it compiles anyway, and those in `slow`."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name not in RICH or name in slow)) for name in names]


@pytest.mark.parametrize("name", rich_first(SIDES))
def test_torch_and_jax_pay_the_same_from_the_same_weights(name):
    """Through statistics, ends of episodes and six trainings on all that was seen, with invalid rows."""
    torch_bonus, (_, state, run) = SIDES[name][0](**SAME, clip=1.5), compiled(name)
    rng = np.random.default_rng(1)
    valid = rng.random(ROLLOUT["done"].shape) < 0.8
    rollout = {**ROLLOUT, "action": rng.normal(size=(20, 3, 2))} if "continuous" in name else ROLLOUT
    torch_bonus._build((4,))  # at the first call otherwise
    fixed, trained = weights_of(name, torch_bonus.networks)
    expected = []
    for *row, done, counted in zip(
        *(rollout[key] for key in ("obs", "action", "next_obs", "done")), valid, strict=True
    ):
        expected.append(torch_bonus(*row, {"valid": counted}))
        torch_bonus.reset(done & counted)
    state, paid = run(state._replace(fixed=fixed, trained=trained), *columns(rollout), jnp.asarray(valid))
    assert paid.std() > 0.1
    np.testing.assert_allclose(paid, expected, rtol=2e-3, atol=1e-5)
    learned = jax.tree.leaves(weights_of(name, torch_bonus.networks)[1])
    for one, other in zip(jax.tree.leaves(state.trained), learned, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4)


@pytest.mark.parametrize(
    ("pure", "plain"),
    [
        (PURE["count"], Count),
        (PURE["episodic_count"], EpisodicCount),
        (lambda: count(4, root=False, cell=places), lambda: Count(root=False)),
        (lambda: count(4, cell=places, normalise=False), lambda: Count(normalise=False)),
        (lambda: episodic_count(4, root=True, cell=places), lambda: EpisodicCount(root=True)),
        (lambda: episodic_count(), EpisodicCount),
    ],
    ids=["count", "episodic_count", "count, α/n", "count as it is", "episodic_count, α/√n", "episodic_count, hashed"],
)
def test_counts_are_those_of_numpy(pure, plain):
    bonus = pure()
    _, paid = scanned(bonus, fresh(bonus, ROLLOUT), ROLLOUT)
    np.testing.assert_allclose(paid, play(plain(), ROLLOUT), rtol=1e-6)


@pytest.mark.parametrize("name", rich_first(PURE, slow=("RIDE", "episodic RND")))
def test_booleans_are_read_as_zeros_and_ones(name):
    bonus, state, run = compiled(name)
    flags = {key: ROLLOUT[key].astype(bool) for key in ("obs", "next_obs")}
    _, expected = run(state, *columns(ROLLOUT), EVERY)
    _, paid = scanned(bonus, fresh(bonus, {**ROLLOUT, **flags}), {**ROLLOUT, **flags}, EVERY)
    np.testing.assert_allclose(paid, expected, rtol=1e-5)


@cache
def of_three_cells(make):
    """A bonus of α/n for three cells, and its `update`, compiled once."""
    bonus = make(3, alpha=1.0, root=False, **({"normalise": False} if make is count else {}))
    return bonus, quick(bonus.update)


@pytest.mark.parametrize("make", [count, episodic_count])
def test_cells_may_be_booleans(make):
    """As an index, booleans would be a mask."""
    (bonus, update), no = of_three_cells(make), jnp.zeros(2, bool)
    for cells in (jnp.array([1, 0]), jnp.array([True, False])):
        state = bonus.init(jax.random.key(0), cells)
        for _ in range(2):
            state, F = update(state, 1 - cells.astype(int), None, cells, no)
        assert F.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("outside", "nearest"), [(3, 2), (99, 2), (-1, 0), (-4, 0)])
@pytest.mark.parametrize("make", [count, episodic_count])
def test_a_cell_outside_counts_as_the_nearest(make, outside, nearest):
    """Nothing can be raised under jit, and a place that is never counted would pay α for ever."""
    (bonus, update), start, no = of_three_cells(make), jnp.array([1]), jnp.array([False])
    paid = []
    for cell in (outside, nearest):
        state = bonus.init(jax.random.key(0), start)
        for _ in range(3):
            state, F = update(state, start, None, jnp.array([cell]), no)
        _, inside = update(state, start, None, jnp.array([nearest]), no)
        paid.append([*F.tolist(), *inside.tolist()])
    assert paid[0] == paid[1]
    np.testing.assert_allclose(paid[0], [1 / 3, 1 / 4], rtol=1e-6)


@pytest.mark.parametrize("name", rich_first(PURE))
def test_no_reward_depends_on_what_comes_later(name):
    _, state, run = compiled(name)
    check_causal(lambda rollout: np.asarray(run(state, *columns(rollout), EVERY)[1]), ROLLOUT)


@pytest.mark.parametrize("name", rich_first(PURE))
def test_invalid_rows_are_paid_nothing_and_change_nothing(name):
    _, state, run = compiled(name)
    state, _ = run(state, *columns(ROLLOUT), EVERY)
    obs, action, next_obs, done = columns(ROLLOUT)
    after, F = run(state, obs * jnp.nan, action, next_obs * jnp.nan, done | True, ~EVERY)
    np.testing.assert_array_equal(F, 0)
    if name in SIDES:  # a kept row that is not valid is overwritten by the next call
        after = after._replace(kept=state.kept)
    elif name == "episodic RND":
        after = after._replace(bonus=after.bonus._replace(kept=state.bonus.kept))
    for one, other in zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True):
        assert jnp.array_equal(one, other)


@pytest.mark.parametrize("name", rich_first(["RND", "episodic_count", "episodic RND", "E3B"], slow=("episodic RND",)))
def test_seeds_may_be_mapped_over(name):
    bonus, _, run = compiled(name)
    keys, rows = jax.random.split(jax.random.key(0), 2), (*columns(ROLLOUT), EVERY)
    states = [quick(bonus.init)(key, rows[0][0]) for key in keys]
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    _, paid = quick(jax.vmap(lambda state: bonus.of_rollout(state, *rows)))(both)
    np.testing.assert_allclose(paid[1], run(states[1], *rows)[1], rtol=1e-3, atol=1e-5)


def test_learn_takes_one_step_on_the_callers_rows():
    bonus = PURE["ICM"](learn_every=0)
    state, learn = fresh(bonus, ROLLOUT), quick(bonus.learn)
    rows = [jnp.asarray(ROLLOUT[key].reshape(60, *ROLLOUT[key].shape[2:])) for key in ("obs", "action", "next_obs")]
    losses = []
    for _ in range(51):
        state, loss = learn(state, *rows)
        losses.append(float(loss))
    assert losses[-1] < losses[0]
    assert int(state.optimiser.step) == 51


@pytest.mark.parametrize("make", [icm, ride, e3b])
def test_missing_actions_are_refused(make):
    bonus, obs = make(actions=2, width=4, latent=4), jnp.eye(3)
    state = jax.eval_shape(bonus.init, jax.random.key(0), obs)
    with pytest.raises(ValueError, match="needs the action"):
        bonus.update(state, obs, None, obs, jnp.zeros(3, bool))
    with pytest.raises(ValueError, match="needs the action"):
        bonus.learn(state, obs, None, obs)


@pytest.mark.parametrize("make", [icm, ride, e3b, lambda *n, **options: episodic(icm(*n, **options))])
def test_actions_are_found_in_the_environment(make):
    obs, no, sizes = jnp.eye(3), jnp.zeros(3, bool), {"width": 4, "latent": 4, "normalise": False}
    for space, given, action in (
        (SimpleNamespace(n=2), make(2, **sizes), jnp.array([0, 1, 0])),
        (SimpleNamespace(shape=(2,)), make(2, discrete=False, **sizes), jnp.ones((3, 2))),
    ):
        unbound = make(**sizes)
        with pytest.raises(ValueError, match="does not know the actions"):
            unbound.init(jax.random.key(0), obs)
        bound = unbound.bind(space)
        assert bound.for_actions is None
        assert given.bind(SimpleNamespace(n=9)) is given
        F = [one.update(one.init(jax.random.key(0), obs), obs, action, obs, no)[1] for one in (bound, given)]
        np.testing.assert_array_equal(*F)


def test_wrong_sizes_are_refused():
    with pytest.raises(ValueError, match=r"share must lie in \(0, 1\]"):
        rnd(share=2)
    with pytest.raises(ValueError, match="actions must be a whole number"):
        icm(0)


def test_an_invalid_row_does_not_begin_an_episode():
    """After an end, Gymnasium's NEXT_STEP gives an invalid row; the next valid one still starts at its own `obs`."""
    bonus, yes, no = episodic_count(3, alpha=1.0), jnp.array([True]), jnp.array([False])
    state, update = bonus.init(jax.random.key(0), jnp.array([0])), quick(bonus.update)
    state, _ = update(state, jnp.array([0]), None, jnp.array([1]), yes, yes)
    state, _ = update(state, jnp.array([1]), None, jnp.array([0]), no, no)
    _, F = update(state, jnp.array([0]), None, jnp.array([0]), no, yes)
    assert F.tolist() == [0.5]


# ------------------------------------------------------------------ hashed visits


def views(T=400, B=4, size=60, seed=0):
    """A rollout of 7×7×3 views, drawn from a few, with ends of episodes and invalid rows."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(11, size=(size, 7, 7, 3)).astype(np.uint8)
    index = rng.integers(size, size=(T + 1, B))
    rollout = {"obs": drawn[index[:-1]], "next_obs": drawn[index[1:]], "action": np.zeros((T, B), int)}
    return {**rollout, "done": rng.random((T, B)) < 0.02}, rng.random((T, B)) < 0.9


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float32])
def test_hashed_visits_are_those_of_a_dictionary(dtype):
    """Over many episodes without a cleared table, with invalid rows."""
    rollout, valid = views()
    rollout |= {key: rollout[key].astype(dtype) for key in ("obs", "next_obs")}
    pure, plain, expected = episodic_count(slots=2**20), EpisodicCount(), []
    for obs, next_obs, done, counted in zip(*(rollout[key] for key in ("obs", "next_obs", "done")), valid, strict=True):
        expected.append(plain(obs, None, next_obs, {"valid": counted}))
        plain.reset(done & counted)
    _, paid = scanned(pure, fresh(pure, rollout), rollout, jnp.asarray(valid))
    np.testing.assert_allclose(paid, expected, rtol=1e-6)


def test_episodic_divides_by_the_visits_of_this_episode():
    rollout, valid = views(T=200)
    alone = count(11, cell=lambda obs: obs[:, 3, 3, 0])
    counts, bonus, rooted = episodic_count(alpha=1.0), episodic(alone), episodic(alone, root=True)
    paid = [
        scanned(pure, fresh(pure, rollout), rollout, jnp.asarray(valid))[1] for pure in (counts, alone, bonus, rooted)
    ]
    n = 1 / paid[0][valid]
    assert n.max() > 3
    for found, expected in ((paid[2], paid[1][valid] / n), (paid[3], paid[1][valid] / n**0.5)):
        np.testing.assert_allclose(found[valid], expected, rtol=1e-5)
        np.testing.assert_array_equal(found[~valid], 0)


def test_episodic_counts_what_the_key_returns():
    counts = count(9, alpha=1.0, root=False, cell=lambda obs: obs[:, 0], normalise=False)
    bonus, start, no = episodic(counts, key=lambda obs: obs[:, 0]), jnp.array([[0, 0]]), jnp.array([False])
    state, update = bonus.init(jax.random.key(0), start), quick(bonus.update)
    for other in (1, 2):
        state, F = update(state, start, None, jnp.array([[5, other]]), no)
    assert F.tolist() == [0.25]
    assert bonus.learn is None
    assert episodic(PURE["RND"]()).learn is not None


@pytest.mark.parametrize("kind", ["one-hot floats", "small integers", "flags"])
def test_collisions_are_as_rare_as_documented(kind):
    """k of `slots` slots are taken, so k²/(2 slots) pairs collide by chance, whatever the numbers are."""
    rng, k = np.random.default_rng(0), 2000
    rows = {
        "one-hot floats": lambda: np.eye(k, dtype=np.float32),
        "small integers": lambda: np.unique(rng.integers(3, size=(k, 7, 7, 3)), axis=0),
        "flags": lambda: np.unique(rng.random((k, 30)) < 0.5, axis=0),
    }[kind]()
    hashed = np.asarray(hash_rows(jnp.asarray(rows)))
    assert len(np.unique(hashed)) == len(rows)
    collided = len(rows) - len(np.unique(hashed % SLOTS))
    assert collided == pytest.approx(k * k / 2 / SLOTS, rel=0.35)


def test_minus_zero_is_zero_when_it_is_hashed():
    rows = hash_rows(jnp.array([[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]]))
    assert rows[0] == rows[2] != rows[1]


@pytest.mark.slow
def test_e3b_stays_right_over_a_long_episode():
    """C⁻¹ is updated in float32 at every step; rounding adds up."""
    bonus, rng = e3b(3, 1.0, width=16, latent=8, normalise=False, whiten=False, learn_every=0), np.random.default_rng(0)
    obs = jnp.asarray(rng.normal(size=(3000, 1, 4)), jnp.float32)
    rollout = {"obs": obs, "next_obs": obs, "action": np.zeros((3000, 1), int), "done": np.zeros((3000, 1), bool)}
    state, paid = scanned(bonus, fresh(bonus, rollout), rollout)
    features = np.asarray(mlp(state.trained["encoder"], obs[:, 0]), np.float64)
    C = 0.1 * np.eye(8) + features[:-1].T @ features[:-1]
    assert paid[-1, 0] == pytest.approx(features[-1] @ np.linalg.inv(C) @ features[-1], rel=1e-3)


@pytest.mark.parametrize("name", rich_first(["RND", "E3B", "count", "episodic RND"]))
def test_a_state_is_arrays_that_any_library_saves(name):
    """Orbax refuses arrays without entries, flax's `to_bytes` typed keys; both keep a state as NumPy arrays."""
    bonus, obs = PURE[name](), jnp.asarray(ROLLOUT["obs"][0])
    for learn_every in (3, 0):
        bonus = rnd(width=4, latent=2, learn_every=learn_every) if name == "RND" else bonus
        leaves = jax.tree.leaves(jax.eval_shape(bonus.init, jax.random.key(0), obs))
        assert all(leaf.size and not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) for leaf in leaves)


def test_a_saved_state_goes_on():
    """With a key of either kind, which draws the same."""
    (bonus, _, run), rows, paid = compiled("episodic RND"), (*columns(ROLLOUT), EVERY), []
    for key in (jax.random.key(5), jax.random.key_data(jax.random.key(5))):
        state, _ = run(quick(bonus.init)(key, rows[0][0]), *rows)
        leaves, form = jax.tree.flatten(state)
        again = jax.tree.unflatten(form, [jnp.asarray(np.array(leaf)) for leaf in leaves])
        paid.append(run(again, *rows)[1])
    np.testing.assert_array_equal(*paid)
    assert paid[0].std() > 0
