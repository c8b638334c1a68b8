"""What may stand before a match: a function of the reward, and a running scale read before the step it scales."""

import numpy as np
import pytest
import torch

import payback

from .cases import assert_close, random_stream, step_through
from .libraries import LIBRARIES, wide

NO = np.zeros(3, bool)


def plain_rms(rewards: np.ndarray, valid: np.ndarray, fade: float) -> np.ndarray:
    """Divide by the root mean square of earlier rows, reward by reward: the definition."""
    shaped, seen = np.zeros_like(rewards), []
    for t, row in enumerate(rewards):
        # All rewards of one step fade together, by as many as come after it.
        counts = [int(valid[s].sum()) for s in range(t)]
        weights = [fade ** sum(counts[s + 1 :]) for s in range(t) for _ in range(counts[s])]
        squares = sum(w * x * x for w, x in zip(weights, seen, strict=True))
        scale = np.sqrt(squares / sum(weights)) if squares > 0 else 1.0
        shaped[t] = np.where(valid[t], row / scale, 0)
        seen += row[valid[t]].tolist()
    return shaped


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("horizon", [None, 5.0])
def test_the_scale_is_that_of_earlier_rewards(name: str, horizon: float | None):
    stream = random_stream(0, 20, 3, valid=True)
    stream.rewards[0] = 0  # nothing is divided while all rewards were 0
    expected = plain_rms(stream.rewards, stream.valid, 1.0 if horizon is None else 1 - 1 / horizon)
    with wide(name):
        library, transform = LIBRARIES[name], payback.scale_by_rms(horizon)
        _, shaped = library.step(transform, library.init(transform, stream), library.stream(stream))
        assert_close(shaped, expected)


@pytest.mark.slow
def test_before_a_match_it_keeps_the_law_and_after_it_is_refused():
    shaping = payback.chain(payback.scale_by_rms(100), payback.center(), payback.match_after(0.9, 3))
    payback.check_transform(shaping, 0.9, effort="quick")
    with pytest.raises(ValueError, match="not a constant scale"):
        payback.chain(payback.match_after(0.9, 3), payback.scale_by_rms())


def test_a_scale_that_reads_its_own_step_is_seen():
    """The mutant divides by the root mean square with the present reward in it."""
    stream = random_stream(1, 12, 2)
    _, right = step_through(payback.scale_by_rms(), stream)
    squares = np.cumsum((stream.rewards**2).sum(axis=1)) / (2 * np.arange(1, 13))
    assert np.abs(stream.rewards / np.sqrt(squares)[:, None] - right).max() > 0.01


def test_stateless_applies_a_function_to_valid_rewards():
    transform = payback.stateless(np.abs)
    valid = np.array([True, False, True])
    shaped = transform.update((), np.array([-2.0, -3.0, 4.0]), NO, valid)[1]
    assert shaped.tolist() == [2.0, 0.0, 4.0]
    _, block = payback.shape_rollout(transform, (), np.array([[-2.0, -3.0, 4.0]]), NO[None], valid[None])
    assert block.tolist() == [[2.0, 0.0, 4.0]]
    assert repr(transform) == "stateless(absolute)"


@pytest.mark.parametrize(
    ("f", "error", "sentence"),
    [
        (3, TypeError, "stateless needs a function of the reward, got 3"),
        (np.sum, ValueError, r"stateless: the function returned shape \(\) for rewards of shape \(3,\)"),
    ],
)
def test_what_is_no_function_of_each_reward_is_refused(f, error, sentence):
    with pytest.raises(error, match=sentence):
        payback.stateless(f).update((), np.ones(3), NO)


@pytest.mark.parametrize("horizon", [0, 1, -3, "long", True])
def test_a_horizon_must_be_longer_than_one_reward(horizon):
    with pytest.raises(ValueError, match="horizon must be more than 1 reward"):
        payback.scale_by_rms(horizon)


# ------------------------------------------------------------------ what a function makes of a reward is read, too


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("f", [lambda r: r > 0, lambda r: r * np.float64(2)], ids=["a flag", "a wider number"])
def test_a_function_cannot_change_the_dtype(name: str, f):
    """Else a float32 match would keep its loans in another dtype from then on."""
    library = LIBRARIES[name]
    stream = random_stream(2, 4, 2, dtype=np.float32)
    shaping = payback.chain(payback.stateless(f), payback.match_after(0.9, 2))
    before = library.init(shaping, stream)
    after, shaped = library.step(shaping, before, library.stream(stream))
    assert shaped.dtype == before[1].loans.dtype == after[1].loans.dtype == library.array(stream.rewards).dtype


def own(f):
    return payback.RewardTransform(lambda example: (), lambda s, r, done, valid=None, settle=None: (s, f(r)))


@pytest.mark.parametrize("before", [payback.stateless, own])
def test_what_is_not_finite_does_not_reach_the_mean(before):
    """At an episode's last step the reward is not paid, so that what is paid does not show it."""
    shaping = payback.chain(before(lambda r: r - np.array([0, 0, np.inf])), payback.center(), payback.match_after(1, 1))
    for call in (
        lambda: shaping.update(shaping.init(np.zeros(3)), np.ones(3), ~NO),
        lambda: payback.shape_rollout(shaping, shaping.init(np.zeros(3)), np.ones((1, 3)), ~NO[None]),
    ):
        with pytest.raises(ValueError, match=r"returned -inf for .*environment 2"):
            call()


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("before", [payback.stateless, own])
def test_a_function_may_make_anything_of_an_invalid_row(name: str, before):
    """Invalid rows hold 0, of which a logarithm makes −∞: they are paid 0 and reach no mean and no scale."""
    library = LIBRARIES[name]

    def f(r):
        return r - library.array(np.array([0, 0, np.inf], np.float32))

    shaping = payback.chain(before(f), payback.scale_by_rms(), payback.center(), payback.match_after(0.9, 1))
    ones, valid = np.ones(3, np.float32), np.array([True, True, False])
    rewards, no, valid = (library.array(x) for x in (ones, NO, valid))
    state, shaped = shaping.update(shaping.init(rewards), rewards, no, valid)
    assert shaped.tolist() == [1, 1, 0]
    assert (float(state[1].squares), float(state[2].mean)) == (2, 1)
    state, shaped = payback.shape_rollout(shaping, shaping.init(rewards), rewards[None], no[None], valid[None])
    assert shaped.tolist() == [[1, 1, 0]]
    assert (float(state[1].squares), float(state[2].mean)) == (2, 1)


def test_squares_of_large_rewards_do_not_overflow():
    shrink = payback.scale_by_rms()
    state = shrink.init(np.zeros(1, np.float32))
    for _ in range(2):
        state, shaped = shrink.update(state, np.full(1, 1e30, np.float32), NO[:1])
    assert shaped == 1


def test_a_state_of_another_horizon_is_refused():
    state = payback.scale_by_rms(100).init(np.zeros(3))
    with pytest.raises(ValueError, match="another horizon"):
        payback.scale_by_rms().update(state, np.ones(3), NO)


@pytest.mark.parametrize("make", [payback.scale_by_rms, payback.scale_by_std, lambda: payback.scale_by_return_std(0.9)])
def test_float32_rewards_stay_float32(make):
    scaling, rewards = make(), np.array([1.0, 2.0], np.float32)
    for x, no in ((rewards, np.zeros(2, bool)), (torch.from_numpy(rewards), torch.zeros(2, dtype=torch.bool))):
        _, scaled = scaling.update(scaling.init(x), x, no)
        assert scaled.dtype == x.dtype
