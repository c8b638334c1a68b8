"""Vectors of environments with the shaping, a random policy that drives them in any autoreset mode, and matches."""

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import payback
from payback.integrations.gymnasium import ShapeVectorReward

GAMMA, B, T = 0.9, 3, 80
MODES = list(AutoresetMode)
RAW = {
    "pbim": payback.pbim(GAMMA, center=False),
    "grm-1": payback.grm(GAMMA, 1, center=False),
    "grm-3": payback.grm(GAMMA, 3, center=False),
    "evenly": payback.match_evenly(GAMMA, 4),
    "geometric": payback.match_geometric(GAMMA, 0.5),
    "scaled": payback.chain(payback.clip(0, 2), payback.match_after(GAMMA, 2), payback.scale(0.1)),
}


def drive(envs, mode, steps=T, seed=3):
    """Yield each step of a random policy; under DISABLED ended environments are reset by mask."""
    obs, _ = envs.reset(seed=seed)
    chance = np.random.default_rng(seed)
    begun = np.zeros(envs.num_envs, dtype=bool)
    for _ in range(steps):
        actions = chance.integers(2, size=envs.num_envs)
        next_obs, reward, terminated, truncated, info = envs.step(actions)
        step = {"obs": obs, "next_obs": next_obs, "reward": reward, "info": info, "reset_row": begun}
        yield {**step, "terminated": terminated, "truncated": truncated}
        ended = terminated | truncated
        begun = ended if mode is AutoresetMode.NEXT_STEP else np.zeros_like(ended)
        if mode is AutoresetMode.DISABLED and ended.any():
            next_obs, _ = envs.reset(options={"reset_mask": ended})
        obs = next_obs


def wrapped_vector(walk, mode, *shaping, **options):
    return ShapeVectorReward(SyncVectorEnv([walk] * B, autoreset_mode=mode), *shaping, **options)
