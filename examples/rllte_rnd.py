"""An actor-critic on CartPole with RND of RLeXplore (rllte), whose bonus is a loan and cannot change the task.

python examples/rllte_rnd.py
"""

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode
from rllte.xplore.reward import RND
from torch import nn
from torch.distributions import Categorical

import payback
from payback.integrations.rllte import ShapeRollouts

GAMMA, ENVS, STEPS = 0.99, 8, 64


def network(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, outputs))


def collect(envs, obs, actor):
    """Play a rollout; return rllte's samples, each (T, B, …), and the last observation."""
    rows = []
    for _ in range(STEPS):
        with torch.no_grad():
            action = Categorical(logits=actor(obs)).sample()
        next_obs, reward, terminated, truncated, info = envs.step(action.numpy())
        last = next_obs.copy()
        for k in np.flatnonzero(terminated | truncated):
            last[k] = info["final_obs"][k]
        rows.append(
            (obs, action, *(torch.as_tensor(x, dtype=torch.float32) for x in (reward, terminated, truncated, last)))
        )
        obs = torch.as_tensor(next_obs, dtype=torch.float32)
    keys = ("observations", "actions", "rewards", "terminateds", "truncateds", "next_observations")
    return dict(zip(keys, (torch.stack(column) for column in zip(*rows, strict=True)), strict=True)), obs


def main(rollouts: int = 200, seed: int = 0, keep=None) -> tuple[float, float]:
    """Train; return the mean length of the first and the last hundred episodes; `keep` is given every rollout."""
    torch.manual_seed(seed)
    envs = gym.make_vec(
        "CartPole-v1", ENVS, vectorization_mode="sync", vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP}
    )
    shaping = ShapeRollouts(RND(envs, latent_dim=16), payback.chain(payback.scale(0.1), payback.grm(GAMMA, delay=10)))
    actor, critic = network(4, 2), network(4, 1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-3)
    obs = torch.as_tensor(envs.reset(seed=seed)[0], dtype=torch.float32)
    lengths, running = [], np.zeros(ENVS)
    for _ in range(rollouts):
        samples, obs = collect(envs, obs, actor)
        rollout = shaping.shape(samples)
        if keep is not None:
            keep(samples, rollout)
        rewards = samples["rewards"] + rollout.shaped
        with torch.no_grad():
            ahead, targets = critic(obs)[:, 0], torch.zeros_like(rewards)
            for t in reversed(range(STEPS)):
                ahead = targets[t] = rewards[t] + GAMMA * torch.where(rollout.terminated[t], 0.0, ahead)
        values = critic(samples["observations"])[..., 0]
        policy = Categorical(logits=actor(samples["observations"]))
        gains = (targets - values).detach()
        gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        loss = -(policy.log_prob(samples["actions"]) * gains).mean() + 0.5 * (values - targets).pow(2).mean()
        optimizer.zero_grad()
        (loss - 0.01 * policy.entropy().mean()).backward()
        optimizer.step()
        for ended in (samples["terminateds"] + samples["truncateds"]).numpy() > 0:
            running += 1
            lengths += running[ended].tolist()
            running[ended] = 0
    early, late = float(np.mean(lengths[:100])), float(np.mean(lengths[-100:]))
    print(f"mean extrinsic return of the first hundred episodes {early:.0f}, of the last hundred {late:.0f}")
    return early, late


if __name__ == "__main__":
    main()
