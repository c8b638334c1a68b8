"""PPO of rsl_rl on a task that a wrongly wired bonus turns around, and a rightly wired one does not.

    python examples/rsl_rl_ppo.py

The first action chooses a lane for ten steps: the right one (action > 0) pays 0.05 and a novelty of 1 at every step,
the left one nothing. rsl_rl adds a bonus and then bootstraps time-outs; if the bonus was settled before, its debt is
paid twice, and the agent learns to go left. ShapedPPO masks the time-outs.
"""

import warnings
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import torch
from rsl_rl.env import VecEnv
from rsl_rl.runners import OnPolicyRunner
from tensordict import TensorDict

import payback
from payback import ShapingWarning
from payback.integrations.rsl_rl import ShapedPPO
from payback.ledger import make
from payback.monitor import Monitor

GAMMA, LIMIT, ENVS = 0.9, 10, 16


class Lanes(VecEnv):
    """Ten steps in the lane that the first action chose, cut by a time limit; lane and time are observed."""

    def __init__(self, num_envs: int = ENVS, shaped_inside: payback.RewardTransform | None = None):
        self.num_envs, self.num_actions, self.max_episode_length = num_envs, 1, LIMIT
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.right = torch.zeros(num_envs, dtype=torch.bool)
        self.device, self.cfg = "cpu", {}
        self.went_right: list[float] = []
        self.monitor = None if shaped_inside is None else Monitor(make(shaped_inside), learner_gamma=GAMMA)
        if self.monitor is not None:
            self.shaping_state = self.monitor.ledger.init(np.zeros(num_envs))

    def get_observations(self) -> TensorDict:
        place = self.episode_length_buf + LIMIT * (self.right & (self.episode_length_buf > 0))
        seen = torch.nn.functional.one_hot(place, 2 * LIMIT).float()
        return TensorDict({"policy": seen, "right": self.right[:, None].float()}, batch_size=[self.num_envs])

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, torch.Tensor, torch.Tensor, dict]:
        first = self.episode_length_buf == 0
        self.right = torch.where(first, actions[:, 0] > 0, self.right)
        self.went_right += self.right[first].float().tolist()
        self.episode_length_buf = self.episode_length_buf + 1
        limit = self.episode_length_buf >= LIMIT
        self.episode_length_buf[limit] = 0
        reward, F = 0.05 * self.right.float(), self.right.double()
        if self.monitor is not None:
            ends = np.zeros_like(limit.numpy()), limit.numpy()
            self.shaping_state, paid = self.monitor.step(self.shaping_state, F.numpy(), *ends)
            reward = reward + torch.as_tensor(paid.shaped).float()
        return self.get_observations(), reward, limit.long(), {"time_outs": limit, "novelty": F}


def novelty(obs, action, next_obs, extras):
    """The bonus: 1 for every step in the right lane."""
    return extras["novelty"]


def config(algorithm: dict) -> dict:
    model = {"class_name": "MLPModel", "hidden_dims": [16], "activation": "tanh"}
    spread = {"class_name": "GaussianDistribution", "init_std": 1.0, "std_type": "scalar"}
    return {
        "num_steps_per_env": 20,
        "save_interval": 1000,
        "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
        "actor": {**model, "distribution_cfg": spread},
        "critic": dict(model),
        "algorithm": {"gamma": GAMMA, "lam": 0.95, "entropy_coef": 0.0, "learning_rate": 3e-3, **algorithm},
    }


def train(env: Lanes, algorithm: dict, iterations: int, seed: int = 0) -> float:
    """Train, and return the share of episodes in the right lane in the last tenth."""
    torch.manual_seed(seed)
    with redirect_stdout(StringIO()):  # rsl_rl prints its networks
        OnPolicyRunner(env, config(algorithm)).learn(iterations)
    last = env.went_right[-len(env.went_right) // 10 :]
    return sum(last) / len(last)


def main(iterations: int = 60) -> dict[str, float]:
    """Train three ways, and return how often each agent goes right in the end."""
    warnings.filterwarnings("ignore", category=ShapingWarning)
    match = payback.grm(GAMMA, delay=3, center=False)
    shares = {
        "no bonus": train(Lanes(), {"class_name": "PPO"}, iterations),
        "bonus settled, then bootstrapped": train(Lanes(shaped_inside=match), {"class_name": "PPO"}, iterations),
        "ShapedPPO": train(Lanes(), {"class_name": ShapedPPO, "transform": match, "bonus": novelty}, iterations),
    }
    for name, share in shares.items():
        print(f"{name:34} goes right in {share:.0%} of the last episodes")
    return shares


if __name__ == "__main__":
    main()
