"""The core beside its peers, as ratios measured side by side in one run.

    python benchmarks/core.py [--json FILE]          prints the ratios, or writes them for benchmarks/bench.py

Times are CPU seconds of this one-threaded process, the least of many repetitions, the two sides of a ratio
taken in turns: on a shared machine the ratio means something, the time does not.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", JAX_PLATFORMS="cpu")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import argparse
import json
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import NormalizeReward
from torch.utils._python_dispatch import TorchDispatchMode

import payback
from payback.core import rollout

GAMMA, B, T = 0.99, 16, 1024
ROUNDS = 15

MATCHES = {
    "match_at_end": payback.match_at_end(GAMMA),
    "match_after, D = 10": payback.match_after(GAMMA, 10),
    "match_after, D = 100": payback.match_after(GAMMA, 100),
    "match_when": payback.match_when(GAMMA),
    "match_geometric, λ = 0.9": payback.match_geometric(GAMMA, 0.9),
    "match_evenly, W = 10": payback.match_evenly(GAMMA, 10),
    "pbim": payback.pbim(GAMMA),
    "grm, D = 10": payback.grm(GAMMA, 10),
}


class StillEnvs(gym.vector.VectorEnv):
    """Sixteen environments that cost nothing, so that what a wrapper adds can be seen."""

    num_envs = B
    single_observation_space = gym.spaces.Box(-1, 1, (4,))
    observation_space = gym.vector.utils.batch_space(single_observation_space, B)
    single_action_space = gym.spaces.Discrete(2)
    action_space = gym.vector.utils.batch_space(single_action_space, B)
    metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012  Gymnasium reads it off the class

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.row = np.zeros((B, 4), np.float32), rng.random(B), np.zeros(B, bool), np.zeros(B, bool), {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        return self.row[0], {}

    def step(self, actions: Any) -> Any:
        return self.row


def cpu(function: Callable[[], Any], number: int) -> float:
    start = time.process_time()
    for _ in range(number):
        function()
    return (time.process_time() - start) / number


def side_by_side(number: int, **functions: Callable[[], Any]) -> dict[str, float]:
    """Return the least time of each, measured in turns."""
    for function in functions.values():
        function()
    rounds = [{name: cpu(f, number) for name, f in functions.items()} for _ in range(ROUNDS)]
    return {name: min(r[name] for r in rounds) for name in functions}


def block(T: int, B: int, every: int = 100) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((T, B), dtype=np.float32), rng.random((T, B)) < 1 / every


def one_step() -> dict[str, float]:
    """Return the cost of one `update` of B environments ÷ what NormalizeReward adds to a step of the vector."""
    bare, wrapped, actions = StillEnvs(), NormalizeReward(StillEnvs()), np.zeros(B, int)
    wrapped.reset()
    reward, done = bare.row[1], np.arange(B) == 3
    ratios = {}
    for name, transform in MATCHES.items():
        state = transform.init(reward)
        times = side_by_side(
            1000,
            bare=lambda: bare.step(actions),
            wrapped=lambda: wrapped.step(actions),
            ours=lambda transform=transform, state=state: transform.update(state, reward, done),
        )
        ratios[name] = times["ours"] / (times["wrapped"] - times["bare"])
    return ratios


def python_loop(rewards: list[list[float]], dones: list[list[bool]], delay: int) -> list[list[float]]:
    """GRM as a careful script would write it: per environment, over lists."""
    shaped = [[0.0] * len(row) for row in rewards]
    for b in range(len(rewards[0])):
        loans: list[float] = []
        for t, row in enumerate(rewards):
            if dones[t][b]:
                shaped[t][b] = -sum(loan * GAMMA ** -(len(loans) - k) for k, loan in enumerate(loans))
                loans = []
                continue
            shaped[t][b] = row[b]
            loans.append(row[b])
            if len(loans) > delay:
                shaped[t][b] -= GAMMA**-delay * loans.pop(0)
    return shaped


def whole_rollouts() -> dict[str, dict[str, float]]:
    """Return the cost of `shape_rollout` ÷ a copy of the rewards, its memory ÷ the rewards, and a plain loop's cost."""
    rewards, dones = block(T, 1024)
    out, on_jax = np.empty_like(rewards), (jnp.asarray(rewards), jnp.asarray(dones))
    tables: dict[str, dict[str, float]] = {"rollout, NumPy": {}, "rollout, JAX": {}, "rollout, memory": {}}
    for name, transform in MATCHES.items():
        state, jax_state = transform.init(rewards[0]), transform.init(on_jax[0][0])
        jitted = jax.jit(lambda s, r, d, transform=transform: payback.shape_rollout(transform, s, r, d))

        def ours(transform: payback.RewardTransform = transform, state: Any = state) -> Any:
            return payback.shape_rollout(transform, state, rewards, dones)

        def theirs(jitted: Any = jitted, state: Any = jax_state) -> Any:
            return jax.block_until_ready(jitted(state, *on_jax))

        times = side_by_side(2, copy=lambda: np.copyto(out, rewards), numpy=ours, jax=theirs)
        tracemalloc.start()
        ours()
        tables["rollout, memory"][name] = tracemalloc.get_traced_memory()[1] / rewards.nbytes
        tracemalloc.stop()
        for library in ("NumPy", "JAX"):
            tables[f"rollout, {library}"][name] = times[library.lower()] / times["copy"]
    transform = MATCHES["match_after, D = 10"]
    small, ends = rewards[:, :64], dones[:, :64]
    loop = cpu(lambda: python_loop(small.tolist(), ends.tolist(), 10), 1) * 1024 / 64
    state = transform.init(rewards[0])
    ours_time = side_by_side(2, ours=lambda: payback.shape_rollout(transform, state, rewards, dones))["ours"]
    return tables | {"plain loop": {"match_after, D = 10": loop / ours_time}}


