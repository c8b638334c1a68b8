"""The RLlib callback in real training runs, in an environment of its own (RLlib pins Gymnasium 1.2.2)."""

import importlib.util
import warnings
from collections import defaultdict
from copy import deepcopy
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

pytest.importorskip("ray.rllib", reason="pip install payback[rllib]", exc_type=ImportError)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.callbacks.callbacks import RLlibCallback
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode
    from ray.tune.registry import register_env

import payback
from payback.integrations.rllib import ShapeReward, centers_of

from .own_match import halves

GAMMA = 0.9
EXAMPLE = Path(__file__).parents[2] / "examples" / "rllib_ppo.py"
pytestmark = [pytest.mark.filterwarnings("ignore")]


class Log(RLlibCallback):
    """Keeps a copy of all sampled chunks (the learner adds steps to its own); in this process only."""

    chunks: ClassVar = defaultdict(list)
    evaluated: ClassVar = []

    def on_sample_end(self, *, env_runner, samples, **kwargs):
        for chunk in deepcopy(samples):
            if env_runner.config.in_evaluation:
                self.evaluated.append(chunk)
            else:
                self.chunks[chunk.id_].append(chunk)


@pytest.fixture
def config(walk):
    Log.chunks.clear()
    Log.evaluated.clear()
    register_env("walk", lambda context: walk())

    def config(transform, runners=0, log=(Log,), gamma=GAMMA, **options):
        shaping = partial(ShapeReward, **{"intrinsic": "novelty", "transform": transform, **options})
        return (
            PPOConfig()
            .environment("walk")
            .env_runners(num_env_runners=runners, num_envs_per_env_runner=3, rollout_fragment_length=4)
            .training(gamma=gamma, train_batch_size_per_learner=48, minibatch_size=48, num_epochs=1)
            .rl_module(model_config={"fcnet_hiddens": [8]})
            .callbacks([shaping, *log])
            .debugging(seed=0)
        )

    return config


def finished():
    """Yield (chunks, infos of its steps, rewards the learner gets) of each finished episode."""
    for chunks in Log.chunks.values():
        if chunks[-1].is_done and chunks[0].t_started == 0:
            infos = [info for chunk in chunks for info in chunk.get_infos()[1:]]
            yield chunks, infos, np.concatenate([chunk.get_rewards() for chunk in chunks])


@pytest.mark.parametrize(
    ("transform", "on_truncation"),
    [
        (payback.pbim(GAMMA), "settle"),
        (payback.grm(GAMMA, 3), "settle"),
        (payback.chain(payback.center(), halves(np, GAMMA)), "settle"),
        (payback.grm(GAMMA, 3, center=False), "carry"),
    ],
)
def test_debts_survive_the_cutting_of_episodes(config, transform, on_truncation):
    algorithm = config(transform, on_truncation=on_truncation).build_algo()
    for _ in range(4):
        algorithm.train()
    cut = limits = 0
    for chunks, infos, rewards in finished():
        shaped = rewards - [info["extrinsic"] for info in infos]
        weights = GAMMA ** np.arange(len(shaped) + 1)
        debt = infos[-1]["owed"]
        assert abs(weights[:-1] @ shaped - weights[-1] * debt) <= 1e-5 * (weights[:-1] @ np.abs(shaped) + 1)
        assert (chunks[-1].is_truncated and not chunks[-1].is_terminated) == (debt != 0)
        assert not (on_truncation == "settle" and chunks[-1].is_truncated)
        np.testing.assert_allclose([info["intrinsic"] for info in infos], [info["novelty"] for info in infos])
        cut += len(chunks) > 1
        limits += infos[-1]["truncated"]
    assert cut > 5
    assert limits > 3
    count = sum(len(chunk) for chunks in Log.chunks.values() for chunk in chunks)
    for center in centers_of(algorithm.env_runner.shaping.state):
        assert int(center.count) == count
    assert algorithm.env_runner.shaping.drops == 0
    algorithm.stop()


def test_the_extrinsic_return_is_reported(config):
    """With γ = 1 loans and repayments of an episode add up to 0: RLlib's own metric is then the extrinsic one."""
    algorithm = config(payback.pbim(1.0, center=False), gamma=1.0).build_algo()
    for _ in range(3):
        metrics = algorithm.train()["env_runners"]
        assert metrics["extrinsic_return_mean"] == pytest.approx(metrics["episode_return_mean"])
    shaped = [info["shaped"] for _, infos, _ in finished() for info in infos]
    assert np.abs(shaped).max() > 0.1
    algorithm.stop()


