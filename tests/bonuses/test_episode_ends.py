"""Episode-bound memory is cleared at an episode's end and nowhere else, in every autoreset mode."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from .cases import EPISODIC, FRESH
from .streams import drive, play, transitions


def alone(name, episode):
    """The rewards of one episode, played to a fresh bonus in one environment."""
    bonus = EPISODIC[name]()
    return [bonus(obs[None], np.array([action]), next_obs[None], {})[0] for _, _, obs, action, next_obs, _ in episode]


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("name", EPISODIC)
def test_each_episode_is_paid_as_if_it_were_the_only_one(name, mode):
    episodes = drive(EPISODIC[name](), mode)
    assert len(episodes) > 15
    assert max(map(len, episodes)) > 4
    for episode in episodes:
        np.testing.assert_allclose([row[-1] for row in episode], alone(name, episode), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", sorted(set(FRESH) - set(EPISODIC) - {"episodic Count"}))
def test_the_others_have_no_memory_that_an_end_clears(name):
    rollout = transitions()
    never = {**rollout, "done": np.zeros_like(rollout["done"])}
    np.testing.assert_array_equal(play(FRESH[name](), rollout), play(FRESH[name](), never))
