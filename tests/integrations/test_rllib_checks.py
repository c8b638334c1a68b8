"""What the RLlib callback refuses, and what it says of rewards that change after it (make test-hosts)."""

import warnings

import pytest

pytest.importorskip("ray.rllib", reason="pip install payback[rllib]", exc_type=ImportError)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ray.rllib.callbacks.callbacks import RLlibCallback

import payback
from payback.integrations.rllib import ShapeReward

from .rllib_walk import GAMMA, configuration

pytestmark = [pytest.mark.filterwarnings("ignore")]


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


def test_an_observed_debt_is_refused():
    with pytest.raises(ValueError, match=r"observe_debt is refused for RLlib.*gymnasium\.ShapeReward"):
        ShapeReward("novelty", payback.grm(GAMMA, 3), observe_debt=True)
