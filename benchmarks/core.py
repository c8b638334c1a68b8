"""The core beside its peers, as ratios measured side by side in one run.

    python benchmarks/core.py            the tables of docs/results/speed.md

Times are CPU seconds of this one-threaded process, the least of many repetitions, the two sides of a ratio
taken in turns: on a shared machine the ratio means something, the time does not.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", JAX_PLATFORMS="cpu")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import time
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import NormalizeReward

import payback

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


def one_step() -> None:
    print(f"\n### One `update`, {B} environments, beside what NormalizeReward adds per vector step\n")
    print("| transform | × NormalizeReward |\n|---|---|")
    bare, wrapped, actions = StillEnvs(), NormalizeReward(StillEnvs()), np.zeros(B, int)
    wrapped.reset()
    reward, done = bare.row[1], np.arange(B) == 3
    for name, transform in MATCHES.items():
        state = transform.init(reward)
        times = side_by_side(
            1000,
            bare=lambda: bare.step(actions),
            wrapped=lambda: wrapped.step(actions),
            ours=lambda transform=transform, state=state: transform.update(state, reward, done),
        )
        print(f"| {name} | {times['ours'] / (times['wrapped'] - times['bare']):.2f} |", flush=True)


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


def whole_rollouts() -> None:
    rewards, dones = block(T, 1024)
    print(f"\n### `shape_rollout`, {T} × 1024 float32, ends about every 100 steps, beside `numpy.copyto`\n")
    print("| transform | NumPy, copies | JAX jitted, copies | NumPy's peak memory, inputs |\n|---|---|---|---|")
    out, on_jax = np.empty_like(rewards), (jnp.asarray(rewards), jnp.asarray(dones))
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
        peak = tracemalloc.get_traced_memory()[1] / rewards.nbytes
        tracemalloc.stop()
        copy = times["copy"]
        print(f"| {name} | {times['numpy'] / copy:.1f} | {times['jax'] / copy:.1f} | {peak:.1f} |", flush=True)
    transform = MATCHES["match_after, D = 10"]
    small, ends = rewards[:, :64], dones[:, :64]
    loop = cpu(lambda: python_loop(small.tolist(), ends.tolist(), 10), 1) * 1024 / 64
    state = transform.init(rewards[0])
    ours_time = side_by_side(2, ours=lambda: payback.shape_rollout(transform, state, rewards, dones))["ours"]
    print(f"\nA plain Python loop over lists takes {loop / ours_time:.0f} times as long as `match_after`.")


def scaling() -> None:
    print("\n### How the cost grows (NumPy `match_after`, CPU time relative to the first column)\n")
    base = {"T": 1024, "B": 1024, "every": 100, "delay": 10}
    rows = {
        "rewards T·B: 256 k, 1 M, 4 M": [base | {"T": t} for t in (256, 1024, 4096)],
        "episode length: 1000, 100, 10": [base | {"every": e} for e in (1000, 100, 10)],
        "delay D: 1, 10, 100": [base | {"delay": d} for d in (1, 10, 100)],
    }
    print("| varied | cost |\n|---|---|")
    for name, cases in rows.items():
        calls = {}
        for k, case in enumerate(cases):
            rewards, dones = block(case["T"], case["B"], case["every"])
            match = payback.match_after(GAMMA, case["delay"])
            state = match.init(rewards[0])
            calls[str(k)] = lambda m=match, s=state, r=rewards, d=dones: payback.shape_rollout(m, s, r, d)
        times = side_by_side(1, **calls)
        ratios = " : ".join(f"{t / times['0']:.1f}" for t in times.values())
        print(f"| {name} | {ratios} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", payback.InterestWarning)
    one_step()
    whole_rollouts()
    scaling()
