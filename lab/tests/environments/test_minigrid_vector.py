"""The engine as a vector environment of Gymnasium and of SB3: in lock-step with the package's own environments."""

import subprocess
import sys

import gymnasium as gym
import minigrid  # noqa: F401 (its import registers the tasks)
import numpy as np
import pytest
from gymnasium.wrappers import FlattenObservation
from minigrid.wrappers import ImgObsWrapper
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

from payback_lab.environments.minigrid.gymnax_form import MiniGrid
from payback_lab.environments.minigrid.layouts import draw_layouts, pool_path
from payback_lab.environments.minigrid.sb3_form import make_sb3_vec
from payback_lab.environments.minigrid.tasks import SECOND_VERSIONS, TASKS, short_name
from payback_lab.environments.minigrid.vector import make_vec

B, POOL, STEPS = 6, 4, 250


def slow(name):
    """A parameter that `make test` leaves out."""
    return pytest.param(name, marks=pytest.mark.slow)


class Package:
    """The package's environments, started on the layouts that the engine has just drawn."""

    def __init__(self, name, lanes, layouts, flat):
        wrap = lambda env: FlattenObservation(ImgObsWrapper(env)) if flat else ImgObsWrapper(env)  # noqa: E731
        self.envs = [wrap(gym.make(name)) for _ in range(B)]
        self.lanes, self.layouts = lanes, layouts

    def start(self, k):
        """Reset environment k with the seed whose layout the engine's k-th environment stands on."""
        now = np.asarray(self.lanes.state.grid)[k], *(int(part[k]) for part in self.lanes.state[1:4])
        seeds = [n for n in range(POOL) if all(np.array_equal(a[n], b) for a, b in zip(self.layouts, now, strict=True))]
        return self.envs[k].reset(seed=seeds[0])[0]


def play(name, lanes, reset, step, **kinds):
    """Step both sides with the same actions; return how many episodes terminated, were truncated, were rewarded."""
    package, ends = Package(name, lanes, **kinds), np.zeros(3, int)
    rng, obs = np.random.default_rng(0), reset()
    np.testing.assert_array_equal(obs, [package.start(k) for k in range(B)])
    for _ in range(STEPS):
        actions = rng.choice(7, size=B, p=[0.2, 0.2, 0.4, 0.05, 0.05, 0.05, 0.05])
        obs, reward, terminated, truncated, last = step(actions)
        assert obs.dtype == np.uint8
        for k, env in enumerate(package.envs):
            seen, paid, term, trunc, _ = env.step(actions[k])
            assert (reward[k], terminated[k], truncated[k]) == (np.float32(paid), term, trunc and not term)
            if term or trunc:
                np.testing.assert_array_equal(last[k], seen)
                seen = package.start(k)
                ends += [term, trunc and not term, paid > 0]
            np.testing.assert_array_equal(obs[k], seen)
    return ends


@pytest.mark.parametrize("name", [slow("Empty-5x5"), "DoorKey-5x5", slow("LavaCrossingS9N1")])
def test_gymnasiums_form_equals_the_package(name):
    layouts = draw_layouts(name, POOL)
    envs = make_vec(f"MiniGrid-{name}-v0", B, layouts=layouts)
    lasts = []

    def step(actions):
        obs, reward, terminated, truncated, info = envs.step(actions)
        done = info.get("_final_obs", np.zeros(B, bool))
        assert (done == (terminated | truncated)).all()
        lasts.append(done.any())
        return obs, reward, terminated, truncated & ~terminated, info.get("final_obs")

    ends = play(f"MiniGrid-{name}-v0", envs.lanes, lambda: envs.reset(seed=0)[0], step, layouts=layouts, flat=False)
    assert any(lasts)
    assert ends[{"Empty-5x5": 2, "DoorKey-5x5": 1, "LavaCrossingS9N1": 0}[name]] > 0


