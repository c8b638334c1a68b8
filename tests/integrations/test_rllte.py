"""RLeXplore's rewards made causal, in an environment of its own: rllte's pins do not resolve with current Gymnasium."""

import importlib.util
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rllte", reason="see CONTRIBUTING.md: rllte-core without its pins")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from rllte.xplore.reward import E3B, ICM, NGU, RE3, RIDE, RND, Disagreement, PseudoCounts
import torch
from gymnasium.vector import SyncVectorEnv

import payback
from payback.bonuses import EpisodicCount
from payback.integrations.rllte import ShapeRollouts

from .own_match import halves

GAMMA, B, T = 0.9, 3, 24
EXAMPLE = Path(__file__).parents[2] / "examples" / "rllte_rnd.py"
pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def envs(walk):
    return SyncVectorEnv([walk] * B)


def rollout(seed, steps=T):
    """A made-up rollout with ends of both kinds."""
    chance = torch.Generator().manual_seed(seed)
    obs = torch.randn(steps + 1, B, 2, generator=chance)
    ends = torch.rand(2, steps, B, generator=chance) < 0.15
    return {
        "observations": obs[:-1],
        "actions": torch.randint(2, (steps, B), generator=chance),
        "rewards": torch.zeros(steps, B),
        "terminateds": ends[0].float(),
        "truncateds": (ends[1] & ~ends[0]).float(),
        "next_observations": obs[1:],
    }


def changed_late(samples):
    """The same rollout with another second half; the state in the middle, seen by both halves, stays."""
    other, half = rollout(99), T // 2
    mixed = {key: torch.cat((samples[key][:half], other[key][half:])) for key in samples}
    mixed["observations"][half] = samples["observations"][half]
    return mixed


def watched(module, samples):
    for t in range(T):
        row = {key: samples[key][t] for key in samples}
        module.watch(row["observations"], row["actions"], row["rewards"], row["terminateds"], row["truncateds"],
                     row["next_observations"])  # fmt: skip


def first_half(reward, samples):
    """The rewards of the first half, by a copy: the module learns from what it rewards."""
    reward = deepcopy(reward)
    torch.manual_seed(0)
    watched(getattr(reward, "module", reward), samples)
    F = reward.compute(samples) if not hasattr(reward, "shape") else reward.shape(samples).intrinsic
    return F[: T // 2].double()


def looks_ahead(reward):
    warm = rollout(1)
    watched(getattr(reward, "module", reward), warm)
    (reward.shape if hasattr(reward, "shape") else reward.compute)(warm)
    samples = rollout(2)
    return not torch.allclose(first_half(reward, samples), first_half(reward, changed_late(samples)), atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"obs_norm_type": "none"}, {"rwd_norm_type": "none"}])
def test_the_defaults_look_ahead(envs, options):
    """Either normalisation alone is enough: the reason for this adapter."""
    assert looks_ahead(RND(envs, **options))


def test_re3_looks_ahead_and_is_refused(envs):
    re3 = RE3(envs, rwd_norm_type="none", obs_norm_type="none")
    assert looks_ahead(re3)
    with pytest.raises(ValueError, match="RE3 looks ahead"):
        ShapeRollouts(re3, payback.grm(GAMMA, 3))


def test_a_bonus_of_ours_is_refused():
    with pytest.raises(TypeError, match="a reward module of rllte"):
        ShapeRollouts(EpisodicCount(), payback.grm(0.99, 3))


def test_mixtures_are_refused(envs):
    with pytest.raises(ValueError, match="NGU mixes several reward modules"):
        ShapeRollouts(NGU(envs, obs_norm_type="none"), payback.grm(GAMMA, 3))


@pytest.mark.parametrize("module", [RND, ICM, Disagreement, E3B, PseudoCounts, RIDE])
def test_adapted_rewards_are_causal(envs, module):
    assert not looks_ahead(ShapeRollouts(module(envs), payback.grm(GAMMA, 3)))


@pytest.mark.parametrize("transform", [payback.grm(GAMMA, 3), halves(np, GAMMA)], ids=["grm", "a user's own"])
@pytest.mark.parametrize("on_truncation", ["settle", "carry"])
def test_every_episode_keeps_the_law_over_rollouts(envs, on_truncation, transform):
    shaping = ShapeRollouts(RND(envs), transform, on_truncation=on_truncation)
    rollouts = [(samples, shaping.shape(samples)) for samples in map(rollout, range(6))]
    ended = torch.cat([samples["terminateds"] + samples["truncateds"] > 0 for samples, _ in rollouts])
    shaped, terminated, truncated, F = (torch.cat(column) for column in zip(*(r for _, r in rollouts), strict=True))
    assert (terminated | truncated).equal(ended)
    assert bool(truncated.any()) == (on_truncation == "carry")
    checked = 0
    for k in range(B):
        begin = 0
        for end in (torch.nonzero(ended[:, k])[:, 0] + 1).tolist():
            paid = shaped[begin:end, k].double().numpy()
            weights = GAMMA ** np.arange(len(paid))
            if terminated[end - 1, k]:
                assert abs(weights @ paid) <= 1e-5 * (weights @ np.abs(paid)) + 1e-9
                checked += 1
            begin = end
    assert checked > 20
    assert (F > 0).all()


