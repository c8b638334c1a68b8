"""PPO with RND on MiniGrid in one file, where the bonus is a loan: three lines, marked (1), (2), (3).

    python examples/ppo_rnd_minigrid.py --env MiniGrid-DoorKey-5x5-v0 --steps 200000
    python examples/ppo_rnd_minigrid.py --form rollout      the same, shaped a rollout at a time

The time limit is part of the task here: a truncated episode is settled, and its last step counts as terminal.
"""

import argparse

import gymnasium as gym
import minigrid  # noqa: F401  registers the environments
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from minigrid.wrappers import ImgObsWrapper
from torch import nn
from torch.distributions import Categorical

import payback


def arguments(line: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="MiniGrid-Empty-5x5-v0", help="any MiniGrid environment")
    parser.add_argument("--steps", type=int, default=50_000, help="steps of all environments together")
    parser.add_argument("--form", choices=["step", "rollout"], default="step", help="shape each step, or each rollout")
    parser.add_argument("--bonus", type=float, default=0.5, help="constant factor of the bonus")
    parser.add_argument("--delay", type=int, default=10, help="steps until a bonus is repaid")
    parser.add_argument("--gamma", type=float, default=0.99, help="discount, of the learner and of the loans")
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--rollout", type=int, default=128, help="steps of each environment between two updates")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(line)


def network(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, outputs))


def advantages(rewards, values, dones, last_value, gamma, trace=0.95):
    """Generalised advantage estimates; every ending is terminal."""
    result, ahead = torch.zeros_like(rewards), 0.0
    for t in reversed(range(len(rewards))):
        next_value = values[t + 1] if t + 1 < len(rewards) else last_value
        alive = 1.0 - dones[t].float()
        ahead = rewards[t] + gamma * alive * next_value - values[t] + gamma * trace * alive * ahead
        result[t] = ahead
    return result


def main(line: list[str] | None = None, keep=None) -> float:
    """Train, and return the mean extrinsic return of the last hundred episodes; `keep` is given every rollout."""
    args = arguments(line)
    torch.manual_seed(args.seed)
    one = lambda: gym.wrappers.FlattenObservation(ImgObsWrapper(gym.make(args.env)))  # noqa: E731
    envs = SyncVectorEnv([one] * args.envs, autoreset_mode=AutoresetMode.SAME_STEP)
    size, moves = envs.single_observation_space.shape[0], envs.single_action_space.n
    actor, critic = network(size, moves), network(size, 1)
    target, predictor = network(size, 32), network(size, 32)
    learned = [*actor.parameters(), *critic.parameters(), *predictor.parameters()]
    optimizer = torch.optim.Adam(learned, lr=1e-3, eps=1e-5)

    shaping = payback.chain(payback.scale(args.bonus), payback.grm(args.gamma, args.delay))  # (1)
    loans = shaping.init(torch.zeros(args.envs))  # (2)

    obs = torch.as_tensor(envs.reset(seed=args.seed)[0], dtype=torch.float32) / 10
    returns, running = [], np.zeros(args.envs)
    for _ in range(args.steps // (args.envs * args.rollout)):
        rows = []
        for _ in range(args.rollout):
            with torch.no_grad():
                policy = Categorical(logits=actor(obs))
                action, value = policy.sample(), critic(obs)[:, 0]
            next_obs, extrinsic, terminated, truncated, info = envs.step(action.numpy())
            done = torch.as_tensor(terminated | truncated)
            true_next = next_obs.copy()
            for k in np.flatnonzero(terminated | truncated):
                true_next[k] = info["final_obs"][k]
            seen = torch.as_tensor(true_next, dtype=torch.float32) / 10
            with torch.no_grad():
                bonus = (predictor(seen) - target(seen)).pow(2).mean(dim=1)
            reward = torch.as_tensor(extrinsic, dtype=torch.float32)
            if args.form == "step":
                loans, shaped = shaping.update(loans, bonus, done)  # (3)
                reward = reward + shaped
            rows.append((obs, action, policy.log_prob(action), value, reward, done, bonus, seen))
            obs = torch.as_tensor(next_obs, dtype=torch.float32) / 10
            running += extrinsic
            returns += running[done.numpy()].tolist()
            running[done.numpy()] = 0

        obs_, actions, old_logs, values, rewards, dones, bonuses, seen_ = (torch.stack(column) for column in zip(*rows))  # noqa: B905
        if args.form == "rollout":
            loans, shaped = payback.shape_rollout(shaping, loans, bonuses, dones)  # (3), a whole rollout at once
            rewards = rewards + shaped
        if keep is not None:
            keep(rewards, dones)

        with torch.no_grad():
            gains = advantages(rewards, values, dones, critic(obs)[:, 0], args.gamma)
        targets = (gains + values).flatten()
        gains, old_logs, actions = gains.flatten(), old_logs.flatten(), actions.flatten()
        obs_, seen_ = obs_.flatten(0, 1), seen_.flatten(0, 1)
        for _ in range(4):
            for part in torch.randperm(len(gains)).split(256):
                policy = Categorical(logits=actor(obs_[part]))
                ratio = (policy.log_prob(actions[part]) - old_logs[part]).exp()
                gain = (gains[part] - gains[part].mean()) / (gains[part].std() + 1e-8)
                surrogate = torch.min(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
                misjudged = (critic(obs_[part])[:, 0] - targets[part]).pow(2).mean()
                novelty = (predictor(seen_[part]) - target(seen_[part]).detach()).pow(2).mean()
                loss = -surrogate + 0.5 * misjudged - 0.01 * policy.entropy().mean() + novelty
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(learned, 0.5)
                optimizer.step()
    late = float(np.mean(returns[-100:])) if returns else 0.0
    print(f"{len(returns)} episodes, mean extrinsic return of the last hundred: {late:.2f}")
    return late


if __name__ == "__main__":
    main()
