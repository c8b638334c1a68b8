"""grm_adv beside TorchRL's own GAE, over rollouts of its collector, against the definition."""

import warnings

import numpy as np
import pytest

pytest.importorskip("torchrl", reason="pip install payback[torchrl]")
import torch
from tensordict.nn import TensorDictModule
from torchrl.envs import Compose, GymEnv, SerialEnv, StepCounter, TransformedEnv
from torchrl.envs.transforms import RNDTransform
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torchrl.collectors import Collector

import payback
from payback.check.advantage import advantage_by_loops
from payback.integrations.torchrl import BonusTransform

GAMMA, DELAY, LAM, B, T = 0.99, 5, 0.9, 3, 20
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread"), pytest.mark.filterwarnings("ignore")]


def batches(bonus, seen):
    """Train PPO on three batches as docs/howto/advantage-side.md does; `seen` may add to each one's advantages."""
    torch.manual_seed(0)
    one = lambda: GymEnv("CartPole-v1", categorical_action_encoding=True)  # noqa: E731
    env = TransformedEnv(SerialEnv(B, one), Compose(StepCounter(15), bonus))
    env.set_seed(0)
    actor = ProbabilisticActor(
        TensorDictModule(torch.nn.Linear(4, 2), in_keys=["observation"], out_keys=["logits"]),
        in_keys=["logits"],
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
    )
    critic = ValueOperator(torch.nn.Linear(4, 1), in_keys=["observation"])
    gae = GAE(gamma=GAMMA, lmbda=0.95, value_network=critic)
    loss = ClipPPOLoss(actor, critic, normalize_advantage=True)
    optimizer = torch.optim.Adam(loss.parameters(), lr=0.01)
    for data in Collector(env, actor, frames_per_batch=B * T, total_frames=3 * B * T):
        with torch.no_grad():
            gae(data)
        seen(data)
        for _ in range(3):
            optimizer.zero_grad()
            sum(value for name, value in loss(data.reshape(-1)).items() if name.startswith("loss_")).backward()
            optimizer.step()
    return torch.cat([p.detach().flatten() for p in loss.parameters()])


class Adds:
    """What the page adds to each batch; F̄ goes through a file after each one, as where a run is killed and resumed."""

    def __init__(self, folder, how="settle"):
        self.estimator, self.file = payback.grm_adv(GAMMA, DELAY, LAM, on_truncation=how), folder / "mean.npz"
        self.state, self.added = self.estimator.init(torch.zeros(B)), []

    def __call__(self, data):
        task, target = data["advantage"].clone(), data["value_target"].clone()
        F, done, cut = (data["next", key].squeeze(-1).T for key in ("intrinsic_reward", "done", "truncated"))
        state, advantage, _ = self.estimator.estimate(self.state, F, done, cut)
        data["advantage"] += advantage.T.unsqueeze(-1)
        payback.save_state(self.file, state)
        self.state = payback.load_state(self.file, like=self.estimator.init(torch.zeros(B)))
        self.added.append((F, done, cut, (data["advantage"] - task).squeeze(-1).T.numpy()))
        assert torch.equal(data["value_target"], target)


@pytest.mark.parametrize("how", ["settle", "carry"])
def test_it_adds_what_the_definition_says(how, tmp_path):
    """Terminated and truncated episodes, some over the borders of three rollouts; the targets stay the task's."""
    adds, earlier = Adds(tmp_path, how), np.zeros(0)
    batches(RNDTransform(torch.nn.Linear(4, 8), torch.nn.Linear(4, 8)), adds)
    assert len(adds.added) == 3
    for F, done, cut, added in adds.added:
        given = {"gamma": GAMMA, "delay": DELAY, "lam": LAM, "truncated": cut, "on_truncation": how}
        expected, _ = advantage_by_loops(F, done, earlier=earlier, **given)
        np.testing.assert_allclose(added, expected, atol=1e-5)
        earlier = np.append(earlier, F.numpy())
    cuts, ends = (torch.cat([batch[k] for batch in adds.added]) for k in (2, 1))
    assert cuts.any()
    assert (ends & ~cuts).any()


def test_no_bonus_is_plain_ppo_to_the_bit(tmp_path):
    nothing, moved = (lambda o, a, n, i, size=size: size * np.abs(n).sum(-1) for size in (0.0, 1.0))
    plain = batches(BonusTransform(moved), lambda data: None)
    assert torch.equal(batches(BonusTransform(nothing), Adds(tmp_path)), plain)
    assert not torch.equal(batches(BonusTransform(moved), Adds(tmp_path)), plain)