def test_sb3s_form_equals_the_package():
    layouts = draw_layouts("Empty-5x5", POOL)
    env = make_sb3_vec("Empty-5x5", B, layouts=layouts, flat=True)

    def step(actions):
        obs, reward, done, infos = env.step(actions)
        truncated = np.array([info["TimeLimit.truncated"] for info in infos])
        assert [("episode" in info) for info in infos] == done.tolist(), "as SB3's Monitor"
        last = [info.get("terminal_observation") for info in infos]
        return obs, reward, done & ~truncated, truncated, last

    env.seed(1)
    ends = play("MiniGrid-Empty-5x5-v0", env.venv.lanes, env.reset, step, layouts=layouts, flat=True)
    assert (ends[:2] > 0).all()


def test_spaces_are_the_packages():
    theirs = ImgObsWrapper(gym.make("MiniGrid-DoorKey-5x5-v0"))
    layouts = draw_layouts("DoorKey-5x5", 1)
    envs, one = make_vec("DoorKey-5x5", 3, layouts=layouts), MiniGrid("MiniGrid-DoorKey-5x5-v0", layouts=layouts)
    flat = make_sb3_vec("DoorKey-5x5", 3, layouts=layouts, flat=True)
    assert envs.single_observation_space == one.observation_space() == theirs.observation_space
    assert envs.single_action_space == one.action_space() == flat.action_space == theirs.action_space
    assert flat.observation_space == FlattenObservation(theirs).observation_space
    assert envs.reset(seed=0)[0] in envs.observation_space


def test_a_seed_repeats_and_none_does_not():
    envs = make_vec("LavaCrossingS9N1", 64, layouts=draw_layouts("LavaCrossingS9N1", 8))
    first, again, other, drawn = (envs.reset(seed=seed)[0] for seed in (3, 3, 4, None))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert not np.array_equal(other, drawn)


@pytest.mark.slow
def test_sb3_trains_and_evaluates_on_it():
    env = make_sb3_vec("Empty-5x5", 4, layouts=draw_layouts("Empty-5x5", 1), flat=True, max_steps=10)
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=32, n_epochs=1, seed=0).learn(128)
    assert len(model.ep_info_buffer) > 0
    returns, lengths = evaluate_policy(model, env, n_eval_episodes=4, return_episode_rewards=True)
    assert len(returns) == 4
    assert max(lengths) <= 10


def test_the_packages_names():
    for name in TASKS:
        registered = f"MiniGrid-{name}-v{int(name in SECOND_VERSIONS)}"
        assert short_name(registered) == short_name(name) == name
        theirs = [found for n in (1, 0) if (found := f"MiniGrid-{name}-v{n}") in gym.registry]
        assert theirs[:1] in ([], [registered])
    for name in SECOND_VERSIONS:
        with pytest.raises(ValueError, match=f"only its version MiniGrid-{name}-v1"):
            make_vec(f"MiniGrid-{name}-v0", 2)
    with pytest.raises(ValueError, match='no task "Nowhere"'):
        make_vec("MiniGrid-Nowhere-v0", 2)
    assert pool_path("MiniGrid-DoorKey-8x8-v0") == pool_path("DoorKey-8x8")


@pytest.mark.parametrize("actions", [[0, 7], [0.0, 1.0], [0], [-1, 0]])
def test_wrong_actions_are_refused(actions):
    envs = make_vec("Empty-5x5", 2, layouts=draw_layouts("Empty-5x5", 1))
    with pytest.raises(RuntimeError, match="call reset before"):
        envs.step([0, 0])
    envs.reset()
    with pytest.raises(ValueError, match="actions must be 2 whole numbers from 0 to 6, got"):
        envs.step(np.array(actions))
    with pytest.raises(ValueError, match="num_envs must be at least 1"):
        make_vec("Empty-5x5", 0)


def test_the_engine_needs_none_of_the_experiments_packages():
    script = """
import sys
for name in ("payback", "altair", "jinja2", "pyarrow", "rich", "tyro", "vl_convert", "stable_baselines3", "torch"):
    sys.modules[name] = None
import payback_lab.environments.minigrid.lockstep, payback_lab.environments.minigrid.vector
"""
    subprocess.run([sys.executable, "-c", script], check=True)
