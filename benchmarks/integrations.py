"""What the adapters add to a step, beside what Gymnasium's own reward wrapper adds, and to SB3's PPO.

    python benchmarks/integrations.py [--check] [--json FILE]      --check fails when a bound is broken

Times are CPU seconds of this one-threaded process, the sides of a ratio taken in turns: on a shared machine the ratio
means something, the time does not. The intrinsic reward itself costs nothing here, so that the shaping can be seen.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import NormalizeReward
from minigrid.envs import DoorKeyEnv
from minigrid.wrappers import ImgObsWrapper
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

import payback
from payback.integrations import gymnasium, sb3

GAMMA, B, DELAY = 0.99, 16, 10
EPISODE = 200
BOUNDS = {"gymnasium": 0.65, "sb3": 0.03}


class StillEnvs(gym.vector.VectorEnv):
    """Sixteen environments that cost nothing; each episode takes two hundred steps, ending one after the other."""

    num_envs = B
    single_observation_space = gym.spaces.Box(-1, 1, (4,))
    observation_space = gym.vector.utils.batch_space(single_observation_space, B)
    single_action_space = gym.spaces.Discrete(2)
    action_space = gym.vector.utils.batch_space(single_action_space, B)
    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012  Gymnasium reads it off the class

    def __init__(self) -> None:
        self.t, self.obs, self.reward = 0, np.zeros((B, 4), np.float32), np.random.default_rng(0).random(B)
        self.never, self.ends = np.zeros(B, bool), np.zeros((EPISODE, B), bool)
        self.ends[np.arange(B) * (EPISODE // B), np.arange(B)] = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self.obs, {}

    def step(self, actions: Any) -> Any:
        self.t += 1
        return self.obs, self.reward, self.ends[self.t % EPISODE], self.never, {"bonus": self.reward}


def cost_of_steps(envs: gym.vector.VectorEnv, steps: int) -> float:
    actions = np.zeros(B, dtype=int)
    start = time.process_time()
    for _ in range(steps):
        envs.step(actions)
    return (time.process_time() - start) / steps * 1e6


def gymnasium_steps(rounds: int = 60, steps: int = 400) -> dict[str, float]:
    """Return the microseconds that each wrapper adds to a step of sixteen environments, the least of many rounds."""
    bonus = np.random.default_rng(1).random(B)
    shape = lambda source, transform: gymnasium.ShapeVectorReward(StillEnvs(), source, transform)  # noqa: E731
    sides = {
        "bare": StillEnvs(),
        "NormalizeReward": NormalizeReward(StillEnvs()),
        "match_after, D = 10": shape(lambda *transition: bonus, payback.match_after(GAMMA, DELAY)),
        "grm, D = 10": shape(lambda *transition: bonus, payback.grm(GAMMA, DELAY)),
        "grm, D = 10, from info": shape("bonus", payback.grm(GAMMA, DELAY)),
    }
    for envs in sides.values():
        envs.reset()
    times = [{name: cost_of_steps(envs, steps) for name, envs in sides.items()} for _ in range(rounds)]
    least = {name: min(row[name] for row in times) for name in sides}
    return {name: least[name] - least["bare"] for name in sides if name != "bare"}


def doorkey() -> gym.Env:
    return ImgObsWrapper(DoorKeyEnv(size=8))


def rewarded(venv: Any, bonus: Any) -> Any:
    return sb3.ShapeVectorReward(venv, bonus, payback.grm(GAMMA, DELAY))


def collected(venv: Any, bonus: Any) -> Any:
    return sb3.CollectBonus(venv, bonus, payback.grm_adv(GAMMA, DELAY, 0.95))


def normalised(venv: Any, bonus: Any) -> Any:
    """Wrap in SB3's own wrapper of rewards, the peer."""
    return VecNormalize(venv, norm_obs=False)


OURS = (("", rewarded), (", CollectBonus", collected))
PEER = (", VecNormalize alone", normalised)


def ppo_slowdown(make: Any, wrap: Any, rounds: int, envs: int = 8, steps: int = 16) -> float:
    """Return the share of steps per second that PPO, with SB3's own network and epochs, loses to wrapper and check.

    A bonus of 0 is shaped like any other, and both learners live through the same episodes. They learn in turns, each
    going first in every other one. A turn is one pass of SB3's own loop, a rollout and the epochs on it; what happens
    once in a training, when it starts and ends, is left out.
    """
    bonus = np.zeros(envs)
    plain = make_vec_env(make, envs, seed=0)
    venv = make_vec_env(make, envs, seed=0)
    shaped = wrap(venv, lambda *transition: bonus)
    models = [PPO("MlpPolicy", env, gamma=GAMMA, n_steps=steps, seed=0) for env in (plain, shaped)]
    checks = (None, None if wrap is normalised else sb3.CheckShaping())
    started = [models[side]._setup_learn(rounds * envs * steps, checks[side])[1] for side in (0, 1)]
    for callback in started:
        callback.on_training_start({}, {})
    times: list[list[float]] = [[], []]
    for turn in range(rounds):
        for side in (0, 1) if turn % 2 else (1, 0):
            model = models[side]
            start = time.process_time()
            model.collect_rollouts(model.env, started[side], model.rollout_buffer, n_rollout_steps=steps)
            model.train()
            times[side].append(time.process_time() - start)
    return float(np.median(1 - np.array(times[0]) / np.array(times[1])))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when a bound is broken")
    parser.add_argument("--json", type=Path, help="also write the ratios, for benchmarks/bench.py")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    added = gymnasium_steps()
    print(f"Gymnasium, {B} environments: what a wrapper adds to a step")
    for name, microseconds in added.items():
        print(f"  {name:24} {microseconds:6.1f} µs   {microseconds / added['NormalizeReward']:5.2f} of NormalizeReward")
    # CartPole is about the cheapest environment there is, MiniGrid an ordinary one.
    lost = {
        f"{task}{how}": ppo_slowdown(make, wrap, rounds)
        for how, wrap in (*OURS, PEER)
        for task, make, rounds in (("CartPole", "CartPole-v1", 240), ("MiniGrid DoorKey", doorkey, 120))
    }
    for name, share in lost.items():
        print(f"Stable-Baselines3, PPO on {name}: {share:.1%} fewer steps per second")
    if asked.json:
        ratios = {name: cost / added["NormalizeReward"] for name, cost in added.items() if name != "NormalizeReward"}
        asked.json.write_text(json.dumps({"gymnasium": ratios, "sb3": lost}))
    ratio = max(added[name] for name in added if name != "NormalizeReward") / added["NormalizeReward"]
    most = max(share for name, share in lost.items() if not name.endswith(PEER[0]))
    broken = ratio > BOUNDS["gymnasium"] or most > BOUNDS["sb3"]
    return int(asked.check and broken)


if __name__ == "__main__":
    sys.exit(main())