class Operations(TorchDispatchMode):
    """Count the operations that a device would be asked for."""

    number = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.number += 1
        return func(*args, **(kwargs or {}))


def torch_blocks() -> dict[str, dict[str, float]]:
    """Return the operations of Torch's forms for accelerators, and those of stepping ÷ them, at T = 1024."""
    rewards, dones = (torch.from_numpy(x) for x in block(T, B))
    tables: dict[str, dict[str, float]] = {"rollout, Torch operations": {}, "Torch operations of stepping": {}}
    rollout.HOST = ()  # as if the tensors were on an accelerator
    for name, transform in MATCHES.items():
        state = transform.init(rewards[0])
        with Operations() as form:
            payback.shape_rollout(transform, state, rewards, dones)
        with Operations() as steps:
            for reward, done in zip(rewards, dones, strict=True):
                state, _ = transform.update(state, reward, done)
        tables["rollout, Torch operations"][name] = form.number
        tables["Torch operations of stepping"][name] = steps.number / form.number
    rollout.HOST = ("cpu",)
    return tables


def growth() -> dict[str, float]:
    """Return the cost of NumPy's `match_after` ÷ that with 1024 × 1024 rewards, ends every 100 steps, D = 10."""
    base = {"T": 1024, "B": 1024, "every": 100, "delay": 10}
    cases = {
        "a quarter of the rewards": {"T": 256},
        "four times the rewards": {"T": 4096},
        "episodes of 1000 steps": {"every": 1000},
        "episodes of 10 steps": {"every": 10},
        "D = 1": {"delay": 1},
        "D = 100": {"delay": 100},
    }
    calls = {}
    for name, change in {"as usual": {}, **cases}.items():
        case = base | change
        rewards, dones = block(case["T"], case["B"], case["every"])
        match = payback.match_after(GAMMA, case["delay"])
        state = match.init(rewards[0])
        calls[name] = lambda m=match, s=state, r=rewards, d=dones: payback.shape_rollout(m, s, r, d)
    times = side_by_side(1, **calls)
    return {name: times[name] / times["as usual"] for name in cases}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="the file to write")
    asked = parser.parse_args()
    warnings.simplefilter("ignore", payback.InterestWarning)
    tables = {"update": one_step(), **whole_rollouts(), **torch_blocks(), "growth": growth()}
    if asked.json:
        asked.json.write_text(json.dumps(tables))
        return
    for table, ratios in tables.items():
        print(table, *(f"  {name:28} {ratio:8.2f}" for name, ratio in ratios.items()), sep="\n")


if __name__ == "__main__":
    main()
