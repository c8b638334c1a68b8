"""Division by running deviations, and schedules: beside a plain re-computation, in every library, over blocks."""

import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import payback

from .libraries import LIBRARIES

RNG = np.random.default_rng(0)
T, B = 30, 3
REWARDS, DONES = RNG.exponential(size=(T, B)), RNG.random((T, B)) < 0.15
VALID = RNG.random((T, B)) < 0.8
MAKE = {
    "std": payback.scale_by_std,
    "std, horizon": lambda: payback.scale_by_std(20),
    "return std": lambda: payback.scale_by_return_std(0.9),
    "schedule": lambda: payback.scale_by_schedule(lambda n: 1 / (1 + n / 40)),
}


def stepped(transform, rewards=REWARDS, dones=DONES, valid=None):
    state, paid = transform.init(rewards[0]), []
    for t in range(len(rewards)):
        state, shaped = transform.update(state, rewards[t], dones[t], None if valid is None else valid[t])
        paid.append(shaped)
    return state, paid


def test_std_is_that_of_the_rewards_before():
    _, paid = stepped(payback.scale_by_std(), valid=VALID)
    for t in range(2, T):
        expected = np.where(VALID[t], REWARDS[t] / REWARDS[:t][VALID[:t]].std(), 0)
        np.testing.assert_allclose(paid[t], expected, rtol=1e-9)


def test_with_a_horizon_old_rewards_fade():
    _, paid = stepped(payback.scale_by_std(20))
    weights = np.repeat((1 - 1 / 20) ** (B * np.arange(T - 1)[::-1]), B)
    rows = REWARDS[:-1].ravel()
    mean = (weights * rows).sum() / weights.sum()
    np.testing.assert_allclose(paid[-1], REWARDS[-1] / np.sqrt((weights * (rows - mean) ** 2).sum() / weights.sum()))


def test_return_std_is_that_of_the_discounted_sums_before():
    _, paid = stepped(payback.scale_by_return_std(0.9), valid=VALID)
    returns, seen = np.zeros(B), []
    for t in range(T):
        if len(seen) > 3:
            np.testing.assert_allclose(paid[t], np.where(VALID[t], REWARDS[t] / np.std(seen), 0), rtol=1e-9)
        returns = np.where(VALID[t], 0.9 * returns + REWARDS[t], returns)
        seen += returns[VALID[t]].tolist()
        returns[DONES[t] & VALID[t]] = 0


def test_a_schedule_counts_valid_rewards():
    state, paid = stepped(MAKE["schedule"](), valid=VALID)
    for t in range(T):
        expected = np.where(VALID[t], REWARDS[t] / (1 + VALID[:t].sum() / 40), 0)
        np.testing.assert_allclose(paid[t], expected)
    assert state.steps == VALID.sum()


def test_a_schedule_does_not_start_anew_after_two_to_the_31_rewards():
    """In JAX without x64, whose integers wrap around."""
    over = payback.scale_by_schedule(lambda n: jnp.clip(1 - n / 100, 0, 1))
    state = over.init(jnp.zeros(8, jnp.float32))._replace(steps=jnp.int32(2**31 - 5))
    for _ in range(3):
        state, paid = over.update(state, jnp.ones(8, jnp.float32), jnp.zeros(8, bool))
        assert not paid.any()


@pytest.mark.parametrize("name", MAKE)
def test_constant_rewards_are_left_alone(name):
    if name != "schedule":
        _, paid = stepped(MAKE[name](), np.full((9, B), 0.1), np.ones((9, B), dtype=bool))
        np.testing.assert_array_equal(paid, 0.1)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", MAKE)
def test_every_library_and_blocks_pay_the_same(name, library):
    transform, array = MAKE[name](), LIBRARIES[library].array
    expected = np.array(stepped(transform, valid=VALID)[1])
    columns = [array(REWARDS.astype(np.float32)), array(DONES), array(VALID)]
    _, paid = stepped(transform, *columns)
    np.testing.assert_allclose(np.array([np.asarray(row) for row in paid]), expected, rtol=1e-4)
    _, block = payback.shape_rollout(transform, transform.init(columns[0][0]), *columns)
    np.testing.assert_allclose(np.asarray(block), expected, rtol=1e-4)


@pytest.mark.parametrize("name", MAKE)
def test_before_a_match_only(name):
    shaping = payback.chain(MAKE[name](), payback.match_after(0.9, 3))
    _, paid = stepped(shaping, REWARDS, np.arange(T)[:, None] + np.zeros((1, B)) == T - 1)
    np.testing.assert_allclose(0.9 ** np.arange(T) @ paid, 0, atol=1e-9)
    with pytest.raises(ValueError, match="after the match"):
        payback.chain(payback.match_after(0.9, 3), MAKE[name]())


@pytest.mark.parametrize("name", MAKE)
def test_nothing_depends_on_what_comes_later(name):
    payback.check_causal(lambda rollout: np.array(stepped(MAKE[name](), rollout["F"], DONES)[1]), {"F": REWARDS})


@pytest.mark.parametrize("name", MAKE)
def test_a_saved_state_goes_on(name, tmp_path):
    transform = MAKE[name]()
    state, _ = stepped(transform)
    payback.save_state(tmp_path / "state", state)
    loaded = payback.load_state(tmp_path / "state", like=transform.init(REWARDS[0]))
    row = REWARDS[0], DONES[0]
    np.testing.assert_array_equal(transform.update(loaded, *row)[1], transform.update(state, *row)[1])


def test_they_pickle_and_compare():
    for transform in (payback.scale_by_std(9), payback.scale_by_return_std(0.9)):
        assert pickle.loads(pickle.dumps(transform)) == transform
    assert repr(payback.scale_by_return_std(0.9)) == "scale_by_return_std(gamma=0.9)"
    assert payback.scale_by_std() != payback.scale_by_std(9)


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (lambda n: float("nan"), "returned nan after 0 steps"),
        (lambda n: n / 0.0 if n else 1.0, "returned inf after 3 steps"),
        (lambda n: np.ones(2), r"returned shape \(2,\)"),
        (lambda n: "half", "returned a str"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_schedules_that_return_no_number(schedule, words):
    with pytest.raises(ValueError, match=words):
        stepped(payback.scale_by_schedule(schedule))


def test_wrong_parameters():
    with pytest.raises(TypeError, match="function of the number of steps"):
        payback.scale_by_schedule(0.5)
    for gamma in (0, 1.5, "0.9"):
        with pytest.raises(ValueError, match="gamma"):
            payback.scale_by_return_std(gamma)
    with pytest.raises(ValueError, match="horizon"):
        payback.scale_by_std(0.5)
    with pytest.raises(ValueError, match=r"γ = 0\.9"):
        payback.scale_by_return_std(0.8).update(
            payback.scale_by_return_std(0.9).init(np.zeros(B)), REWARDS[0], DONES[0]
        )
