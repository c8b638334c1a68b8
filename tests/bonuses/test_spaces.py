"""A bonus finds the action space of the environment that it is bound to, and can be pickled."""

import pickle

import gymnasium as gym
import numpy as np
import pytest

from payback.bonuses import episodic
from payback.bonuses.torch import E3B, ICM, RIDE, RND, Disagreement

from .cases import FRESH, SMALL
from .streams import play, transitions

READERS = {make.__name__: make for make in (ICM, RIDE, E3B, Disagreement)}
ROLLOUT = transitions(T=20, B=3)
BOX = gym.spaces.Box(-1, 1, (4,))


@pytest.mark.parametrize("name", READERS)
def test_actions_come_from_the_space(name):
    bonus, plain = READERS[name](**SMALL), READERS[name](3, **SMALL)
    bonus.bind(BOX, gym.spaces.Discrete(3))
    np.testing.assert_array_equal(play(bonus, ROLLOUT), play(plain, ROLLOUT))
    wrapped = episodic(READERS[name](**SMALL))
    wrapped.bind(BOX, gym.spaces.Discrete(3))
    assert play(wrapped, ROLLOUT).std() > 0


@pytest.mark.parametrize("name", READERS)
def test_what_was_passed_stays(name):
    bonus = READERS[name](3, **SMALL)
    bonus.bind(BOX, gym.spaces.Discrete(5))
    np.testing.assert_array_equal(play(bonus, ROLLOUT), play(READERS[name](3, **SMALL), ROLLOUT))


@pytest.mark.parametrize("name", READERS)
def test_without_a_space(name, tmp_path):
    with pytest.raises(ValueError, match=f"{name} does not know the action space"):
        play(READERS[name](**SMALL), ROLLOUT)
    with pytest.raises(TypeError, match="Discrete, Box or MultiBinary space, got Dict"):
        READERS[name]().bind(BOX, gym.spaces.Dict({"a": BOX}))
    saved, loaded = READERS[name](3, **SMALL), READERS[name](**SMALL)
    play(saved, ROLLOUT)
    saved.save(tmp_path / "bonus")
    loaded.load(tmp_path / "bonus")
    np.testing.assert_array_equal(play(loaded, ROLLOUT), play(saved, ROLLOUT))


def test_states_of_a_discrete_space_are_read_one_hot():
    bonus, plain = RND(**SMALL), RND(**SMALL)
    bonus.bind(gym.spaces.Discrete(4, start=1), gym.spaces.Discrete(3))
    numbers = {**ROLLOUT, **{key: ROLLOUT[key].argmax(-1) + 1 for key in ("obs", "next_obs")}}
    np.testing.assert_allclose(play(bonus, numbers), play(plain, ROLLOUT))
    with pytest.raises(ValueError, match="whole numbers from 1 to 4"):
        bonus(np.array([0]), None, np.array([5]), {})


@pytest.mark.parametrize("name", [name for name in FRESH if name != "EpisodicCount, root"])
def test_a_pickled_bonus_continues(name):
    bonus = FRESH[name]()
    play(bonus, ROLLOUT)
    again = pickle.loads(pickle.dumps(bonus))
    np.testing.assert_array_equal(play(again, ROLLOUT), play(bonus, ROLLOUT))