def test_evaluation_is_not_shaped(config):
    algorithm = config(payback.grm(GAMMA, 3)).evaluation(evaluation_interval=1, evaluation_duration=4).build_algo()
    algorithm.train()
    assert len(Log.evaluated) >= 4
    for chunk in Log.evaluated:
        assert not any("shaped" in info for info in chunk.get_infos())
        np.testing.assert_allclose(chunk.get_rewards(), [obs[0] for obs in chunk.get_observations()[1:]], rtol=1e-5)
    algorithm.stop()


def test_another_gamma_is_refused(config):
    with pytest.raises(ValueError, match=r"gamma 0.9, the loans are repaid with gamma 0.99.*strict=False"):
        config(payback.grm(0.99, 3)).build_algo()


def test_a_gamma_said_by_hand_is_compared():
    with pytest.raises(ValueError, match=r"gamma 0\.99, the loans are repaid with gamma 0\.9: they would not cancel"):
        ShapeReward("novelty", payback.grm(GAMMA, 3), learner_gamma=0.99)


class Halve(RLlibCallback):
    """Another callback, after the shaping, that changes rewards."""

    def on_episode_step(self, *, episode, **kwargs):
        episode.set_rewards(new_data=episode.get_rewards(-1) / 2, at_indices=-1)


def test_rewards_that_change_after_the_shaping_are_said_once(config):
    algorithm = config(payback.grm(GAMMA, 3), log=(Halve,)).build_algo()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(2):
            algorithm.train()
    words = [str(w.message) for w in said if "goes to the learner" in str(w.message)]
    assert len(words) == 1
    assert "another callback or a connector changes rewards" in words[0]
    algorithm.stop()
    right = config(payback.grm(GAMMA, 3)).build_algo()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        right.train()
    assert not [w for w in said if "goes to the learner" in str(w.message)]
    right.stop()


class RaisesOnce:
    """A bonus of 1 that raises at the first end of an episode of seven steps."""

    def __init__(self):
        self.calls, self.raised = 0, False

    def __call__(self, obs, action, next_obs, info):
        self.calls += 1
        next_obs[:] = 77  # what a bonus changes in its arguments changes nothing else
        if self.calls == 7:
            self.raised = True
            raise RuntimeError("no memory left")
        return np.ones(1)


def step(shaping, runner, episode, *, ends):
    episode.add_env_step(np.zeros(2, np.float32), 0, 1.0, {}, terminated=ends)
    shaping.on_episode_step(episode=episode, env_runner=runner, env_index=0)


def test_a_bonus_that_raises_at_an_end_and_overflow(config):
    runner = SimpleNamespace(config=SimpleNamespace(in_evaluation=False), num_envs=1, worker_index=0, env=None)
    shaping = ShapeReward(RaisesOnce(), payback.match_at_end(0.5))
    for _ in range(2):
        episode = SingleAgentEpisode()
        episode.add_env_reset(np.zeros(2, np.float32), {})
        shaping.on_episode_start(episode=episode, env_runner=runner, env_index=0)
        for _ in range(6):
            step(shaping, runner, episode, ends=False)
            assert (episode.get_observations(-1) == 0).all()
        if not shaping.intrinsic.raised:
            with pytest.raises(RuntimeError, match="no memory left"):
                step(shaping, runner, episode, ends=True)
            assert shaping.ledger.owed.tolist() == [0]
    step(shaping, runner, episode, ends=True)
    shaped = [info["shaped"] for info in episode.get_infos()[1:]]
    assert 0.5 ** np.arange(7) @ shaped == pytest.approx(0, abs=1e-12)
    episode = SingleAgentEpisode()
    episode.add_env_reset(np.zeros(2, np.float32), {})
    for _ in range(139):
        step(shaping, runner, episode, ends=False)
    with pytest.raises(OverflowError, match=r"step 140 of its episode.*float32 cannot hold"):
        step(shaping, runner, episode, ends=True)


def test_a_network_without_episodic_memory_is_shared_by_the_environments_of_a_runner(config):
    from payback.bonuses.torch import RND

    algorithm = config(payback.grm(GAMMA, 3), intrinsic=RND(learn_every=8)).build_algo()
    algorithm.train()
    shaping = algorithm.env_runner._callbacks[0]
    assert len({id(shaping._bonuses.of(k)) for k in range(3)}) == 1
    algorithm.stop()


