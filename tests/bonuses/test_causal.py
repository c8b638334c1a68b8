"""What every bonus must keep: it looks at nothing that comes later, and repeats itself from the same seed."""

import numpy as np
import pytest

from payback import InvarianceError, check_causal

from .cases import FRESH
from .streams import fresh_play, play, transitions


@pytest.mark.parametrize("name", FRESH)
def test_no_reward_depends_on_what_comes_later(name):
    check_causal(fresh_play(name), transitions(T=15))


@pytest.mark.parametrize("name", FRESH)
def test_invalid_rows_are_paid_nothing_and_change_nothing(name):
    rollout = transitions(T=12, B=2)
    expected, bonus = play(FRESH[name](), rollout), FRESH[name]()
    nowhere = np.full_like(rollout["obs"][0], 7)

    def interrupted(*step):
        wrong = bonus(nowhere, np.zeros(2, dtype=int), nowhere, {"valid": np.zeros(2, dtype=bool)})
        np.testing.assert_array_equal(wrong, 0)
        return bonus(*step)

    interrupted.reset = getattr(bonus, "reset", lambda where: None)
    np.testing.assert_allclose(play(interrupted, rollout), expected, rtol=1e-5)


@pytest.mark.parametrize("name", FRESH)
def test_an_invalid_row_is_as_if_its_environment_were_not_there(name):
    rollout = transitions(T=12, B=2)
    expected, bonus = play(FRESH[name](), {key: column[:, :1] for key, column in rollout.items()}), FRESH[name]()

    def half(obs, action, next_obs, info):
        return bonus(obs, action, next_obs, {"valid": np.array([True, False])})

    half.reset = getattr(bonus, "reset", lambda where: None)
    rewards = play(half, rollout)
    np.testing.assert_allclose(rewards[:, :1], expected, rtol=1e-4)
    np.testing.assert_array_equal(rewards[:, 1], 0)


def empowerment(rollout):
    """How many places are reached within the next four steps: mutual information of actions and later states."""
    places, T = rollout["next_obs"].argmax(-1), len(rollout["done"])
    return np.array([[len(set(column[t : t + 4])) for column in places.T] for t in range(T)], dtype=float)


def test_an_empowerment_like_reward_is_refused():
    with pytest.raises(InvarianceError, match="depends on what comes after"):
        check_causal(empowerment, transitions())
