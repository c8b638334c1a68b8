"""TorchRL: what comes after the shaping is seen while training runs, and by check_wiring before it."""

import warnings

import pytest

pytest.importorskip("torchrl", reason="pip install payback[torchrl]")
import numpy as np
import torch
from tensordict import TensorDict
from torchrl.data import Composite, Unbounded
from torchrl.envs import Compose, EnvBase, GymWrapper, RewardClipping, RewardSum, SerialEnv, StepCounter, TransformedEnv
from torchrl.envs.transforms import DTypeCastTransform, Transform, VecNorm
from torchrl.envs.utils import RandomPolicy

with warnings.catch_warnings():  # TorchRL deprecates parts of itself while it is imported
    warnings.simplefilter("ignore")
    from torchrl.collectors import Collector

import payback
from payback import ShapingWarning, audit_file
from payback.integrations.torchrl import ShapeReward, check_wiring

from .corridor import Corridor

GAMMA = 0.9
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::payback.InterestWarning", "ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:a truncated episode", "ignore:Nested TransformedEnvs"),
]


class One(Transform):
    """A bonus of 1, computed with a graph."""

    weight = torch.nn.Parameter(torch.ones(()))

    def _step(self, tensordict, next_tensordict):
        return next_tensordict.set("intrinsic_reward", self.weight * torch.ones_like(next_tensordict["reward"]))


