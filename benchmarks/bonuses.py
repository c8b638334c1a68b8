"""RND's cost per step: after the rollout, beside a plain RND in CleanRL's manner, and rllte's where it is installed.

    python benchmarks/bonuses.py            the tables; --check fails when ours is slower, or a rollout saves too little
    python benchmarks/bonuses.py --all      every ready bonus: a step of it beside a step of its MiniGrid environments

Sixteen environments with MiniGrid's views (7×7×3, flattened), rollouts of 128 steps, a quarter of the transitions
learned from. Each is compared with ours of the same networks: 147 → 256 → 128, and a predictor two layers deeper in
CleanRL's manner, or like the target in rllte's.

CleanRL's manner: one forward pass per step, then four epochs over the rollout in four batches, in which a random mask
leaves a quarter of the losses; the rest is computed and thrown away. rllte computes a rollout's rewards at once, which
looks ahead, and learns with the same mask in one epoch.

Times are CPU seconds of this one-threaded process, the sides taken in turns: on a shared machine the ratio means
something, the time does not. rllte lives in an environment of its own: run this file with its Python.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn

from payback.bonuses import Count, EpisodicCount, Recency, SimHash, episodic
from payback.bonuses.torch import E3B, ICM, RIDE, RND, Disagreement, NovelD

B, T, WIDTH, LATENT, SHARE, BATCH, RATE = 16, 128, 256, 128, 0.25, 256, 1e-3
SIZE = 7 * 7 * 3


def views(rollouts: int = 4) -> np.ndarray:
    """MiniGrid-like views, uint8 (rollouts·T, B, 147): object, colour and state of each cell."""
    rng = np.random.default_rng(0)
    return rng.integers(0, (11, 6, 3), size=(rollouts * T, B, 49, 3)).reshape(-1, B, SIZE).astype(np.uint8)


def in_both_ways(bonus: Callable[[], Any], shape: tuple[int, ...]) -> tuple[Callable[[np.ndarray], None], ...]:
    """Return the same bonus paid at every step and after the rollout, of views in this shape."""
    stepping, blockwise = bonus(), bonus()
    actions, dones, info = np.zeros((T, B), dtype=int), np.zeros((T, B), dtype=bool), {}
    dones[T // 2] = True

    def steps(rollout: np.ndarray) -> None:
        for obs, action, ends in zip(rollout.reshape(T, B, *shape), actions, dones, strict=True):
            stepping(obs, action, obs, info)
            if ends.any():
                stepping.reset(ends)

    def block(rollout: np.ndarray) -> None:
        obs = rollout.reshape(T, B, *shape)
        blockwise.of_rollout(obs, actions, obs, dones)

    return steps, block


def ours(deeper: int) -> Callable[[np.ndarray], None]:
    bonus = RND(width=WIDTH, latent=LATENT, deeper=deeper, rate=RATE, learn_every=T, share=SHARE, batch_size=BATCH)
    action, info = np.zeros(B, dtype=int), [{} for _ in range(B)]

    def rollout(rollout: np.ndarray) -> None:
        for obs in rollout:
            bonus(obs, action, obs, info)

    return rollout


class PlainRND:
    """RND as single-file implementations write it: normalise by what came before, mask the losses of all rows."""

    def __init__(self) -> None:
        layer = lambda i, o: (nn.Linear(i, o), nn.ReLU())  # noqa: E731
        self.target = nn.Sequential(*layer(SIZE, WIDTH), nn.Linear(WIDTH, LATENT))
        hidden = layer(SIZE, WIDTH) + layer(WIDTH, WIDTH) + layer(WIDTH, WIDTH)
        self.predictor = nn.Sequential(*hidden, nn.Linear(WIDTH, LATENT))
        self.optimiser = torch.optim.Adam(self.predictor.parameters(), lr=RATE)
        self.mean, self.var, self.count = np.zeros(SIZE), np.ones(SIZE), 1e-4

    def whiten(self, obs: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(((obs - self.mean) / np.sqrt(self.var)).clip(-5, 5), dtype=torch.float32)

    def count_rows(self, rows: np.ndarray) -> None:
        mean, var, n = rows.mean(0), rows.var(0), len(rows)
        delta, total = mean - self.mean, self.count + n
        self.mean = self.mean + delta * n / total
        self.var = (self.var * self.count + var * n + delta**2 * self.count * n / total) / total
        self.count = total

    def rollout(self, rollout: np.ndarray) -> None:
        bonus = torch.zeros(T, B)
        for t, obs in enumerate(rollout):
            with torch.no_grad():
                seen = self.whiten(obs)
                bonus[t] = (self.target(seen) - self.predictor(seen)).pow(2).sum(1) / 2
        rows = rollout.reshape(T * B, SIZE)
        self.count_rows(rows)
        seen = self.whiten(rows)
        for _ in range(4):
            for part in torch.randperm(T * B).split(T * B // 4):
                losses = (self.predictor(seen[part]) - self.target(seen[part]).detach()).pow(2).mean(-1)
                mask = (torch.rand(len(part)) < SHARE).float()
                loss = (losses * mask).sum() / mask.sum().clamp(min=1)
                self.optimiser.zero_grad()
                loss.backward()
                self.optimiser.step()


def rlltes() -> Callable[[np.ndarray], None] | None:
    """rllte's RND on a rollout, or None where it is not installed."""
    try:
        from rllte.xplore.reward import RND as TheirRND  # noqa: N811
    except ImportError:
        return None
    box, moves = gym.spaces.Box(0, 255, (SIZE,), np.float32), gym.spaces.Discrete(7)
    one = lambda: Still(box, moves)  # noqa: E731
    envs = gym.vector.SyncVectorEnv([one] * B)
    reward = TheirRND(envs, latent_dim=LATENT, lr=RATE, batch_size=BATCH, update_proportion=SHARE)
    zeros = torch.zeros(B)

    def rollout(rollout: np.ndarray) -> None:
        rows = torch.as_tensor(rollout, dtype=torch.float32)
        for obs in rows:
            reward.watch(obs, zeros, zeros, zeros, zeros, obs)
        flags = torch.zeros(T, B)
        keys = ("actions", "rewards", "terminateds", "truncateds")
        reward.compute({"observations": rows, "next_observations": rows, **dict.fromkeys(keys, flags)})

    return rollout


