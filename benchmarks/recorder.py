"""What recording costs: SB3's PPO on CartPole, shaped, with `record=` and without, in turns; and one `Recorder.add`.

    python benchmarks/recorder.py            --check fails when recording takes more than 2 % of PPO's time

Times are CPU seconds of this one-threaded process, parts written within them. The least of many short rounds is taken
on each side, because on a shared machine the least is what the code costs and the rest is what others cost.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
import tempfile
import time
import warnings
from typing import Any

import numpy as np

import payback
from payback import Recorder

B, STEPS, ROUNDS, GAMMA, BOUND = 8, 20_000, 5, 0.99, 0.02


def recorder_seconds(folder: str) -> float:
    """CPU seconds of one step, parts of 65,536 rows included."""
    rng = np.random.default_rng(0)
    reward, done = rng.random(B).astype(np.float32), np.zeros(B, dtype=bool)
    with Recorder(folder, gamma=GAMMA) as recorder:
        start = time.process_time()
        for _ in range(STEPS):
            recorder.add(reward=reward, shaped=reward, terminated=done, truncated=done, valid=~done, lent=reward)
        return (time.process_time() - start) / STEPS


def adapter_seconds(folder: str, turns: int = 40, steps: int = 400) -> float:
    """CPU seconds that `record=` adds to a step of the adapter's ledger, the least of many rounds."""
    from payback.ledger import make
    from payback.monitor import Monitor

    rng = np.random.default_rng(0)
    reward, ends, no = rng.random(B), rng.random((steps, B)) < 0.02, np.zeros(B, dtype=bool)
    ledger = make(payback.grm(GAMMA, 10), trusted=True)
    plain, recorded = (Monitor(ledger, learner_gamma=GAMMA, record=to) for to in (None, folder))
    times: dict[int, list[float]] = {0: [], 1: []}
    states = [ledger.init(np.zeros(B))] * 2
    for _ in range(turns):
        for side, monitor in enumerate((plain, recorded)):
            start = time.process_time()
            for done in ends:
                states[side], _ = monitor.step(states[side], reward, done, no)
            times[side].append((time.process_time() - start) / steps)
    recorded.close()
    return min(times[1]) - min(times[0])


def ppo(record: str | None) -> Any:
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    from payback.integrations.sb3 import ShapeVectorReward

    torch.set_num_threads(1)
    bonus = np.zeros(B)
    env = ShapeVectorReward(
        make_vec_env("CartPole-v1", B, seed=0), lambda *transition: bonus, payback.grm(GAMMA, 10),
        learner_gamma=GAMMA, record=record,
    )  # fmt: skip
    return PPO("MlpPolicy", env, gamma=GAMMA, n_steps=16, device="cpu", seed=0)


def ppo_seconds(folder: str, turns: int = 120) -> tuple[float, float]:
    """CPU seconds of one step of 8 environments, learning included: without a log, and the share that a log adds."""
    models = [ppo(None), ppo(folder)]
    times: list[list[float]] = [[], []]
    for turn in range(turns):
        for side in (0, 1) if turn % 2 else (1, 0):
            start = time.process_time()
            models[side].learn(16 * B, reset_num_timesteps=False)
            times[side].append(time.process_time() - start)
    models[1].get_env().close()
    without, with_ = (np.array(x) for x in times)
    return float(without.min()) / 16, float(np.median(1 - without / with_))


def main() -> int:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        alone = min(recorder_seconds(f"{folder}/{k}") for k in range(ROUNDS))
        added = adapter_seconds(f"{folder}/adapter")
        print(f"Recorder.add, {B} environments: {1e6 * alone:.1f} µs per step, parts included")
        print(f"record= in an adapter: {1e6 * added:.1f} µs per step, parts apart")
        try:
            step, share = ppo_seconds(f"{folder}/ppo")
        except ModuleNotFoundError as missing:
            print(f"no comparison: {missing}")
            return 0
    cost = max(alone, added) / step
    print(
        f"SB3's PPO on CartPole, {B} environments: {1e6 * step:.0f} µs per step; recording adds {cost:.2%} "
        f"(in turns, median of pairs: {share:.2%})"
    )
    return int("--check" in sys.argv and cost > BOUND)


if __name__ == "__main__":
    sys.exit(main())
