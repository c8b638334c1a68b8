"""Every bonus trains inside Gymnasium's and SB3's loops, and the shaped rewards of an episode sum to zero."""

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

import payback
from payback.bonuses.torch import E3B, ICM, RIDE, Disagreement
from payback.integrations import gymnasium, sb3
from payback.integrations.host import BonusPerEnvironment

from .cases import FRESH, NETWORKS
from .streams import Ring

GAMMA = 0.9
pytestmark = pytest.mark.filterwarnings("ignore:.*truncated episode:payback.ShapingWarning")


def weights(bonus):
    return {key: weight.clone() for key, weight in bonus.networks.state_dict().items()}


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("name", FRESH)
def test_in_gymnasiums_vectors(name, mode):
    bonus, rng = FRESH[name](), np.random.default_rng(0)
    envs = gymnasium.ShapeVectorReward(
        SyncVectorEnv([Ring] * 2, autoreset_mode=mode), bonus, payback.grm(GAMMA, delay=2)
    )
    envs.reset(seed=0)
    total, discount, sums, moved = np.zeros(2), np.ones(2), [], np.zeros(2)
    for _ in range(30):
        _, _, terminated, truncated, info = envs.step(rng.integers(3, size=2))
        total, moved, discount = total + discount * info["shaped"], moved + abs(info["shaped"]), discount * GAMMA
        done = terminated | truncated
        sums += total[done].tolist()
        total[done], discount[done] = 0, 1
        if mode is AutoresetMode.DISABLED and done.any():
            envs.reset(options={"reset_mask": done})
    assert len(sums) > 5
    assert moved.min() > 0
    np.testing.assert_allclose(sums, 0, atol=1e-9)
    envs.close()


@pytest.mark.parametrize("name", FRESH)
def test_in_sb3(name):
    bonus = FRESH[name]()
    env = sb3.ShapeVectorReward(make_vec_env(Ring, n_envs=2, seed=0), bonus, payback.grm(GAMMA, delay=2))
    model = PPO("MlpPolicy", env, gamma=GAMMA, n_steps=16, batch_size=16, n_epochs=1, seed=0)
    obs = env.reset()
    assert np.isfinite(bonus(obs, np.zeros(2, dtype=int), obs, [{}, {}])).all()
    before = weights(bonus) if name in NETWORKS else {}
    model.learn(64, callback=sb3.CheckShaping())
    if name in NETWORKS:
        after = bonus.networks.state_dict()
        assert any(not torch.equal(after[key], before[key]) for key in before), "it has trained itself"


class Views(Ring):
    """The ring with a Dict of an image and a vector, as many environments have it."""

    observation_space = gym.spaces.Dict(
        {"image": gym.spaces.Box(0, 10, (7, 7, 3), np.uint8), "place": gym.spaces.Box(0, 1, (5,), np.float32)}
    )

    def _seen(self, place):
        return {"image": np.full((7, 7, 3), 2 * self.place, np.uint8), "place": place}

    def reset(self, *, seed=None, options=None):
        place, info = super().reset(seed=seed)
        return self._seen(place), info

    def step(self, action):
        place, *rest = super().step(action)
        return self._seen(place), *rest


@pytest.mark.parametrize("make", [ICM, RIDE, E3B, Disagreement], ids=lambda make: make.__name__)
def test_the_action_space_is_the_environments(make):
    transform = payback.grm(GAMMA, delay=2)
    for env in (
        sb3.ShapeVectorReward(make_vec_env(Ring, n_envs=2, seed=0), make(), transform),
        gymnasium.ShapeVectorReward(SyncVectorEnv([Ring] * 2), make(), transform),
        gymnasium.ShapeReward(Ring(), make(), transform),
    ):
        env.reset()
        env.step(1 if isinstance(env, gym.Wrapper) else np.array([0, 2]))
        env.close()


@pytest.mark.parametrize("name", NETWORKS)
def test_dicts_and_images_in_sb3(name):
    """All of a Dict, flattened; and its image alone, through the CNN."""
    for view in (None, lambda obs: obs["image"]):
        bonus = NETWORKS[name](view=view)
        env = sb3.ShapeVectorReward(make_vec_env(Views, n_envs=2, seed=0), bonus, payback.grm(GAMMA, delay=2))
        model = PPO("MultiInputPolicy", env, gamma=GAMMA, n_steps=8, batch_size=16, n_epochs=1, seed=0)
        model.learn(16, callback=sb3.CheckShaping())
        convolutions = [m for m in bonus.networks.modules() if isinstance(m, torch.nn.Conv2d)]
        assert bool(convolutions) == (view is not None)


def test_what_is_kept_is_a_copy():
    """Hosts may write the next observation into the memory of the last, before the bonus learns from it."""
    for name, make in NETWORKS.items():
        rewards = []
        for copies in (True, False):
            bonus, shared, paid = make(), np.zeros((2, 4), dtype=np.float32), []
            for t in range(8):
                shared[:] = np.random.default_rng(t).normal(size=(2, 4))
                obs = shared.copy() if copies else shared
                paid.append(bonus(obs, np.array([0, 1]), obs, {}))
            rewards.append(paid)
        np.testing.assert_array_equal(rewards[0], rewards[1], err_msg=name)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_host_that_steps_one_by_one_copies_what_is_episodic_alone(name):
    """RLlib: a predictor that is copied would learn from the steps of one environment only."""
    bonus = FRESH[name]()
    assert bonus.episodic == (name in ("RIDE", "NovelD", "E3B"))
    each = BonusPerEnvironment(bonus, 3)
    assert len({id(each.of(k)) for k in range(3)}) == (3 if bonus.episodic else 1)
    each.reset(np.array([True, False, True]))


@pytest.mark.parametrize(("says", "copies"), [({}, 3), ({"episodic": True}, 3), ({"episodic": False}, 1)])
def test_a_bonus_of_your_own_says_whether_it_is_episodic(says, copies):
    told = []
    own = {"__call__": lambda self, *t: np.ones(1), "reset": lambda self, where: told.append(id(self)), **says}
    each = BonusPerEnvironment(type("Own", (), own)(), 3)
    assert len({id(each.of(k)) for k in range(3)}) == copies
    each.reset(np.ones(3, bool))
    assert told == [id(each.of(k)) for k in range(3)]
    BonusPerEnvironment(lambda *t: np.ones(1), 2).reset(np.ones(2, bool))