class Still(gym.Env):
    """An environment that shows its spaces and nothing else; rllte asks for some steps of it."""

    def __init__(self, observations: gym.Space, actions: gym.Space) -> None:
        self.observation_space, self.action_space = observations, actions

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(SIZE, np.float32), {}

    def step(self, action):
        return np.zeros(SIZE, np.float32), 0.0, False, False, {}


def measure(sides: dict[str, Callable[[np.ndarray], None]], rounds: int = 40) -> dict[str, float]:
    """Return the microseconds per step of sixteen environments, the least of some rounds taken in turns."""
    data = views().reshape(-1, T, B, SIZE)
    least = dict.fromkeys(sides, np.inf)
    for turn in range(rounds + 1):
        for name, side in sides.items():
            start = time.process_time()
            side(data[turn % len(data)])
            if turn:  # the first round warms up
                least[name] = min((time.process_time() - start) / T * 1e6, least[name])
    return least


def minigrid() -> Callable[[np.ndarray], None]:
    """Sixteen environments of the MiniGrid package, stepped T times with random actions."""
    import minigrid  # noqa: F401  registers its environments

    envs = [gym.make("MiniGrid-DoorKey-8x8-v0") for _ in range(B)]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
    moves = np.random.default_rng(0).integers(7, size=(T, B))

    def rollout(rollout: np.ndarray) -> None:
        for row in moves:
            for env, move in zip(envs, row, strict=True):
                _, _, terminated, truncated, _ = env.step(int(move))
                if terminated or truncated:
                    env.reset()

    return rollout


