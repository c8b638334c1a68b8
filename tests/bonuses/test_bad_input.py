"""Wrong input gets one sentence that names what was found and what is taken."""

import numpy as np
import pytest

from payback.bonuses import Count, EpisodicCount, Recency, SimHash

ROW = np.zeros((2, 3))
ACTION = np.zeros(2, dtype=int)


def test_a_key_that_cannot_be_hashed():
    for make in (Count, EpisodicCount, Recency):
        with pytest.raises(TypeError, match=r"returned a list for environment 0, which cannot.*return a number"):
            make(key=lambda obs: obs.tolist())(ROW, ACTION, ROW, {})


def test_observations_that_are_no_arrays():
    for make in (Count, EpisodicCount, SimHash):
        for obs in (None, 3.0, [object(), object()], {"graph": np.array([None, None])}):
            with pytest.raises(TypeError, match=r"cannot read the observation.*a batch of arrays with one row"):
                make()(obs, ACTION, obs, {})


def test_simhash_takes_numbers():
    obs = {"image": np.zeros((2, 4)), "mission": ("go", "stay")}
    with pytest.raises(TypeError, match=r"cannot read the observation\['mission'\] of type <U4.*pass view="):
        SimHash()(obs, ACTION, obs, {})
    assert SimHash(view=lambda obs: obs["image"])(obs, ACTION, obs, {}).shape == (2,)


def test_simhash_of_another_size():
    bonus = SimHash()
    bonus(ROW, ACTION, ROW, {})
    with pytest.raises(ValueError, match="projects 3 numbers per observation, got 4"):
        bonus(np.zeros((2, 4)), ACTION, np.zeros((2, 4)), {})
    with pytest.raises(ValueError, match="bits must be a whole number"):
        SimHash(bits=0)


def test_other_numbers_of_environments():
    bonus = EpisodicCount()
    bonus(ROW, ACTION, ROW, {})
    with pytest.raises(ValueError, match="of 2 environments under way and was given 4; call reset"):
        bonus(np.zeros((4, 3)), np.zeros(4, dtype=int), np.zeros((4, 3)), {})
    bonus.reset(np.ones(4, dtype=bool))
    assert bonus(np.zeros((4, 3)), np.zeros(4, dtype=int), np.ones((4, 3)), {}).shape == (4,)
    with pytest.raises(ValueError, match="of 4 environments under way and was given 2"):
        bonus.reset(np.array([True, False]))


def test_a_mask_that_is_no_mask():
    for where in ([0, 1], True, np.ones((2, 2), dtype=bool)):
        with pytest.raises(ValueError, match=r"takes a \(B,\) mask of booleans"):
            EpisodicCount().reset(where)


def test_parts_with_other_numbers_of_rows():
    obs = {"a": np.zeros((2, 3)), "b": np.zeros((3, 3))}
    with pytest.raises(ValueError, match=r"one row per environment, got \[2, 3\] rows"):
        Count()(obs, ACTION, obs, {})


def test_valid_of_another_length():
    with pytest.raises(ValueError, match=r'info\["valid"\] has shape \(3,\), not \(2,\)'):
        Count()(ROW, ACTION, ROW, {"valid": np.ones(3, dtype=bool)})
