"""grm_adv beside TorchRL's own GAE, over rollouts of its collector, against the definition."""

import warnings

import numpy as np
import pytest

pytest.importorskip("torchrl", reason="pip install payback[torchrl]")
import torch
from tensordict.nn import TensorDictModule
from torchrl.envs import Compose, GymEnv, SerialEnv, StepCounter, TransformedEnv
from torchrl.envs.transforms import RNDTransform
from torchrl.envs.utils import RandomPolicy
from torchrl.objectives.value import GAE

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torchrl.collectors import Collector

import payback
from payback.check.advantage import advantage_by_loops

GAMMA, DELAY, LAM, B, T = 0.99, 5, 0.9, 3, 20
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread"), pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("how", ["settle", "carry"])
def test_it_adds_what_the_definition_says(how):
    """Terminated and truncated episodes, some over the borders of three rollouts; the targets stay the task's."""
    torch.manual_seed(0)
    env = TransformedEnv(
        SerialEnv(B, lambda: GymEnv("CartPole-v1")),
        Compose(StepCounter(15), RNDTransform(torch.nn.Linear(4, 8), torch.nn.Linear(4, 8))),
    )
    critic = TensorDictModule(torch.nn.Linear(4, 1), in_keys=["observation"], out_keys=["state_value"])
    gae = GAE(gamma=GAMMA, lmbda=0.95, value_network=critic)
    estimator = payback.grm_adv(GAMMA, DELAY, LAM, on_truncation=how)
    state, earlier, cuts, ends = estimator.init(torch.zeros(B)), np.zeros(0), 0, 0
    for data in Collector(env, RandomPolicy(env.action_spec), frames_per_batch=B * T, total_frames=3 * B * T):
        gae(data)
        task, target = data["advantage"].clone(), data["value_target"].clone()
        F, done, cut = (data["next", key].squeeze(-1).T for key in ("intrinsic_reward", "done", "truncated"))
        state, advantage, _ = estimator.estimate(state, F, done, cut)
        data["advantage"] += advantage.T.unsqueeze(-1)
        given = {"gamma": GAMMA, "delay": DELAY, "lam": LAM, "truncated": cut, "on_truncation": how}
        expected, _ = advantage_by_loops(F, done, earlier=earlier, **given)
        np.testing.assert_allclose((data["advantage"] - task).squeeze(-1).T.numpy(), expected, atol=1e-5)
        assert torch.equal(data["value_target"], target)
        earlier = np.append(earlier, F.numpy())
        cuts += int(data["next", "truncated"].sum())
        ends += int(data["next", "terminated"].sum())
    assert cuts
    assert ends