def compare_with_minigrid(rounds: int) -> None:
    """Print each bonus's CPU time per step as a share of the step of the environments that it rewards."""
    sides = {name: in_both_ways(bonus, shape) for name, (bonus, shape) in ALL.items()}
    steps = {name: side[0] for name, side in sides.items()}
    blocks = {f"{name}, after the rollout": side[1] for name, side in sides.items()}
    spent = measure({"MiniGrid": minigrid(), **steps, **blocks}, rounds)
    print(f"CPU time relative to {spent['MiniGrid']:.0f} µs, a step of {B} MiniGrid environments")
    for name in steps:
        each, block = (spent[key] / spent["MiniGrid"] for key in (name, f"{name}, after the rollout"))
        print(f"  {name:16} every step {each:5.2f}   after the rollout {block:5.2f}")


def compare_ways(makers: dict[str, tuple[Callable[[], Any], tuple[int, ...]]], rounds: int) -> dict[str, float]:
    """Print the cost per step in both ways; return how many times more steps per second a rollout makes."""
    ratios = {}
    print(f"{'':30} every step   after the rollout")
    for name, (bonus, shape) in makers.items():
        steps, block = in_both_ways(bonus, shape)
        spent = measure({"steps": steps, "block": block}, rounds)
        ratios[name] = spent["steps"] / spent["block"]
        print(
            f"  {name:27} {spent['steps']:7.0f} µs {spent['block']:11.0f} µs   {ratios[name]:5.2f} x the steps",
            flush=True,
        )
    return ratios


FLAT, IMAGE = (SIZE,), (7, 7, 3)
VIEWS = "RND, views through the CNN"  # as MiniGrid gives them: after the rollout at least 3 times the steps per second
RNDS = {
    "RND, flat views": (lambda: RND(learn_every=T), FLAT),
    VIEWS: (lambda: RND(learn_every=T), IMAGE),
    "flat views, without learning": (lambda: RND(learn_every=0), FLAT),
    "CNN, without learning": (lambda: RND(learn_every=0), IMAGE),
}
ALL = {
    **{name: (make, FLAT) for name, make in (
        ("EpisodicCount", EpisodicCount), ("Count", Count), ("SimHash", SimHash), ("Recency", Recency), ("RND", RND),
        ("episodic(RND)", lambda: episodic(RND())), ("NovelD", NovelD), ("ICM", lambda: ICM(7)),
        ("RIDE", lambda: RIDE(7)), ("E3B", lambda: E3B(7)), ("Disagreement", lambda: Disagreement(7)),
    )},
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when ours is slower, or a rollout saves too little")
    parser.add_argument("--all", action="store_true", help="every ready bonus beside a step of MiniGrid")
    parser.add_argument("--json", type=Path, help="also write the ratios, for benchmarks/bench.py")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    if asked.all:
        compare_with_minigrid(rounds=5)
        return 0
    ways, ratios = compare_ways(RNDS, rounds=15), {}
    print(f"RND on {B} environments, {SIZE} numbers per view: a step, with its share of training every {T} steps")
    for name, deeper, other in (("plain, CleanRL's manner", 2, PlainRND().rollout), ("rllte", 0, rlltes())):
        if other is None:
            print(f"  {name:24} is not installed here: run this file with the Python of its environment")
            continue
        spent = measure({"ours": ours(deeper), "theirs": other})
        ratio = spent["ours"] / spent["theirs"]
        print(f"  {name:24} {spent['theirs']:6.0f} µs   ours {spent['ours']:6.0f} µs   {ratio:5.2f} of it")
        ratios[name] = ratio
    if asked.json:
        asked.json.write_text(json.dumps({"rnd": ratios, "of_rollout": ways}))
    return int(asked.check and (any(ratio > 1 for ratio in ratios.values()) or ways[VIEWS] < 3))


if __name__ == "__main__":
    sys.exit(main())
