"""A bonus lives on the device that it was given, whatever Torch's default device is."""

import numpy as np
import pytest
import torch

from .cases import NETWORKS
from .streams import play, transitions

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", NETWORKS)
def test_torchs_default_device_is_not_used(name, tmp_path):
    """The meta device stands for a GPU: a tensor that is made on it by default cannot be computed with."""
    rollout = transitions(T=8, B=2)
    expected = play(NETWORKS[name](), rollout)
    with torch.device("meta"):
        bonus, again = NETWORKS[name](), NETWORKS[name]()
        np.testing.assert_array_equal(play(bonus, rollout), expected)
        bonus.save(tmp_path / "bonus")
        again.load(tmp_path / "bonus")
        np.testing.assert_array_equal(play(again, rollout), play(bonus, rollout))
        columns = [rollout[key] for key in ("obs", "action", "next_obs", "done")]
        assert np.isfinite(bonus.of_rollout(*columns, rollout["action"] > 0)).all()
    assert {weight.device.type for weight in bonus.networks.parameters()} == {"cpu"}
