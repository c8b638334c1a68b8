"""A saved bonus goes on exactly as the one that was saved, and a file that does not fit is refused in a sentence."""

import numpy as np
import pytest

from payback.bonuses import Count, EpisodicCount, SimHash

from .cases import FRESH, NETWORKS
from .streams import play, transitions


def halves(T=24):
    rollout = transitions(T=T, B=3)
    return [{key: column[rows] for key, column in rollout.items()} for rows in (slice(0, T // 2), slice(T // 2, T))]


@pytest.mark.parametrize("name", FRESH)
def test_a_loaded_bonus_goes_on_as_the_saved_one(name, tmp_path):
    first, second = halves()
    bonus, again, fresh = (FRESH[name]() for _ in range(3))
    play(bonus, first)
    bonus.save(tmp_path / "bonus")
    again.load(tmp_path / "bonus")
    assert [path.name for path in tmp_path.iterdir()] == ["bonus"], "no suffix is added, nothing is left behind"
    expected = play(bonus, second)
    np.testing.assert_array_equal(play(again, second), expected)
    assert not np.array_equal(play(fresh, second), expected), "what was saved matters"


@pytest.mark.parametrize("name", FRESH)
def test_a_bonus_saved_before_its_first_call_loads(name, tmp_path):
    FRESH[name]().save(tmp_path / "bonus.npz")
    bonus, second = FRESH[name](), halves()[1]
    bonus.load(tmp_path / "bonus.npz")
    np.testing.assert_array_equal(play(bonus, second), play(FRESH[name](), second))


def test_keys_of_every_kind_survive(tmp_path):
    for key in (3, 2.5, "door", b"\x00\xff", True, None, (1, ("a", b"b"), None)):
        bonus, again = (Count(1.0, root=False, normalise=False, key=lambda obs, key=key: key) for _ in range(2))
        bonus(None, None, np.zeros((1, 2)), {})
        bonus.save(tmp_path / "bonus")
        again.load(tmp_path / "bonus")
        assert again(None, None, np.zeros((1, 2)), {})[0] == 0.5


def test_a_key_that_cannot_be_saved_is_named(tmp_path):
    bonus = Count(key=lambda obs: frozenset({1}))
    bonus(None, None, np.zeros((1, 2)), {})
    with pytest.raises(TypeError, match=r"cannot save the key frozenset\(\{1\}\).*numbers, strings, bytes or tuples"):
        bonus.save(tmp_path / "bonus")
    assert list(tmp_path.iterdir()) == []


def test_files_that_do_not_fit_are_refused(tmp_path):
    SimHash(bits=16).save(tmp_path / "bonus")
    with pytest.raises(ValueError, match="bits = 16, this one has bits = 32"):
        SimHash(bits=32).load(tmp_path / "bonus")
    with pytest.raises(ValueError, match="holds the bonus SimHash, not Count; load it into a SimHash"):
        Count().load(tmp_path / "bonus")
    (tmp_path / "text").write_text("no bonus")
    with pytest.raises(ValueError, match="not a bonus that save wrote, or is damaged"):
        EpisodicCount().load(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        Count().load(tmp_path / "nowhere")


def test_a_simhash_of_other_observations_is_refused(tmp_path):
    small, large = SimHash(), SimHash()
    small(None, None, np.zeros((1, 2)), {})
    large(None, None, np.zeros((1, 3)), {})
    small.save(tmp_path / "bonus")
    with pytest.raises(ValueError, match="of 2 numbers per observation, this one projects 3"):
        large.load(tmp_path / "bonus")


def test_the_saved_weights_count_not_the_seed(tmp_path):
    first, second = halves()
    for make in (lambda seed: SimHash(bits=3, seed=seed), *(lambda seed, f=f: f(seed=seed) for f in NETWORKS.values())):
        bonus, again = make(1), make(2)
        play(bonus, first)
        bonus.save(tmp_path / "bonus")
        again.load(tmp_path / "bonus")
        np.testing.assert_array_equal(play(again, second), play(bonus, second))


def test_networks_of_other_sizes_are_refused(tmp_path):
    first, _ = halves()
    for name, make in NETWORKS.items():
        bonus, wide = make(), make()
        play(bonus, first)
        bonus.save(tmp_path / "bonus")
        with pytest.raises(ValueError, match=f"holds a {name} with width = 16, this one has width = 32"):
            make(width=32).load(tmp_path / "bonus")
        wide(np.zeros((2, 9)), np.zeros(2, dtype=int), np.zeros((2, 9)), {})
        with pytest.raises(ValueError, match=rf"{name} for observations of shape \(4,\), this one sees \(9,\)"):
            wide.load(tmp_path / "bonus")
