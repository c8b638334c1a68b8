"""A bonus of a whole rollout is what step after step pays: episodes, invalid rows, statistics and learning included."""

import numpy as np
import pytest
import torch

from .cases import FRESH, NETWORKS
from .streams import transitions

RNG = np.random.default_rng(3)


def flagged(T=40, B=3):
    """A rollout with ends, and with invalid rows that hold nonsense."""
    rollout, valid = transitions(T=T, B=B), RNG.random((T, B)) < 0.8
    valid[7] = False  # a step without any valid row
    for key in ("obs", "next_obs"):
        rollout[key][~valid] = np.nan
    return rollout, valid


def stepped(bonus, rollout, valid):
    rewards = []
    for t in range(len(valid)):
        rows = (rollout[key][t] for key in ("obs", "action", "next_obs"))
        rewards.append(bonus(*rows, {"valid": valid[t]}))
        if (rollout["done"][t] & valid[t]).any():
            bonus.reset(rollout["done"][t] & valid[t])
    return np.array(rewards)


def columns(rollout):
    return [rollout[key] for key in ("obs", "action", "next_obs", "done")]


@pytest.mark.parametrize("name", FRESH)
def test_a_rollout_is_paid_as_its_steps(name):
    """Twice, so that the second rollout begins in the middle of episodes and of the calls to learn from."""
    rollout, valid = flagged()
    one, other = FRESH[name](), FRESH[name]()
    for cut in (slice(0, 22), slice(22, 40)):
        part, flags = {key: column[cut] for key, column in rollout.items()}, valid[cut]
        expected = stepped(one, part, flags)
        paid = other.of_rollout(*columns(part), flags)
        assert expected.std() > 0
        assert paid.dtype == np.float64
        np.testing.assert_allclose(paid, expected, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("options", [{"whiten": False}, {"normalise": False}, {"learn_every": 0}, {"warmup": 0}])
@pytest.mark.parametrize("name", ["RND", "RIDE", "E3B"])
def test_with_every_option(name, options):
    rollout = transitions(T=20, B=3)
    expected = stepped(NETWORKS[name](**options), rollout, np.ones((20, 3), bool))
    paid = NETWORKS[name](**options).of_rollout(*columns(rollout))
    np.testing.assert_allclose(paid, expected, rtol=2e-3, atol=1e-6)


@pytest.mark.parametrize("name", NETWORKS)
def test_tensors_stay_tensors(name):
    rollout = transitions(T=20, B=3)
    expected = NETWORKS[name]().of_rollout(*columns(rollout))
    paid = NETWORKS[name]().of_rollout(*map(torch.from_numpy, columns(rollout)))
    assert isinstance(paid, torch.Tensor)
    np.testing.assert_allclose(paid, expected, rtol=1e-6)


def test_the_device_is_waited_for_a_fixed_number_of_times(monkeypatch):
    """On an accelerator each of these calls waits for it; there are as many for 32 steps as for 128."""
    waits = []
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: None)  # counts its steps in tensors on the host
    for name in ("item", "tolist", "numpy", "__bool__", "__float__", "__int__", "cpu", "nonzero"):
        real = getattr(torch.Tensor, name)
        counted = lambda self, *a, real=real, **k: waits.append(1) or real(self, *a, **k)  # noqa: E731
        monkeypatch.setattr(torch.Tensor, name, counted)
    for make in ("RND", "E3B", "ICM"):
        number = []
        for T in (32, 128):
            bonus = NETWORKS[make](learn_every=8)
            obs = torch.randn(T, 4, 5, generator=torch.Generator().manual_seed(0))
            waits.clear()
            bonus.of_rollout(obs, torch.zeros(T, 4, dtype=torch.int64), obs, torch.zeros(T, 4, dtype=torch.bool))
            number.append(len(waits))
        assert number[0] == number[1] <= 6, (make, number)


@pytest.mark.parametrize("name", FRESH)
def test_an_empty_rollout(name):
    obs, flags = np.zeros((0, 3, 4), np.float32), np.zeros((0, 3), bool)
    assert FRESH[name]().of_rollout(obs, np.zeros((0, 3), int), obs, flags).shape == (0, 3)


@pytest.mark.parametrize("name", ["Count", "EpisodicCount", "episodic RND"])
def test_a_rollout_without_actions(name):
    """As a step without actions: these bonuses do not read them."""
    rollout = transitions(T=12, B=3)
    obs, _, next_obs, dones = columns(rollout)
    expected = FRESH[name]().of_rollout(*columns(rollout))
    np.testing.assert_array_equal(FRESH[name]().of_rollout(obs, None, next_obs, dones), expected)


@pytest.mark.parametrize("name", ["EpisodicCount", "SimHash", "RND", "episodic RND"])
def test_blocks_of_other_shapes_are_refused(name):
    bonus, obs, dones = FRESH[name](), np.zeros((5, 3, 4), np.float32), np.zeros((5, 3), bool)
    with pytest.raises(ValueError, match=r"dones of shape \(T, B\)"):
        bonus.of_rollout(obs, None, obs, np.zeros(5, bool))
    with pytest.raises(ValueError, match=r"dones have shape \(4, 3\)"):
        bonus.of_rollout(obs, None, obs, dones[:4])
    with pytest.raises(ValueError, match=r"an array of shape \(6, 3, 4\)"):  # with the observation before the rollout
        bonus.of_rollout(obs, None, np.zeros((6, 3, 4), np.float32), dones)
    with pytest.raises(ValueError, match="no next observations"):
        bonus.of_rollout(obs, None, None, dones)
    with pytest.raises(ValueError, match=r"valid of shape \(5, 2\)"):
        bonus.of_rollout(obs, None, obs, dones, np.ones((5, 2), bool))


def test_a_bad_rollout_changes_nothing():
    bonus, obs = NETWORKS["E3B"](), RNG.normal(size=(30, 3, 4)).astype(np.float32)
    actions, dones = np.zeros((30, 3), int), np.zeros((30, 3), bool)
    same = NETWORKS["E3B"]()
    expected = [same.of_rollout(obs, actions, obs, dones) for _ in range(2)]
    np.testing.assert_array_equal(bonus.of_rollout(obs, actions, obs, dones), expected[0])
    bad = obs.copy()
    bad[20, 1, 0] = np.inf
    with pytest.raises(ValueError, match="environment 1 in step 20 of the rollout is not finite"):
        bonus.of_rollout(bad, actions, bad, dones)
    np.testing.assert_array_equal(bonus.of_rollout(obs, actions, obs, dones), expected[1])
