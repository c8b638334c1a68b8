"""What the learner is paid on DoorKey, and what is recorded of it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import payback
from payback_lab.environments.doorkey.rules import make_doorkey
from payback_lab.learners.ppo.actor_critic import initial_parameters
from payback_lab.learners.ppo.config import PPO
from payback_lab.learners.ppo.rollout import Events, Tally, collect, doorkey_environment, initial_actors, sample
from payback_lab.learners.ppo.train import WINDOW, Train, make_train, recorded
from payback_lab.methods import transform_of

pytestmark = pytest.mark.slow

CONFIG = PPO(gamma=0.99, alpha=0.02, steps=256)
ENVIRONMENT = doorkey_environment(make_doorkey(5, max_steps=60))


@functools.cache
def two_rollouts(scheme: str):
    """Collect twice, the second going on where the first stopped; return the end and all that happened."""
    transform = transform_of(scheme, CONFIG.gamma)
    parameters = initial_parameters(jax.random.key(0))
    step = jax.jit(lambda actors, key: collect(CONFIG, ENVIRONMENT, transform, parameters, actors, key))
    actors = initial_actors(CONFIG, ENVIRONMENT, transform, jax.random.key(1))
    found = []
    for k in range(2):
        actors, rollout, _, events = step(actors, jax.random.key(2 + k))
        found.append(jax.device_get((rollout.reward, rollout.alive, events)))
    return actors, jax.tree.map(lambda *parts: np.concatenate(parts), *found)


@pytest.mark.parametrize("scheme", ["none", "im", "pbim", "grm-1-raw", "grm-10"])
@pytest.mark.filterwarnings("ignore::payback.InterestWarning")
def test_the_learner_is_paid_reward_plus_what_the_scheme_makes_of_the_bonus(scheme):
    """Against the core's block form in float64, over episode ends and the border of two rollouts."""
    actors, (paid, alive, events) = two_rollouts(scheme)
    assert events.done.sum() > 10
    transform = transform_of(scheme, CONFIG.gamma)
    expected = np.zeros_like(events.bonus)
    if transform is not None:
        bonus = events.bonus.astype(np.float64)
        _, expected = payback.shape_rollout(transform, transform.init(bonus[0]), bonus, events.done)
    np.testing.assert_allclose(events.shaped, expected, rtol=2e-4, atol=2e-6)
    np.testing.assert_allclose(paid - events.shaped, events.done & ~events.truncated, atol=1e-6)
    np.testing.assert_array_equal(alive[1:], ~events.done[:-1])
    if scheme in ("pbim", "grm-10"):
        mean = actors.shaping[0]
        assert int(mean.count) == events.bonus.size
        assert float(mean.mean) == pytest.approx(events.bonus.mean(), rel=1e-5)


def test_what_was_paid_is_repaid_in_every_episode():
    _, (_, _, events) = two_rollouts("grm-10")
    share = np.abs(events.tally.shaped) / events.tally.turnover
    assert share[events.done].max() < 1e-5
    _, (_, _, events) = two_rollouts("im")
    np.testing.assert_allclose(events.tally.shaped[events.done], events.tally.turnover[events.done])


def test_the_bonus_counts_visits_of_this_episode():
    """α/n: the largest is α, every one is α over a whole number, and an episode's first is never a third."""
    _, (_, alive, events) = two_rollouts("none")
    visits = CONFIG.alpha / events.bonus
    np.testing.assert_allclose(visits, np.round(visits), rtol=1e-5)
    assert np.round(visits).min() == 1
    assert set(np.round(visits[alive == 0])) == {1, 2}


def test_lengths_are_those_of_the_episodes():
    _, (_, _, events) = two_rollouts("none")
    for lane in range(CONFIG.environments):
        ends = np.flatnonzero(events.done[:, lane])
        np.testing.assert_array_equal(events.tally.length[ends, lane], np.diff(ends, prepend=-1))
        assert (events.tally.length[ends, lane] <= 60).all()
    np.testing.assert_array_equal(events.tally.length[events.done] == 60, events.truncated[events.done])


def happened(rng, T: int, often: float) -> Events:
    """Make up T steps; `often` is the share of steps that end an episode."""
    shape = (T, CONFIG.environments)
    done = rng.random(shape) < often
    length = rng.integers(1, 60, shape).astype(np.float32)
    tally = Tally(length, rng.random(shape, dtype=np.float32), length, length * 0, length * 0 + 1)
    return Events(done, done & (length > 40), *rng.random((2, *shape), dtype=np.float32), tally)


def test_the_record_is_torch_ac_s():
    """The lengths it reports are the last 16, or all of an update's episodes if more have ended."""
    rng = np.random.default_rng(0)
    log, lengths = [], jnp.full(WINDOW, -1.0)
    for update, often in enumerate((0.0, 0.003, 0.0, 0.03, 0.001, 0.0)):
        events = happened(rng, CONFIG.steps, often)
        train = Train(None, jnp.int32(update), None, None, lengths)
        lengths, record = recorded(CONFIG, train, jax.tree.map(jnp.asarray, events))
        new = events.tally.length[events.done].tolist()
        log += new
        window = log[-max(len(new), WINDOW) :]
        assert record.steps == (update + 1) * CONFIG.samples
        assert (record.episodes, record.truncated) == (len(new), events.truncated.sum())
        for values, mean, std in ((new, "length_mean", "length_std"), (window, "window_mean", "window_std")):
            expected = (np.mean(values), np.std(values)) if values else (np.nan, np.nan)
            np.testing.assert_allclose((getattr(record, mean), getattr(record, std)), expected, rtol=1e-5)
        assert record.bonus == pytest.approx(events.bonus.mean(), rel=1e-5)
        assert record.shaped == pytest.approx(events.shaped.mean(), rel=1e-5)
        if new:
            assert record.reward == pytest.approx(events.tally.reward[events.done].mean(), rel=1e-5)
        assert np.asarray(lengths).tolist() == [-1.0] * (WINDOW - len(log[-WINDOW:])) + log[-WINDOW:]


def test_actions_are_sampled_by_their_probabilities():
    logits = jnp.array([0.0, -1.0, 2.0, -30.0, 1.0, 0.5, 0.0])
    uniform = (jnp.arange(100_000) + 0.5) / 100_000
    action, log_prob = sample(jnp.broadcast_to(logits[:, None], (7, 100_000)), uniform)
    expected = np.asarray(jax.nn.softmax(logits))
    np.testing.assert_allclose(np.bincount(action, minlength=7) / 100_000, expected, atol=2e-5)
    np.testing.assert_allclose(np.exp(log_prob), expected[np.asarray(action)], rtol=1e-5)


def test_another_gamma_for_the_shaping_is_refused():
    with pytest.raises(ValueError, match=r"shaping's γ is 0.9 and the learner's 0.99"):
        make_train(CONFIG, ENVIRONMENT, payback.grm(0.9, delay=1))


@pytest.mark.parametrize(
    "wrong", [{"alpha": 0.0}, {"gamma": 1.2}, {"recurrence": 3}, {"epochs": 3}, {"batch": 4096}, {"steps": 127}]
)
def test_a_config_that_cannot_be_trained_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PPO(**wrong)
