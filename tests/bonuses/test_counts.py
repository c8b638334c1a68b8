"""The counted bonuses beside a plain re-computation from the whole history."""

import numpy as np
import pytest

from payback.bonuses import Count, EpisodicCount, Recency, SimHash

from .cases import FRESH
from .streams import play, transitions

ROLLOUT = transitions(T=40, B=3)
PLACES = {key: ROLLOUT[key].argmax(-1) for key in ("obs", "next_obs")}
T, B = ROLLOUT["done"].shape


@pytest.mark.parametrize("root", [False, True])
def test_episodic_count_pays_alpha_over_the_visits_of_this_episode(root):
    expected = np.zeros((T, B))
    for k in range(B):
        visited = []
        for t in range(T):
            visited = visited or [PLACES["obs"][t, k]]
            visited.append(PLACES["next_obs"][t, k])
            n = visited.count(visited[-1])
            expected[t, k] = 0.3 / (n**0.5 if root else n)
            visited = [] if ROLLOUT["done"][t, k] else visited
    np.testing.assert_allclose(play(EpisodicCount(0.3, root=root), ROLLOUT), expected)


@pytest.mark.parametrize("root", [False, True])
def test_count_pays_alpha_over_all_visits_so_far(root):
    expected = np.array(
        [[np.sum(PLACES["next_obs"][: t + 1] == PLACES["next_obs"][t, k]) for k in range(B)] for t in range(T)]
    )
    np.testing.assert_allclose(
        play(Count(0.3, root=root, normalise=False), ROLLOUT), 0.3 / (expected**0.5 if root else expected)
    )


def test_simhash_counts_signs_of_a_projection():
    A = np.random.default_rng(5).normal(size=(12, 4))
    hashes = np.sign(ROLLOUT["next_obs"] @ A.T)
    same = (hashes[:, None, :, None] == hashes[None, :, None, :]).all(-1)  # (T, T, B, B)
    n = np.array([[same[t, : t + 1, k].sum() for k in range(B)] for t in range(T)])
    np.testing.assert_allclose(play(SimHash(0.3, bits=12, seed=5, normalise=False), ROLLOUT), 0.3 / np.sqrt(n))


def test_simhash_pays_similar_observations_less_than_others():
    rng, bonus = np.random.default_rng(0), SimHash(1.0, bits=8, normalise=False)
    for _ in range(50):
        bonus(None, None, np.array([[1.0, 2.0, -1.0]]) + 0.001 * rng.normal(size=(1, 3)), {})
    near, far = bonus(None, None, np.array([[1.0, 2.0, -1.0], [-3.0, 1.0, 2.0]]), {})
    assert near < 0.2
    assert far == 1


def test_recency_pays_the_root_of_the_steps_since():
    expected = np.zeros((T, B))
    for t in range(T):
        for k in range(B):
            pair = PLACES["obs"][t, k], ROLLOUT["action"][t, k]
            before = [s for s in range(t) for j in range(B) if (PLACES["obs"][s, j], ROLLOUT["action"][s, j]) == pair]
            expected[t, k] = 0.5 * np.sqrt(t - before[-1] if before else t + 1)
    np.testing.assert_allclose(play(Recency(0.5, normalise=False), ROLLOUT), expected)


@pytest.mark.parametrize("make", [Count, EpisodicCount], ids=["Count", "EpisodicCount"])
def test_vectors_images_and_dicts_are_told_apart_by_all_their_parts(make):
    image = np.zeros((2, 4, 4, 3), dtype=np.uint8)
    other = image.copy()
    other[1, 2, 2, 0] = 1
    for base, changed in (
        (np.zeros((2, 3)), np.array([[0, 0, 0], [0, 1.0, 0]])),
        (image, other),
        (np.array([0, 0]), np.array([0, 1])),
        ({"image": image, "where": np.zeros((2, 1))}, {"image": other, "where": np.zeros((2, 1))}),
        ({"image": image, "mission": ("go", "go")}, {"image": image, "mission": ("go", "stay")}),
        ((image, np.zeros(2)), (other, np.zeros(2))),
    ):
        bonus = make(1.0, root=False, normalise=False)
        action = np.zeros(2, dtype=int)
        bonus(base, action, base, {})
        first, second = bonus(base, action, changed, {})
        assert first < second == 1


@pytest.mark.parametrize("name", FRESH)
def test_no_environment_is_paid_nothing(name):
    for obs in (np.zeros((0, 4)), {"a": np.zeros((0, 2, 2)), "b": np.zeros((0, 3))}):
        if name != "EpisodicCount, root" or isinstance(obs, np.ndarray):  # whose key takes an array
            assert FRESH[name]()(obs, np.zeros(0, dtype=int), obs, {}).shape == (0,)


def test_minus_zero_is_zero():
    bonus = Count(1.0, root=False, normalise=False)
    bonus(None, None, np.array([[0.0]]), {})
    assert bonus(None, None, np.array([[-0.0]]), {})[0] == 0.5


def test_a_key_decides_what_is_the_same():
    bonus = Count(1.0, root=False, normalise=False, key=lambda obs: (int(obs["at"][0]), "room"))
    bonus(None, None, {"at": np.array([[3.0, 9.0]])}, {})
    assert bonus(None, None, {"at": np.array([[3.4, 1.0]])}, {})[0] == 0.5


def test_the_form_of_info_changes_nothing():
    for make in (Count, EpisodicCount, SimHash, Recency):
        ways = []
        for info in ({}, [{}, {}, {}], {"valid": np.ones(3, dtype=bool)}):
            bonus = make()
            step = (ROLLOUT[key][0] for key in ("obs", "action", "next_obs"))
            ways.append(bonus(*step, info))
        np.testing.assert_array_equal(ways[0], ways[1])
        np.testing.assert_array_equal(ways[0], ways[2])
