"""Tensors and TensorDicts, as rsl_rl and TorchRL pass them, are read as the arrays of the same numbers are."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tensordict")
import torch
from tensordict import TensorDict

from payback.bonuses import Count, EpisodicCount, Recency
from payback.bonuses.torch import ICM

from .cases import FRESH, NETWORKS
from .streams import play, transitions

ROLLOUT = transitions(T=12, B=3)
OF_ONE_ARRAY = [name for name in FRESH if name != "EpisodicCount, root"]
"""The other's key takes an array."""


def in_parts(rollout, make):
    """The same rollout with observations of two parts, in an order that is not that of their names."""
    parts = {key: [make(rows) for rows in rollout[key]] for key in ("obs", "next_obs")}
    return {**rollout, **parts}


def as_dict(rows):
    return {"policy": rows, "critic": {"speed": 2 * rows}}


def as_tensordict(rows):
    rows = torch.tensor(rows, requires_grad=True)
    return TensorDict({"policy": rows, "critic": TensorDict({"speed": 2 * rows}, [3])}, [3])


@pytest.mark.parametrize("name", OF_ONE_ARRAY)
def test_a_tensordict_is_paid_as_a_dict_of_arrays(name):
    """A TensorDict is a Mapping that yields its rows, not its keys, when it is iterated over."""
    expected = play(FRESH[name](), in_parts(ROLLOUT, as_dict))
    assert expected.std() > 0
    np.testing.assert_array_equal(play(FRESH[name](), in_parts(ROLLOUT, as_tensordict)), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", FRESH)
def test_tensors_are_paid_as_arrays(name, dtype):
    """Also those that a gradient flows through, and bfloat16, which NumPy has not."""
    expected = play(FRESH[name](), ROLLOUT)
    tensors = {key: torch.tensor(ROLLOUT[key], dtype=dtype, requires_grad=True) for key in ("obs", "next_obs")}
    tensors["action"] = torch.tensor(ROLLOUT["action"])
    np.testing.assert_allclose(play(FRESH[name](), {**ROLLOUT, **tensors}), expected, atol=1e-6)


@pytest.mark.parametrize("make", [Count, EpisodicCount])
def test_a_key_is_given_arrays(make):
    """Tensors are hashed by identity, so that no place of a key of tensors would ever come again."""
    bonus, obs = make(alpha=1.0, root=False, normalise=False, key=lambda obs: tuple(obs["place"])), torch.zeros((2, 2))
    for _ in range(2):
        F = bonus(TensorDict({"place": obs - 1}, [2]), None, TensorDict({"place": obs.clone()}, [2]), {})
    np.testing.assert_array_equal(F, 0.25 if make is Count else 0.5)


def test_actions_and_flags_may_be_tensors():
    obs, valid = torch.eye(3), torch.tensor([True, True, False])
    for bonus in (Recency(), ICM(3)):
        action = torch.tensor([0, 1, 2])
        bonus(obs, action, obs, {"valid": valid})
        assert bonus(obs, action, obs + 1, {"valid": valid})[2] == 0
    bonus = EpisodicCount(alpha=1.0)
    bonus(obs, None, obs + 1, {})
    bonus.reset(~valid)
    np.testing.assert_array_equal(bonus(obs, None, obs + 1, {}), [0.5, 0.5, 1])


@pytest.mark.parametrize("off", [torch.inference_mode, torch.no_grad])
@pytest.mark.parametrize("name", NETWORKS)
def test_it_learns_where_the_host_turns_gradients_off(name, off, tmp_path):
    """rsl_rl collects its rollouts in inference mode."""
    rows = tuple(ROLLOUT[key][0] for key in ("obs", "action", "next_obs"))
    expected, bonus, loaded = (NETWORKS[name](whiten=False) for _ in range(3))
    paid, loss = play(expected, ROLLOUT), expected.learn(rows)
    with off():
        np.testing.assert_array_equal(play(bonus, ROLLOUT), paid)
        bonus.save(tmp_path / "bonus.npz")
        loaded.load(tmp_path / "bonus.npz")
        assert bonus.learn(rows) == loaded.learn(rows) == loss
    assert np.isfinite(play(loaded, ROLLOUT)).all()
