"""RLlib: what a bonus gets, and what happens if it raises or is more than float32 can hold (make test-hosts)."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("ray.rllib", reason="pip install payback[rllib]", exc_type=ImportError)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

import payback
from payback.integrations.rllib import ShapeReward

from .rllib_walk import GAMMA, configuration

pytestmark = [pytest.mark.host, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def config(walk):
    return configuration(walk)


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
        if not shaping.bonus.raised:
            with pytest.raises(RuntimeError, match="no memory left"):
                step(shaping, runner, episode, ends=True)
            assert shaping.shaping_state.owed.tolist() == [0]
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

    algorithm = config(payback.grm(GAMMA, 3), bonus=RND(learn_every=8)).build_algo()
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