def test_tuple_observations_and_actions_keep_their_parts():
    seen = []

    def bonus(obs, action, next_obs, info):
        seen.append((obs, action, next_obs))
        next_obs[0][:] = 77
        return np.ones(1)

    runner = SimpleNamespace(config=SimpleNamespace(in_evaluation=False), num_envs=1, worker_index=0, env=None)
    shaping, episode = ShapeReward(bonus, payback.match_at_end(GAMMA)), SingleAgentEpisode()
    episode.add_env_reset((np.zeros(3), 1, {"same": (np.zeros(2), np.ones(2))}), {})
    shaping.on_episode_start(episode=episode, env_runner=runner, env_index=0)
    episode.add_env_step((np.ones(3), 2, {"same": (np.ones(2), np.ones(2))}), (0, np.zeros(2)), 1.0, {})
    shaping.on_episode_step(episode=episode, env_runner=runner, env_index=0)
    obs, action, next_obs = seen[0]
    assert isinstance(obs, tuple)
    assert [part.shape for part in (*obs[:2], *action)] == [(1, 3), (1,), (1,), (1, 2)]
    assert [part.shape for part in next_obs[2]["same"]] == [(1, 2), (1, 2)]
    assert (episode.get_observations(-1)[0] == 1).all(), "a bonus gets copies"


@pytest.mark.parametrize("runners", [0, 2])
def test_it_records_what_it_paid(config, runners, tmp_path):
    from payback.auditing.log_file import audit_file
    from payback.auditing.parts import parts_of

    folder = tmp_path / "log"
    algorithm = config(payback.grm(GAMMA, 3), runners=runners, log=(), record=str(folder)).build_algo()
    for _ in range(3):
        algorithm.train()
    sampled = algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"))
    algorithm.stop()
    found = audit_file(folder)
    assert found.ok
    assert found.rows == sampled
    assert len(found.episodes.leak) > 10
    assert len({part.parent for part in parts_of(folder)}) == max(runners, 1)


def test_remote_runners_share_the_mean(config, tmp_path):
    algorithm = config(payback.grm(GAMMA, 3), runners=2, log=()).build_algo()
    for _ in range(2):
        algorithm.train()
    centers = algorithm.env_runner_group.foreach_env_runner(
        lambda runner: [runner.shaping.state[0].count, runner.shaping.state[0].mean, runner.num_envs],
        local_env_runner=False,
    )
    assert len(centers) == 2
    assert centers[0] == centers[1]
    assert centers[0][0] >= 2 * 48
    assert centers[0][1] > 0
    sampled = algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"))
    assert centers[0][0] == sampled, "each reward counts once, however often F̄ is merged"
    path = algorithm.save_to_path(str(tmp_path))
    algorithm.stop()
    again = type(algorithm).from_checkpoint(path)
    again.train()
    counts = again.env_runner_group.foreach_env_runner(
        lambda runner: int(runner.shaping.state[0].count), local_env_runner=False
    )
    assert counts == [again.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"))] * 2
    again.stop()


@pytest.mark.parametrize("way", ["from_checkpoint", "restore"])
def test_checkpoints_carry_the_mean(config, way, tmp_path):
    algorithm = config(payback.grm(GAMMA, 3), log=()).build_algo()
    algorithm.train()
    before = centers_of(algorithm.env_runner.shaping.state)[0]
    assert before.mean > 0
    path = algorithm.save(str(tmp_path)).checkpoint.path
    if way == "restore":
        again = config(payback.grm(GAMMA, 3), log=()).build_algo()
        again.restore(path)
    else:
        again = type(algorithm).from_checkpoint(path)
    assert again.env_runner.shaping_means == [before]
    again.train()
    sampled = again.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"))
    assert int(centers_of(again.env_runner.shaping.state)[0].count) == sampled > int(before.count)
    again.save(str(tmp_path / "again"))
    for one in (algorithm, again):
        one.stop()


def test_an_observed_debt_is_refused():
    with pytest.raises(ValueError, match=r"observe_debt is refused for RLlib.*gymnasium\.ShapeReward"):
        ShapeReward("novelty", payback.grm(GAMMA, 3), observe_debt=True)


def test_the_example_learns():
    spec = importlib.util.spec_from_file_location("rllib_ppo", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    returns = example.main(iterations=4, runners=0)
    assert returns[-1] > 1.5 * returns[0]
