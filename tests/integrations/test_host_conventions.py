"""What hosts and their users hand to the wrappers against the conventions, and what hosts do with our values."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import payback
from payback import ShapingWarning

from .corridor import Corridor

GAMMA, B = 0.9, 2
PACKAGE = str(Path(payback.__file__).parent)
TRANSFORMS = [
    payback.pbim(GAMMA),
    payback.grm(GAMMA, 3),
    payback.match_evenly(GAMMA, 4),
    payback.match_geometric(GAMMA, 0.5),
    payback.match_when(GAMMA),
    payback.chain(payback.scale_by_rms(), payback.clip(0, 2), payback.match_after(GAMMA, 2), payback.scale(0.1)),
]


def ones(obs, action, next_obs, infos):
    return np.ones(len(next_obs))


@pytest.fixture
def sb3():
    return pytest.importorskip("payback.integrations.sb3", reason="pip install payback[sb3]", exc_type=ImportError)


def corridors(length=3):
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([lambda: Corridor(length)] * B)


def altered(venv, change):
    """Return the VecEnv with infos that `change` has altered."""
    from stable_baselines3.common.vec_env import VecEnvWrapper

    class Altered(VecEnvWrapper):
        def reset(self):
            return self.venv.reset()

        def step_wait(self):
            obs, reward, done, infos = self.venv.step_wait()
            return obs, reward, done, change(infos)

    return Altered(venv)


@pytest.mark.parametrize("bonus", [ones, "bonus"])
def test_sb3_a_vecenv_without_infos_is_refused(sb3, bonus):
    env = sb3.ShapeVectorReward(altered(corridors(), lambda infos: []), bonus, payback.grm(GAMMA, 3))
    env.reset()
    with pytest.raises(ValueError, match="returned 0 infos for 2 environments"):
        env.step(np.ones(B, int))


def without_terminal(infos):
    return [{key: value for key, value in info.items() if key != "terminal_observation"} for info in infos]


@pytest.mark.filterwarnings("ignore:environment . was reset in mid-episode")  # the debt of the step that raised
@pytest.mark.parametrize(("bonus", "observe_debt"), [(ones, False), ("bonus", True)])
def test_sb3_a_vecenv_without_terminal_observations_is_refused_where_they_are_needed(sb3, bonus, observe_debt):
    venv = altered(corridors(), without_terminal)
    env = sb3.ShapeVectorReward(venv, bonus, payback.grm(GAMMA, 3), observe_debt=observe_debt)
    env.reset()
    for _ in range(2):
        env.step(np.ones(B, int))
    with pytest.raises(KeyError, match="environment 0 ended, but its info has no 'terminal_observation'"):
        env.step(np.ones(B, int))


def test_sb3_an_info_key_needs_no_terminal_observations(sb3):
    env = sb3.ShapeVectorReward(altered(corridors(), without_terminal), "bonus", payback.grm(GAMMA, 3))
    env.reset()
    for _ in range(7):
        env.step(np.ones(B, int))
    assert env.monitor.finished == 2 * B


def test_sb3_ars_has_no_discount(sb3):
    contrib = pytest.importorskip("sb3_contrib")

    def learn(gamma):
        env = sb3.ShapeVectorReward(corridors(), "bonus", payback.grm(gamma, 3))
        contrib.ARS("LinearPolicy", env, n_delta=2, seed=0).learn(24, callback=sb3.CheckShaping())

    with pytest.warns(ShapingWarning, match="shows its callbacks no rewards"):
        learn(1.0)
    with pytest.raises(ValueError, match=r"ARS has no discount.*use gamma=1 in the transform"):
        learn(GAMMA)


def test_sb3_a_single_environment_is_refused(sb3):
    with pytest.raises(TypeError, match=r"wraps a VecEnv .* use make_vec_env"):
        sb3.ShapeVectorReward(Corridor(3), ones, payback.grm(GAMMA, 3))


def test_sb3_a_reward_passes_through_six_files(sb3, monkeypatch):
    """The files of the calls around the bonus, and around what is lent and repaid: what a reader has to open."""
    from payback.core.center import _Center
    from payback.core.repay_at_ages import RepayAtAges

    files = set()

    def look():
        frame = sys._getframe(1)
        while frame is not None:
            name = frame.f_code.co_filename
            files.update([name.removeprefix(PACKAGE)] if name.startswith(PACKAGE) else [])
            frame = frame.f_back

    for kind, name, original in ((_Center, "_step", _Center._step), (RepayAtAges, "_repay", RepayAtAges._repay)):

        def step(*args, original=original, **kwargs):
            look()
            files.add(original.__code__.co_filename.removeprefix(PACKAGE))
            return original(*args, **kwargs)

        monkeypatch.setattr(kind, name, step)

    def bonus(*transition):
        look()
        return ones(*transition)

    env = sb3.ShapeVectorReward(corridors(), bonus, payback.grm(GAMMA, 3))
    env.reset()
    for _ in range(7):
        env.step(np.ones(B, int))
    assert files == {
        "/integrations/sb3/shape_vector_reward.py",
        "/integrations/host.py",
        "/ledger.py",
        "/core/transform.py",
        "/core/center.py",
        "/core/repay_at_ages.py",
    }


@pytest.mark.parametrize("transform", TRANSFORMS, ids=repr)
def test_transforms_monitors_and_states_can_be_pickled(transform):
    from payback.ledger import make
    from payback.monitor import Monitor

    monitor = Monitor(make(transform), learner_gamma=GAMMA)
    state, no = monitor.ledger.init(np.zeros(B)), np.zeros(B, bool)
    for _ in range(3):
        state, _ = monitor.step(state, np.ones(B), no, no)
    again, other = pickle.loads(pickle.dumps((monitor, state)))
    assert again.ledger == monitor.ledger
    assert pickle.loads(pickle.dumps(transform)) == transform
    for ends in (no, ~no):
        state, step = monitor.step(state, np.ones(B), ends, no)
        other, same = again.step(other, np.ones(B), ends, no)
        np.testing.assert_array_equal(step.shaped, same.shaped)


@pytest.mark.filterwarnings("ignore:there is no match", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("transform", [payback.scale(0.5), payback.center()], ids=repr)
def test_torchrl_takes_a_transform_without_state_per_environment(transform):
    pytest.importorskip("torchrl")
    import torch
    from torchrl.envs import Compose, GymWrapper, SerialEnv, StepCounter, TransformedEnv
    from torchrl.envs.transforms import RNDTransform
    from torchrl.envs.utils import check_env_specs

    from payback.integrations.torchrl import ShapeReward

    rnd = RNDTransform(torch.nn.Linear(1, 2), torch.nn.Linear(1, 2), normalize_obs=False)
    base = SerialEnv(B, lambda: GymWrapper(Corridor(9)))
    env = TransformedEnv(base, Compose(StepCounter(4), rnd, ShapeReward(transform)))
    check_env_specs(env)
    after = env.rollout(8, break_when_any_done=False)["next"]
    torch.testing.assert_close(after["reward"], after["extrinsic_reward"] + after["shaped_reward"])
    assert after["truncated"].sum() == 2 * B, "nothing is owed, so nothing is settled"
    assert not after["terminated"].any()


@pytest.mark.host
def test_gymnax_states_are_kept_by_orbax_and_flax(tmp_path):
    orbax = pytest.importorskip("orbax.checkpoint", reason="make test-hosts")
    serialization = pytest.importorskip("flax.serialization")
    import jax

    from payback.bonuses.jax import rnd
    from payback.integrations.gymnax import ShapeVectorReward

    from .jax_walk import Walk, play

    for transform in (payback.grm(GAMMA, 3), payback.match_after(GAMMA, 1)):
        env = ShapeVectorReward(Walk(), rnd(width=8, latent=4), transform, learner_gamma=GAMMA, on_truncation="settle")
        _, state = play(env, 10)
        again = serialization.from_bytes(state, serialization.to_bytes(state))
        for new, old in zip(jax.tree.leaves(again), jax.tree.leaves(state), strict=True):
            np.testing.assert_array_equal(new, old)
        path = tmp_path / type(transform).__name__
        with orbax.StandardCheckpointer() as checkpointer:
            checkpointer.save(path, state)
            checkpointer.wait_until_finished()
            kept = checkpointer.restore(path, state)
        for new, old in zip(jax.tree.leaves(kept), jax.tree.leaves(state), strict=True):
            np.testing.assert_array_equal(new, old)