def test_autoreset_rows_pay_and_count_nothing(envs):
    shaping = ShapeRollouts(RND(envs), payback.grm(GAMMA, 3), scale=False)
    samples = rollout(4)
    valid = torch.ones(T, B, dtype=torch.bool)
    valid[0, 1] = False
    valid[1:] = (samples["terminateds"] + samples["truncateds"] == 0)[:-1]
    for key in ("terminateds", "truncateds"):
        samples[key][~valid] = 0
    for key in ("observations", "next_observations"):
        samples[key] = torch.where(valid[..., None], samples[key], float("nan"))
    shaped, _, _, F = shaping.shape(samples, valid)
    assert (shaped[~valid] == 0).all()
    assert (F[~valid] == 0).all()
    assert torch.isfinite(F).all()
    assert (F[valid] > 0).all()
    assert int(shaping.shaping_state.loans[0].count) == int(valid.sum())
    assert torch.isfinite(shaping.shape(rollout(5)).shaped).all(), "the module must not have learned from those rows"


def test_it_records_what_it_paid(envs, tmp_path):
    from payback import audit_file

    for on_truncation in ("settle", "carry"):
        options = {"on_truncation": on_truncation, "record": tmp_path / on_truncation}
        shaping = ShapeRollouts(RND(envs), payback.grm(GAMMA, 3), **options)
        ended = 0
        for samples in map(rollout, range(4)):
            shaping.shape(samples)
            ended += int(samples["terminateds"].sum() + samples["truncateds"].sum() * (on_truncation == "settle"))
        shaping.monitor.close()
        found = audit_file(tmp_path / on_truncation)
        assert found.ok
        assert (found.rows, len(found.episodes.leak)) == (4 * T * B, ended)


def test_a_settlement_that_float32_cannot_hold_raises(envs):
    shaping = ShapeRollouts(RND(envs), payback.match_at_end(0.3), scale=False)
    samples = rollout(0)
    for key in ("terminateds", "truncateds"):
        samples[key] = torch.zeros(T, B)
    for _ in range(3):
        shaping.shape(samples)
    samples["terminateds"][-1] = 1
    with pytest.raises(OverflowError, match=rf"at step {4 * T} of its episode.*float32 cannot hold"):
        shaping.shape(samples)
    assert shaping.shaping_state.owed.tolist() == [0] * B


def test_a_module_that_raises_leaves_no_debt_to_the_next_episode(envs, monkeypatch):
    shaping = ShapeRollouts(RND(envs), payback.match_at_end(GAMMA))
    samples = rollout(0)
    samples["terminateds"][-4:], samples["truncateds"][-4:] = 0, 0
    shaping.shape(samples)
    assert (shaping.shaping_state.owed != 0).all()
    broken = rollout(1)
    for key in ("terminateds", "truncateds"):
        broken[key][:] = 0
    broken["terminateds"][3, 1] = 1
    compute = shaping.module.compute
    monkeypatch.setattr(shaping.module, "compute", lambda *args, **kwargs: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        shaping.shape(broken)
    assert (shaping.shaping_state.owed != 0).tolist() == [True, False, True], "the episode that went on still owes"
    monkeypatch.setattr(shaping.module, "compute", compute)


@pytest.mark.parametrize("flag", [0.5, float("nan")])
def test_a_flag_that_is_no_answer_is_refused(envs, flag):
    samples = rollout(0)
    samples["terminateds"][2, 1] = flag
    with pytest.raises(ValueError, match="neither 0 nor 1; give booleans"):
        ShapeRollouts(RND(envs), payback.grm(GAMMA, 3)).shape(samples)


def test_the_causal_scale_is_the_rms_so_far():
    transform = payback.scale_by_rms()
    rewards = np.random.default_rng(0).normal(size=(9, 2))
    state, none = transform.init(np.zeros(2)), np.zeros(2, dtype=bool)
    for t, row in enumerate(rewards):
        state, shaped = transform.update(state, row, none)
        expected = row / np.sqrt(np.mean(rewards[:t] ** 2)) if t else row
        np.testing.assert_allclose(shaped, expected)


def test_the_example_learns():
    spec = importlib.util.spec_from_file_location("rllte_rnd", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    early, late = example.main(rollouts=100)
    assert late > 2 * early