def env(*after, transform=None, length=6, inside=(), **options):
    shaping = ShapeReward(transform or payback.match_after(GAMMA, 4), learner_gamma=GAMMA, **options)
    base = SerialEnv(2, [lambda: GymWrapper(Corridor(length)), lambda: GymWrapper(Corridor(length // 2))])
    return TransformedEnv(base, Compose(*inside, One(), shaping, *after))


def shaping_of(one):
    return next(t for t in one.transform if isinstance(t, ShapeReward))


def play(one, steps=20):
    with torch.no_grad():
        return one.rollout(steps, break_when_any_done=False)


@pytest.mark.parametrize(
    ("outside", "name"),
    [
        (lambda: RewardClipping(-0.1, 0.1), "RewardClipping"),
        (lambda: VecNorm(in_keys=["reward"]), "VecNorm"),
    ],
)
def test_a_transform_after_the_shaping_that_changes_rewards_is_said_once(outside, name):
    words = rf"the shaping paid \S+ to environment 0, but the learner is given .*\({name}\) changes rewards"
    with pytest.warns(ShapingWarning, match=words) as said:
        play(env(outside()))
    assert len([w for w in said if "changes rewards" in str(w.message)]) == 1
    with pytest.raises(payback.InvarianceError, match=rf"came out of {name}"):
        check_wiring(env(outside()), episodes=4)


def test_also_around_a_vector_of_shaped_environments():
    def one():
        shaping = ShapeReward(payback.match_after(GAMMA, 4), learner_gamma=GAMMA)
        return TransformedEnv(GymWrapper(Corridor(6)), Compose(One(), shaping))

    with pytest.warns(ShapingWarning, match="RewardClipping around a vector of shaped environments changes"):
        play(TransformedEnv(SerialEnv(2, one), RewardClipping(-0.1, 0.1)))
    play(TransformedEnv(SerialEnv(2, one), Compose(RewardSum(), VecNorm(in_keys=["observation"]))))


def test_also_in_a_second_environment_around_the_first():
    nested = TransformedEnv(env(), RewardClipping(-0.1, 0.1), auto_unwrap=False)
    with pytest.warns(ShapingWarning, match="outside its TransformedEnv"):
        play(nested)


def test_right_environments_are_never_accused_and_left_as_they_were():
    one = env(RewardSum(), inside=(StepCounter(4),), transform=payback.grm(GAMMA, 2))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*(changes rewards|stacked|mid-episode|did not cancel)")
        play(one)
        one.reset()
        before = {name: buffer.clone() for name, buffer in shaping_of(one).named_buffers()}
        assert check_wiring(one, episodes=4) >= 4
        after = dict(shaping_of(one).named_buffers())
        assert all(torch.equal(before[name], after[name]) for name in before)
        play(one)


def test_a_step_counter_after_the_shaping_fails_check_wiring():
    with pytest.raises(payback.InvarianceError, match="ended outside the shaping, by StepCounter; put the time"):
        check_wiring(env(StepCounter(3)))
    with pytest.raises(ValueError, match="found no ShapeReward"):
        check_wiring(TransformedEnv(GymWrapper(Corridor(3)), StepCounter(2)))


def test_a_collector_that_limits_trajectories_is_said():
    one = env()
    collector = Collector(
        one, RandomPolicy(one.action_spec), frames_per_batch=24, total_frames=24, max_frames_per_traj=4
    )
    with pytest.warns(ShapingWarning, match=r"debt of .* was dropped.*no max_frames_per_traj") as said, torch.no_grad():
        list(collector)
    assert len([w for w in said if "mid-episode" in str(w.message)]) == 1


def test_two_shapings_are_refused():
    """They would keep their loans under the same keys."""
    with pytest.raises(ValueError, match=r"two ShapeReward \(gamma 0\.9, then 0\.99\).*shape them once"):
        play(env(ShapeReward(payback.match_after(0.99, 4))))


def never_settles(gamma):
    """A user's match that is wrong: it repays one step later, but forgets the end."""

    def update(paid, reward, done, valid=None, settle=None):
        return torch.where(done, 0.0, reward), reward - paid / gamma

    return payback.Match(
        torch.zeros_like, update, gamma=gamma,
        owed=lambda paid: paid / gamma, drop=lambda paid, where: torch.where(where, 0.0, paid),
    )  # fmt: skip


def test_a_match_that_does_not_cancel_is_said_once():
    one = env(transform=never_settles(GAMMA))
    with pytest.warns(ShapingWarning, match=r"of \d+ finished episodes did not cancel") as said:
        play(one, 400)
    assert len([w for w in said if "did not cancel" in str(w.message)]) == 1


def test_an_unconfirmed_gamma_is_said_once():
    one = env()
    shaping_of(one).monitor.confirmed = False
    with pytest.warns(ShapingWarning, match=r"never confirmed: loans are repaid with gamma 0\.9") as said:
        play(one)
    assert len(said) == 1


def test_rewards_in_half_precision_are_refused():
    half = DTypeCastTransform(torch.float32, torch.bfloat16, in_keys=["reward"])
    with pytest.raises(TypeError, match=r"reward is torch\.bfloat16.*do not cancel; cast it to float32"):
        play(env(inside=(half,)))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool])
def test_rewards_in_integers_are_refused(dtype):
    whole = DTypeCastTransform(torch.float32, dtype, in_keys=["reward"])
    with pytest.raises(TypeError, match=rf"reward is {dtype}, .*do not cancel; cast it to float32"):
        play(env(inside=(whole,)))


def test_loans_hold_no_graph():
    one = env(transform=payback.match_at_end(GAMMA), length=50)
    state = one.reset()
    for _ in range(5):
        state = one.step(state.set("action", one.action_spec.rand()))["next"]
    assert state["intrinsic_reward"].requires_grad
    assert not any(leaf.requires_grad for leaf in state["loans"].values())
    assert not state["reward"].requires_grad


@pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode")
def test_a_bonus_that_raises_at_an_end_leaves_no_debt_to_the_next_episode():
    class Raises(Transform):
        calls = 0

        def _step(self, tensordict, next_tensordict):
            self.calls += 1
            if self.calls == 3:
                raise RuntimeError("no memory left")
            return next_tensordict

    one = env(inside=(Raises(),), length=6, transform=payback.match_at_end(GAMMA))
    with pytest.raises(RuntimeError, match="no memory left"):
        play(one)
    assert (one.reset()["debt"] == 0).all()
    assert shaping_of(one).drops == 2
    shaped = play(one, 6)["next", "shaped_reward"][0, :, 0].double().numpy()
    assert GAMMA ** np.arange(6) @ shaped == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("flags", [torch.uint8, torch.float32])
def test_flags_of_another_dtype(flags):
    class Cast(Transform):
        def _step(self, tensordict, next_tensordict):
            return next_tensordict.set("terminated", next_tensordict["terminated"].to(flags))

    class Back(Transform):
        def _step(self, tensordict, next_tensordict):
            return next_tensordict.set("terminated", next_tensordict["terminated"].bool())

    paid = [play(one)["next", "shaped_reward"] for one in (env(), env(Back(), inside=(Cast(),)))]
    torch.testing.assert_close(paid[0], paid[1])


@pytest.mark.parametrize("on_truncation", ["settle", "carry"])
def test_it_records_what_it_paid(on_truncation, tmp_path):
    pytest.importorskip("pyarrow", reason="pip install payback[audit]")
    one = env(
        inside=(StepCounter(4),), transform=payback.grm(GAMMA, 2), on_truncation=on_truncation, record=tmp_path / "log"
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*mid-episode")
        for _ in range(3):
            rollout = play(one, 30)
    one.close()
    found = audit_file(tmp_path / "log")
    assert found.ok
    assert found.rows == 180
    assert len(found.episodes.leak) == 3 * int(np.sum(rollout["next", "terminated"].numpy()))


def test_check_wiring_leaves_the_log_alone(tmp_path):
    """It raised where a log was open, because it copied the module pyarrow; and what it plays is no training."""
    pytest.importorskip("pyarrow", reason="pip install payback[audit]")
    one = env(length=8, record=tmp_path / "log")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*mid-episode")
        assert check_wiring(one, episodes=4) >= 4
        play(one, 30)
        assert check_wiring(one, episodes=4) >= 4
        play(one, 30)
    shaping = shaping_of(one)
    assert shaping.monitor.steps == 60
    one.close()
    found = audit_file(tmp_path / "log")
    assert found.ok
    assert found.rows == 120
    assert len(found.episodes.leak) == shaping.monitor.finished == 2 * (30 // 8 + 30 // 4)
    assert shaping.monitor.broken == 0


class NeverCut(EnvBase):
    """Ends after four steps, and has no `truncated`, which TorchRL leaves to the environment."""

    def __init__(self):
        super().__init__()
        self.observation_spec = Composite(observation=Unbounded((1,)))
        self.action_spec, self.reward_spec = Unbounded((1,)), Unbounded((1,))

    def _reset(self, tensordict, **options):
        self.t = 0
        return TensorDict({"observation": torch.zeros(1)})

    def _step(self, tensordict):
        self.t += 1
        ends = torch.tensor([self.t == 4])
        return TensorDict({"observation": torch.zeros(1), "reward": torch.ones(1), "done": ends, "terminated": ends})

    def _set_seed(self, seed):
        pass


@pytest.mark.parametrize("on_truncation", ["settle", "carry"])
def test_check_wiring_without_truncations(on_truncation):
    shaping = ShapeReward(payback.match_after(GAMMA, 4), on_truncation=on_truncation, learner_gamma=GAMMA)
    one = TransformedEnv(NeverCut(), Compose(One(), shaping))
    assert "truncated" not in one.done_spec.keys()  # noqa: SIM118
    assert check_wiring(one, episodes=4) >= 4
    one.append_transform(RewardClipping(-0.1, 0.1))
    with pytest.raises(payback.InvarianceError, match="came out of RewardClipping"):
        check_wiring(one, episodes=4)
