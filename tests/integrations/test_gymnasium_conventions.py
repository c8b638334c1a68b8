"""The wrappers keep Gymnasium's conventions: its own checker, specs that make the environment again, copies."""

import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv

import payback
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward

from .corridor import Corridor

pytestmark = pytest.mark.gymnasium

GRM = payback.grm(0.99, 3)


def one(obs, action, next_obs, info):
    """A bonus that needs batches, so that observations and actions of every space are put in them."""
    return np.ones(len(info["valid"]))


def makeable():
    """Return Gymnasium's own environments whose packages are installed."""
    found = []
    for name, spec in gym.registry.items():
        if not str(spec.entry_point).startswith("gymnasium.envs"):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                gym.make(name).close()
        except Exception:
            continue
        found.append(name)
    return found


@pytest.mark.parametrize("observe_debt", [False, True])
def test_gymnasiums_own_checker_passes(observe_debt):
    names = makeable()
    assert {"CartPole-v1", "FrozenLake-v1", "Blackjack-v1", "Pendulum-v1"} <= set(names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            env = gym.make(name)
            space = env.observation_space
            flat = isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and space.dtype.kind == "f"
            if flat or not observe_debt:
                check_env(ShapeReward(env, one, GRM, observe_debt=observe_debt), skip_render_check=True)


def test_the_spec_makes_the_environment_again():
    env = ShapeReward(gym.make("CartPole-v1"), one, GRM, on_truncation="carry", learner_gamma=0.99)
    again = gym.make(env.spec)
    assert type(again) is ShapeReward
    for wrapped in (env, again):
        wrapped.reset(seed=1)
    assert [env.step(0)[1] for _ in range(9)] == [again.step(0)[1] for _ in range(9)]
    assert again.monitor.ledger.on_truncation == "carry"


@pytest.mark.parametrize("observe_debt", [False, True])
def test_wrappers_can_be_pickled_in_mid_episode(observe_debt):
    env = ShapeReward(Corridor(9), one, GRM, observe_debt=observe_debt, learner_gamma=0.99)
    env.reset(seed=0)
    env.step(0)
    again = pickle.loads(pickle.dumps(env))
    for _ in range(8):
        assert again.step(1)[1] == env.step(1)[1]


class Odd(Corridor):
    """Shows what its space does not have."""

    def step(self, action):
        _, *rest = super().step(action)
        return np.zeros((2, 7)), *rest


class AnyAction(Corridor):
    """Takes whatever it is given."""

    def step(self, action):
        return super().step(1)


def test_what_does_not_fit_its_space_is_said():
    env = ShapeReward(Odd(9), one, GRM)
    env.reset()
    with pytest.raises(ValueError, match=r"(?s)observation .* does not fit its space"):
        env.step(0)
    env = ShapeReward(AnyAction(9), one, GRM)
    env.reset()
    with pytest.raises(ValueError, match=r"(?s)action .* does not fit its space"):
        env.step(np.zeros((3, 2)))
    env = ShapeReward(Odd(9), "bonus", GRM)
    env.reset()
    assert env.step(0)[0].shape == (2, 7), "nobody asks for the observation"


def test_a_list_of_infos_is_refused():
    class Listed(Corridor):
        def step(self, action):
            *rest, _ = super().step(action)
            return *rest, []

    env = ShapeReward(Listed(9), "bonus", GRM)
    env.reset()
    with pytest.raises(TypeError, match=r"list .* must be a dict"):
        env.step(0)


def test_single_and_vector_are_not_mixed_up():
    with pytest.raises(TypeError, match="use ShapeReward"):
        ShapeVectorReward(Corridor(9), one, GRM)
    with pytest.raises(TypeError, match="use ShapeVectorReward"):
        ShapeReward(SyncVectorEnv([lambda: Corridor(9)]), one, GRM)


def test_everything_after_the_transform_is_named():
    with pytest.raises(TypeError, match="positional"):
        ShapeReward(Corridor(9), one, GRM, "settle")
