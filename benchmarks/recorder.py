"""What recording costs: one `Recorder.add` of 8 environments beside one step of SB3's PPO on CartPole, in one run.

    python benchmarks/recorder.py

The goal is 2 % of PPO's time. Parts are written within the time that is measured.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import tempfile
import time

import numpy as np

from payback.auditing.recorder import Recorder

B, STEPS, ROUNDS = 8, 20_000, 5


def recorder_seconds(folder: str) -> float:
    """CPU seconds of one step, parts of 65,536 rows included."""
    rng = np.random.default_rng(0)
    reward, done = rng.random(B).astype(np.float32), np.zeros(B, dtype=bool)
    with Recorder(folder, gamma=0.99) as recorder:
        start = time.process_time()
        for _ in range(STEPS):
            recorder.add(reward=reward, shaped=reward, terminated=done, truncated=done)
        return (time.process_time() - start) / STEPS


def ppo_seconds() -> float:
    """CPU seconds of one step of 8 environments, learning included."""
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    torch.set_num_threads(1)
    model = PPO("MlpPolicy", make_vec_env("CartPole-v1", B), n_steps=128, device="cpu", seed=0)
    model.learn(B * 128)
    start = time.process_time()
    model.learn(4 * B * 128, reset_num_timesteps=False)
    return (time.process_time() - start) / (4 * 128)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ours = min(recorder_seconds(f"{folder}/{k}") for k in range(ROUNDS))
    print(f"Recorder.add, {B} environments: {1e6 * ours:.1f} µs per step")
    try:
        theirs = ppo_seconds()
    except ModuleNotFoundError as missing:
        print(f"no comparison: {missing}")
        return
    print(
        f"SB3's PPO on CartPole, {B} environments: {1e6 * theirs:.0f} µs per step; recording adds {ours / theirs:.2%}"
    )


if __name__ == "__main__":
    main()
