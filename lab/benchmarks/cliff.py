"""Q-learning with RND on the cliff: the jitted learner beside the same thing as a plain Python + PyTorch loop.

    python lab/benchmarks/cliff.py                    all eight schemes, ten seeds, 5,000 episodes; about two minutes
    python lab/benchmarks/cliff.py --long             the 4×50 grid, 10,000 episodes; about ten minutes
    python lab/benchmarks/cliff.py --episodes 500     a quick look

Both sides run on one core, turn about, scheme by scheme. A useful step is one whose episode is recorded; the
learner's CPU time includes what lanes spend idle when their own training is done before their neighbours'.
Compilation is not counted: it is done before, and shown.
"""

import argparse
import os
import runpy
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

os.environ.setdefault("NPROC", "1")  # XLA's pool of threads; before JAX is imported

import numpy as np
import torch

import payback
from payback_lab.experiments.long_cliff import LongQLearning
from payback_lab.learners.q_learning.config import LANES, QLearning
from payback_lab.learners.q_learning.train import make_train
from payback_lab.methods import SCHEMES

PLAIN = runpy.run_path(str(Path(__file__).parents[1] / "tests/learners/plain_q_learning.py"))
AT_LEAST, MOST_IDLE = 60, 0.25


def plain_microseconds(config: QLearning, scheme: str, steps: int) -> float:
    """Time the plain loop; return CPU µs per step."""
    torch.manual_seed(0)
    sizes = (config.cliff.cells, *config.rnd_hidden, config.rnd_outputs)

    def network() -> torch.nn.Sequential:
        parts = [torch.nn.Linear(*size) for size in pairwise(sizes)]
        return torch.nn.Sequential(*[part for linear in parts for part in (linear, torch.nn.ReLU())][:-1])

    curiosity = PLAIN["TorchRnd"](network(), network(), config.cliff.cells, config.rnd_rate)
    draws = np.random.default_rng(0).random((10**6, 2)).tolist()
    short = replace(config, episodes=max(1, steps // 12))  # a blind walk falls off after about 12 steps
    begin = time.process_time()
    _, episodes = PLAIN["train"](short, scheme, payback.center(config.mean_horizon), curiosity, iter(draws))
    return (time.process_time() - begin) / sum(length for length, *_ in episodes) * 1e6


def measure(config: QLearning, scheme: str) -> tuple[float, float, float]:
    """Time one scheme on both sides and print its row; return the learner's seconds, the ratio, the idle share."""
    begin = time.process_time()
    train = make_train(config, scheme)
    compiled = time.process_time() - begin
    plain = [plain_microseconds(config, scheme, 1000)]
    begin = time.process_time()
    runs = train(range(LANES))
    seconds = time.process_time() - begin
    plain.append(plain_microseconds(config, scheme, 1000))
    steps = np.array([run.episodes.length.sum() for run in runs])
    ours, theirs, idle = seconds / steps.sum() * 1e6, min(plain), 1 - steps.mean() / steps.max()
    row = f"{compiled:10.1f}{seconds:8.1f}{steps.sum():14,}{ours:9.2f}{theirs:8.0f}{theirs / ours:8.0f}{idle:7.0%}"
    print(f"{scheme:<12}{row}", flush=True)
    return seconds, theirs / ours, idle


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--long", action="store_true", help="the long cliff")
    options.add_argument("--episodes", type=int, help="fewer episodes than the paper's; lanes then idle more")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    config, most = (LongQLearning(), 600) if chosen.long else (QLearning(), 60)
    if chosen.episodes:
        config = replace(config, episodes=chosen.episodes)
    print(f"4×{config.columns} cliff, {LANES} seeds × {config.episodes:,} episodes; CPU time, µs per useful step")
    names = (
        ("compile s", 10),
        ("cpu s", 8),
        ("useful steps", 14),
        ("µs/step", 9),
        ("plain", 8),
        ("ratio", 8),
        ("idle", 7),
    )
    print(f"{'scheme':<12}" + "".join(f"{name:>{width}}" for name, width in names))
    rows = [measure(config, scheme) for scheme in SCHEMES]
    seconds, worst, idle = sum(row[0] for row in rows), min(row[1] for row in rows[1:]), max(row[2] for row in rows)
    print(f"with RND: {worst:.0f}× the plain loop at worst (at least {AT_LEAST}, goal 100): {met(worst >= AT_LEAST)}")
    print(f"{LANES * len(rows)} runs: {seconds:.0f} s of CPU on one core (at most {most}): {met(seconds <= most)}")
    print(f"idle lanes: {idle:.0%} at worst (at most {MOST_IDLE:.0%}): {met(idle <= MOST_IDLE)}")


def met(yes: bool) -> str:
    return "met" if yes else "MISSED"


if __name__ == "__main__":
    main()
