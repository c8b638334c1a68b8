"""Curiosity that cannot be hacked, in three lines: PPO of Stable-Baselines3 with RND on MiniGrid DoorKey.

    python examples/curiosity_sb3.py --seed 0            two runs, about two minutes; draws curiosity_sb3.svg

One run is paid the bonus as it is, the other the same bonus as a loan, repaid 30 steps later. One pair of runs shows
what may happen, not what is likely: seeds differ by more than the methods do. `payback-lab run curiosity` makes the
same comparison with several seeds and every bonus. Needs stable-baselines3, minigrid, torch, altair and
vl-convert-python.
"""

import argparse
import time
from collections import deque

import altair
import gymnasium as gym
import minigrid  # noqa: F401  registers the environments
import numpy as np
import torch
from minigrid.wrappers import ImgObsWrapper
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

import payback
from payback.bonuses.torch import RND
from payback.integrations.sb3 import CheckShaping, ShapeVectorReward

GAMMA, ENVS = 0.99, 8
SCHEMES = {"raw bonus": payback.scale(1.0), "grm, repaid after 30 steps": payback.grm(GAMMA, delay=30)}


def grid(size: int) -> gym.Env:
    """A locked door between the agent and the goal; the agent's view of it, flattened."""
    return gym.wrappers.FlattenObservation(ImgObsWrapper(gym.make(f"MiniGrid-DoorKey-{size}x{size}-v0")))


class Curve(BaseCallback):
    """Records the mean extrinsic return and length of the last hundred episodes, once per rollout."""

    def __init__(self):
        super().__init__()
        self.episodes, self.points = deque(maxlen=100), []

    def _on_step(self) -> bool:
        self.episodes.extend(info["episode"] for info in self.locals["infos"] if "episode" in info)
        return True

    def _on_rollout_end(self) -> None:
        if self.episodes:
            late = {key: float(np.mean([episode[key] for episode in self.episodes])) for key in ("r", "l")}
            self.points.append({"steps": self.num_timesteps, "return": late["r"], "length": late["l"]})


def train(transform: payback.RewardTransform, steps: int, seed: int, size: int) -> list[dict[str, float]]:
    """Train with the bonus under this transform and return the learning curve."""
    env = make_vec_env(lambda: grid(size), n_envs=ENVS, seed=seed)  # Monitor inside: it reports the extrinsic return
    env = ShapeVectorReward(env, RND(seed=seed), transform)
    # As in the experiment `payback-lab run curiosity`, whose notes say where the numbers come from.
    options = {"n_steps": 128, "batch_size": 256, "n_epochs": 10, "learning_rate": 1e-3, "ent_coef": 0.01}
    model, curve = PPO("MlpPolicy", env, gamma=GAMMA, seed=seed, **options), Curve()
    model.learn(steps, callback=[CheckShaping(strict=False), curve])
    return curve.points


def draw(points: list[dict], path: str) -> None:
    """Draw return and length against the steps, one line per scheme."""
    frame = altair.Data(values=points)
    scheme = altair.Color("scheme:N", title=None, legend=altair.Legend(orient="top", labelLimit=300))
    axes = {"return": "extrinsic return, last 100 episodes", "length": "steps per episode"}
    charts = [
        altair.Chart(frame, width=320, height=240)
        .mark_line()
        .encode(altair.X("steps:Q", title="environment steps"), altair.Y(f"{name}:Q", title=title), scheme)
        for name, title in axes.items()
    ]
    altair.hconcat(*charts).save(path)


def main(line: list[str] | None = None) -> dict[str, list[dict[str, float]]]:
    """Train both agents, print what they reach, draw the picture; return the curves."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000, help="environment steps of each run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=6, help="of the grid: 5, 6, 8 or 16")
    parser.add_argument("--out", default="curiosity_sb3.svg", help="the picture: .svg, .png or .html")
    args = parser.parse_args(line)
    torch.set_num_threads(1)  # networks so small are slower on several
    curves, started = {}, time.time()
    for name, transform in SCHEMES.items():
        curves[name] = train(transform, args.steps, args.seed, args.size)
        last = curves[name][-1]
        print(f"{name:28} return {last['return']:.2f}, {last['length']:.0f} steps per episode at the end")
    draw([{**point, "scheme": name} for name, points in curves.items() for point in points], args.out)
    print(f"wrote {args.out} after {time.time() - started:.0f} s")
    return curves


if __name__ == "__main__":
    main()
