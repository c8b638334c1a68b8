"""Transitions to feed bonuses with, and the loop that an adapter runs around one."""

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from .cases import FRESH


def transitions(T=24, B=3, cells=4, seed=0, hazard=0.2):
    """A rollout of (T, B) transitions between a few places, one-hot plus a constant, episodes ending by chance."""
    rng = np.random.default_rng(seed)
    place = rng.integers(cells, size=(T + 1, B))
    done = rng.random((T, B)) < hazard
    start = rng.integers(cells, size=(T, B))
    onehot = np.eye(cells, dtype=np.float32)
    obs = place[:-1].copy()
    obs[1:][done[:-1]] = start[1:][done[:-1]]
    return {
        "obs": onehot[obs],
        "action": rng.integers(3, size=(T, B)),
        "next_obs": onehot[place[1:]],
        "done": done,
    }


def play(bonus, rollout):
    """Feed a rollout step by step, clearing what belongs to an episode at its end; return F (T, B)."""
    rewards = []
    for t in range(len(rollout["done"])):
        step = {key: rollout[key][t] for key in ("obs", "action", "next_obs")}
        rewards.append(bonus(step["obs"], step["action"], step["next_obs"], {}))
        if hasattr(bonus, "reset") and rollout["done"][t].any():
            bonus.reset(rollout["done"][t])
    return np.array(rewards)


def fresh_play(name):
    """What `check_causal` takes: a fresh bonus at every call."""
    return lambda rollout: play(FRESH[name](), rollout)


class Ring(gym.Env):
    """Five places in a ring, one-hot; each action moves; an episode ends by chance or after six steps."""

    observation_space = gym.spaces.Box(0, 1, (5,), np.float32)
    action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = int(self.np_random.integers(5)), 0
        return np.eye(5, dtype=np.float32)[self.place], {}

    def step(self, action):
        self.place, self.steps = (self.place + int(action) - 1) % 5, self.steps + 1
        ends = bool(self.np_random.random() < 0.15)
        return np.eye(5, dtype=np.float32)[self.place], 0.0, ends, self.steps >= 6, {}


def drive(bonus, mode, steps=60, envs=3, seed=0):
    """Step Gymnasium's vector environments as an adapter does; return the transitions, episode by episode.

    Each episode is a list of (environment, step, obs, action, next_obs, F), in the order of its steps.
    """
    vector = SyncVectorEnv([Ring] * envs, autoreset_mode=mode)
    rng = np.random.default_rng(seed)
    obs, _ = vector.reset(seed=seed)
    obs, valid = obs.copy(), np.ones(envs, dtype=bool)
    running, finished = [[] for _ in range(envs)], []
    for t in range(steps):
        action = rng.integers(3, size=envs)
        next_obs, _, terminated, truncated, info = vector.step(action)
        done, true_next = terminated | truncated, next_obs.copy()
        if mode is AutoresetMode.SAME_STEP:
            for k in np.flatnonzero(done):
                true_next[k] = info["final_obs"][k]
        F = bonus(obs, action, true_next, {**info, "valid": valid})
        for k in np.flatnonzero(valid):
            running[k].append((k, t, obs[k].copy(), action[k], true_next[k].copy(), F[k]))
        assert np.all(F[~valid] == 0)
        ended = done & valid
        if hasattr(bonus, "reset") and ended.any():
            bonus.reset(ended)
        for k in np.flatnonzero(ended):
            finished.append(running[k])
            running[k] = []
        valid = ~done if mode is AutoresetMode.NEXT_STEP else np.ones(envs, dtype=bool)
        obs = next_obs.copy()
        if mode is AutoresetMode.DISABLED and done.any():
            obs, _ = vector.reset(options={"reset_mask": done})
            obs = obs.copy()
    vector.close()
    return finished
