"""The TorchRL transform: specs, batched environments, a collector, and a real training run."""

import importlib.util
import warnings
from pathlib import Path

import pytest

pytest.importorskip("torchrl", reason="pip install payback[torchrl]")
import torch
from torch import nn
from torchrl.envs import Compose, GymWrapper, ParallelEnv, SerialEnv, StepCounter, TransformedEnv
from torchrl.envs.transforms import RNDTransform, Transform
from torchrl.envs.utils import RandomPolicy, check_env_specs

with warnings.catch_warnings():  # TorchRL deprecates parts of itself while it is imported
    warnings.simplefilter("ignore")
    from torchrl.collectors import Collector

import payback
from payback import ShapingWarning
from payback.bonuses import EpisodicCount
from payback.bonuses.torch import ICM
from payback.integrations.torchrl import BonusTransform, ShapeReward

from .own_match import halves

GAMMA, B = 0.9, 3
EXAMPLE = Path(__file__).parents[2] / "examples" / "torchrl_ppo.py"
TRANSFORMS = {
    "pbim": payback.pbim(GAMMA),
    "grm-3": payback.grm(GAMMA, 3),
    "grm-1-raw": payback.grm(GAMMA, 1, center=False),
    "geometric": payback.match_geometric(GAMMA, 0.5),
    "a user's own": payback.chain(payback.center(), halves(torch, GAMMA)),
}
pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:A lambda function was passed to ParallelEnv"),
]


@pytest.fixture
def walks(walk):
    """Makes environments that terminate by chance or are cut after five steps, with RND and the shaping."""

    def walks(transform, batched=SerialEnv, hazard=0.15, workers=B, **options):
        torch.manual_seed(0)
        rnd = RNDTransform(nn.Linear(2, 4), nn.Linear(2, 4), normalize_obs=False)
        base = GymWrapper(walk(hazard)) if batched is None else batched(workers, lambda: GymWrapper(walk(hazard)))
        env = TransformedEnv(base, Compose(StepCounter(5), rnd, ShapeReward(transform, **options)))
        env.set_seed(1)
        return env

    return walks


def episodes(batches):
    """Yield the shaped rewards, last debt and last flags of each finished episode, over all batches."""
    data = torch.cat(list(batches), dim=-1)
    for row in data if data.ndim == 2 else [data]:
        begin = 0
        for end in (torch.nonzero(row["next", "done"][:, 0])[:, 0] + 1).tolist():
            yield row[begin:end]
            begin = end


def assert_law(batches, least):
    count = 0
    for episode in episodes(batches):
        shaped = episode["next", "shaped_reward"][:, 0].double()
        weights = GAMMA ** torch.arange(len(shaped) + 1.0, dtype=torch.float64)
        debt = episode["next", "debt"][-1].item()
        error = abs(float(weights[:-1] @ shaped - weights[-1] * debt))
        assert error <= 1e-5 * (float(weights[:-1] @ shaped.abs()) + abs(debt)) + 1e-9
        flags = episode["next"][-1]
        assert (debt != 0) == bool(flags["truncated"] & ~flags["terminated"])
        total = episode["next", "extrinsic_reward"] + episode["next", "shaped_reward"]
        torch.testing.assert_close(episode["next", "reward"], total)
        count += 1
    assert count >= least


@pytest.mark.parametrize("batched", [None, SerialEnv])
@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode:payback.ShapingWarning")
def test_specs_and_law(walks, batched, name):
    env = walks(TRANSFORMS[name], batched)
    check_env_specs(env)
    env.reset()
    dropped = env.transform[-1].drops.clone()  # by check_env_specs, which leaves episodes open
    rollout = env.rollout(60, break_when_any_done=False)
    assert_law([rollout], least=10)
    assert rollout["next", "was_truncated"].any()
    assert not rollout["next", "truncated"].any()
    assert env.transform[-1].drops == dropped


@pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode:payback.ShapingWarning")
def test_carry_leaves_the_debt_to_the_bootstrap(walks):
    env = walks(TRANSFORMS["grm-3"], on_truncation="carry")
    check_env_specs(env)
    env.reset()
    dropped = env.transform[-1].drops.clone()  # by check_env_specs, which leaves episodes open
    rollout = env.rollout(60, break_when_any_done=False)
    assert_law([rollout], least=10)
    assert rollout["next", "truncated"].sum() > 5
    begun = rollout["step_count"] == 0
    assert (rollout["debt"][begun] == 0).all()
    assert env.transform[-1].drops == dropped
    with pytest.raises(ValueError, match="carry' is refused"):
        ShapeReward(TRANSFORMS["pbim"], on_truncation="carry")


def test_settle_says_so_once(walks):
    env = walks(TRANSFORMS["grm-3"], learner_gamma=GAMMA)
    with pytest.warns(ShapingWarning, match="time limit is now part of the task") as said:
        env.rollout(30, break_when_any_done=False)
    assert len([w for w in said if w.category is ShapingWarning]) == 1


