"""What the RLlib callback refuses, and what it says of rewards that change after it (make test-hosts)."""

import inspect
import warnings
from functools import partial

import numpy as np
import pytest

pytest.importorskip("ray.rllib", reason="pip install payback[rllib]", exc_type=ImportError)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ray.rllib.algorithms.dqn import DQNConfig
    from ray.rllib.callbacks.callbacks import RLlibCallback
    from ray.rllib.connectors.learner import GeneralAdvantageEstimation

import payback
from payback.integrations.rllib import ShapeReward

from .rllib_walk import GAMMA, configuration

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def config(walk):
    return configuration(walk)


def test_another_gamma_is_refused(config):
    with pytest.raises(ValueError, match=r"gamma 0.9, the loans are repaid with gamma 0.99.*strict=False"):
        config(payback.grm(0.99, 3)).build_algo()


def test_a_gamma_said_by_hand_is_compared():
    with pytest.raises(ValueError, match=r"gamma 0\.99.*gamma 0\.9"):
        ShapeReward("novelty", payback.grm(GAMMA, 3), learner_gamma=0.99)


class Halve(RLlibCallback):
    """Another callback, after the shaping, that changes rewards."""

    def on_episode_step(self, *, episode, **kwargs):
        episode.set_rewards(new_data=episode.get_rewards(-1) / 2, at_indices=-1)


def test_rewards_that_change_after_the_shaping_are_said_once(config):
    algorithm = config(payback.grm(GAMMA, 3), log=(Halve,)).build_algo()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            algorithm.train()
    words = [str(w.message) for w in said if "goes to the learner" in str(w.message)]
    assert len(words) == 1
    assert "another callback or a connector changes rewards" in words[0]
    algorithm.stop()
    right = config(payback.grm(GAMMA, 3)).build_algo()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        right.train()
    assert not [w for w in said if "goes to the learner" in str(w.message)]
    right.stop()


def test_a_replay_buffer_learner_is_told_that_it_does_not_see_the_debt():
    """DQN; a transform that lends nothing is no debt."""

    def said(transform):
        shaping = partial(ShapeReward, bonus=lambda *t: np.ones(1), transform=transform, learner_gamma=GAMMA)
        config = DQNConfig().environment("CartPole-v1").env_runners(num_env_runners=0).training(gamma=GAMMA)
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            config.callbacks(shaping).build_algo().stop()
        return [str(w.message) for w in heard if "does not see the debt" in str(w.message)]

    assert len(said(payback.grm(GAMMA, 3))) == 1
    assert said(payback.scale(0.5)) == []


def test_an_observed_debt_is_refused():
    with pytest.raises(ValueError, match=r"observe_debt is refused for RLlib.*gymnasium\.ShapeReward"):
        ShapeReward("novelty", payback.grm(GAMMA, 3), observe_debt=True)


def test_the_reason_against_the_bonus_as_an_advantage_holds():
    """docs/howto/advantage-side.md: its GAE standardises before a connector after it could add anything."""
    source = inspect.getsource(GeneralAdvantageEstimation)
    assert "(module_advantages - module_advantages.mean()) / max(" in source
