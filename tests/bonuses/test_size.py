"""α means the same in every bonus: about α per step, never above 10 α, and no spike at the start of training."""

from functools import cache

import gymnasium as gym
import numpy as np
import pytest

from payback.bonuses import Count, Recency, SimHash
from payback.bonuses.bonus import LIMIT, Scale
from payback.bonuses.torch import E3B, ICM, RIDE, RND, Disagreement, NovelD

from .cases import FRESH
from .streams import play

SIZES = {"width": 32, "latent": 16}
ALPHA = 0.5
BONUSES = {
    **{make.__name__: lambda space, make=make: make(ALPHA, **SIZES) for make in (RND, NovelD)},
    **{make.__name__: lambda space, make=make: make(space, ALPHA, **SIZES) for make in (ICM, RIDE, E3B, Disagreement)},
    **{make.__name__: lambda space, make=make: make(ALPHA) for make in (Count, SimHash, Recency)},
}


@cache
def random_rollout(task, B, transitions=640):
    """Return a rollout of random actions, whose observations are what the task shows."""
    vector = gym.make_vec(task, num_envs=B, vectorization_mode="sync")
    vector.action_space.seed(0)
    rollout = {key: [] for key in ("obs", "action", "next_obs", "done")}
    obs, _ = vector.reset(seed=0)
    for _ in range(transitions // B):
        action = vector.action_space.sample()
        next_obs, _, terminated, truncated, _ = vector.step(action)
        for key, value in zip(rollout, (obs, action, next_obs, terminated | truncated), strict=True):
            rollout[key].append(np.array(value))
        obs = next_obs
    vector.close()
    return {key: np.array(rows) for key, rows in rollout.items()}, vector.single_action_space


@pytest.mark.parametrize("B", [1, 8])
@pytest.mark.parametrize("task", ["CartPole-v1", "MountainCar-v0", "Pendulum-v1"])
@pytest.mark.parametrize("name", BONUSES)
def test_there_is_no_spike(name, task, B):
    """Observations near 0, as CartPole's first, once made RND pay 29 and E3B 384 times their later median."""
    rollout, space = random_rollout(task, B)
    F = play(BONUSES[name](space), rollout) / ALPHA
    assert F.max() <= LIMIT
    late = F[len(F) // 2 :]
    assert 0.1 < np.sqrt((late**2).mean()) < 3, "a bonus pays about α"


def test_values_of_another_size_are_paid_alike():
    one, other = Scale(), Scale(first=1e-6)
    rng = np.random.default_rng(0)
    for F in rng.exponential(size=(50, 4)):
        np.testing.assert_allclose(other(1e6 * F), one(F), rtol=1e-9)
        one.add(F)
        other.add(1e6 * F)


def test_scale_is_the_root_mean_square_after_half_the_warm_up():
    scale, rows = Scale(warmup=8, limit=1.5, first=0.0), np.random.default_rng(0).exponential(size=(9, 2))
    for t, F in enumerate(rows):
        expected = np.minimum(F / np.sqrt((rows[2:t] ** 2).mean()), 1.5) if t >= 4 else np.zeros(2)
        np.testing.assert_allclose(scale(F), expected)
        scale.add(F)


def test_a_warm_up_pays_nothing_and_its_end_pays():
    for warmup in (12, 30):
        rollout = {key: np.random.default_rng(1).normal(size=(20, 3, 4)) for key in ("obs", "next_obs")}
        rollout |= {"action": np.zeros((20, 3), int), "done": np.zeros((20, 3), bool)}
        F = play(FRESH["RND"](warmup=warmup), rollout)
        assert (F[: warmup // 3] == 0).all()
        assert (F[warmup // 3 :] > 0).all()