def test_the_mean_is_a_buffer(walks):
    env = walks(TRANSFORMS["grm-3"])
    rollout = env.rollout(40, break_when_any_done=False)
    F = rollout["next", "intrinsic_reward"].double()
    shaping = env.transform[-1]
    count, mean = shaping.shared["shared_0"], shaping.shared["shared_2"]
    assert count == F.numel()
    torch.testing.assert_close(mean, F.mean())
    other = walks(TRANSFORMS["grm-3"])
    other.transform[-1].load_state_dict(shaping.state_dict())
    assert other.transform[-1].shared["shared_2"] == mean
    other.transform[-1].frozen = True
    other.rollout(10)
    assert other.transform[-1].shared["shared_2"] == mean


@pytest.mark.parametrize("name", ["pbim", "grm-3"])
def test_a_collector_carries_loans_from_batch_to_batch(walks, name):
    env = walks(TRANSFORMS[name])
    collector = Collector(env, RandomPolicy(env.action_spec), frames_per_batch=7 * B, total_frames=20 * 7 * B)
    assert_law([batch.clone() for batch in collector], least=60)


def test_parallel_workers_pay_what_serial_ones_pay(walks):
    rollouts = []
    for batched in (SerialEnv, ParallelEnv):
        env = walks(TRANSFORMS["grm-3"], batched, workers=2)
        torch.manual_seed(3)
        rollouts.append(env.rollout(35, break_when_any_done=False))
        env.close()
    torch.testing.assert_close(rollouts[0]["next", "reward"], rollouts[1]["next", "reward"])
    assert_law(rollouts[1:], least=5)


@pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode:payback.ShapingWarning")
def test_a_reset_in_mid_episode_is_counted(walks):
    env = walks(TRANSFORMS["grm-3"], hazard=0.0)
    partial = env.rollout(3)[..., -1]["next"]
    mask = torch.tensor([True, False, False])[:, None]
    state = env.reset(partial.clone().set("_reset", mask))
    assert env.transform[-1].drops == 1
    torch.testing.assert_close(state["debt"], torch.where(mask, 0.0, partial["debt"]))
    assert (partial["debt"] != 0).all()
    env.reset()
    assert env.transform[-1].drops == 3
    env.reset()
    assert env.transform[-1].drops == 3


@pytest.mark.filterwarnings("ignore:.*truncated episode:payback.ShapingWarning")
@pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode:payback.ShapingWarning")
@pytest.mark.parametrize("batched", [False, True])
def test_a_bonus_is_called_as_in_the_other_hosts(walk, batched):
    """A ready one, which finds the actions itself, and a callable; what it is reset by are the ends of episodes."""

    def env_of(bonus):
        base = SerialEnv(B, lambda: GymWrapper(walk())) if batched else GymWrapper(walk())
        shaping = ShapeReward(payback.grm(GAMMA, 3), on_truncation="settle")
        env = TransformedEnv(base, Compose(StepCounter(5), BonusTransform(bonus), shaping))
        env.set_seed(1)
        return env

    env = env_of(ICM(warmup=0, learn_every=2))
    check_env_specs(env)
    torch.manual_seed(0)
    rollout = env.rollout(40, break_when_any_done=False)
    assert rollout["next", "intrinsic_reward"].std() > 0
    assert_law([rollout], least=5)

    visits = env_of(EpisodicCount(1.0, key=lambda obs: 0)).rollout(40, break_when_any_done=False)["next"]
    since = torch.zeros_like(visits["done"][..., 0, :], dtype=torch.float32)
    for t in range(40):
        step = visits[..., t]
        since += 1
        torch.testing.assert_close(step["intrinsic_reward"], 1 / (1 + since))
        since = torch.where(step["done"] | step["was_truncated"], 0.0, since)


def test_a_bonus_that_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="BonusTransform calls a bonus"):
        BonusTransform("novelty")


def test_a_bonus_of_another_shape_is_refused(walk):
    env = TransformedEnv(GymWrapper(walk()), Compose(BonusTransform(lambda *transition: torch.ones(2))))
    with pytest.raises(ValueError, match=r"at step 0 has shape \(2,\), not \(1,\)"):
        env.rollout(1)


class Broken(Transform):
    def __init__(self, value):
        super().__init__(in_keys=["reward"], out_keys=[])
        self.value = value

    def _step(self, tensordict, next_tensordict):
        if self.value is not None:
            next_tensordict.set("intrinsic_reward", self.value)
        return next_tensordict


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (None, KeyError, "no 'intrinsic_reward' in the tensordict at step 0"),
        (torch.tensor([[0.0], [0.0], [float("nan")]]), ValueError, "environment 2 at step 0 is nan"),
        (torch.zeros(3, 2), ValueError, r"shape \(3, 2\)"),
    ],
)
def test_bad_input(walk, value, error, words):
    env = TransformedEnv(
        SerialEnv(B, lambda: GymWrapper(walk())), Compose(Broken(value), ShapeReward(TRANSFORMS["grm-3"]))
    )
    with pytest.raises(error, match=words):
        env.rollout(2)


@pytest.mark.slow
def test_the_example_learns():
    spec = importlib.util.spec_from_file_location("torchrl_ppo", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    batches = []
    late = example.main(frames=6 * example.BATCH, keep=lambda batch: batches.append(batch.clone()))
    early = [len(episode) for episode in episodes(batches[:1])]
    assert late > 1.4 * sum(early) / len(early)
