"""Episode-bound memory is cleared at an episode's end and nowhere else, in every autoreset mode."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from .cases import EPISODIC, FRESH
from .streams import drive


def alone(name, episode):
    """The rewards of one episode, played to a fresh bonus in one environment."""
    bonus = FRESH[name]()
    return [bonus(obs[None], np.array([action]), next_obs[None], {})[0] for _, _, obs, action, next_obs, _ in episode]


@pytest.mark.parametrize("mode", list(AutoresetMode), ids=lambda mode: mode.name)
@pytest.mark.parametrize("name", sorted(EPISODIC))
def test_each_episode_is_paid_as_if_it_were_the_only_one(name, mode):
    episodes = drive(FRESH[name](), mode)
    assert len(episodes) > 15
    assert max(map(len, episodes)) > 4
    for episode in episodes:
        np.testing.assert_allclose([row[-1] for row in episode], alone(name, episode))


@pytest.mark.parametrize("name", sorted(set(FRESH) - EPISODIC))
def test_the_others_have_no_memory_that_an_end_clears(name):
    bonus = FRESH[name]()
    assert not hasattr(bonus, "reset")
