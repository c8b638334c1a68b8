"""An environment in Isaac Lab's form, which resets at once, and skrl's PPO on it; `Kept` keeps each transition.

Needs skrl (make test-hosts).
"""

import gymnasium as gym
import torch
from skrl.agents.torch.ppo import PPO
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
from skrl.trainers.torch import SequentialTrainer

GAMMA, LIMIT, B = 0.9, 7, 4
QUIET = {"write_interval": 0, "checkpoint_interval": 0}


class Lanes:
    """Walks that end by chance, or after seven steps; the second action pays 1. Observations: the time, and noise."""

    single_observation_space = gym.spaces.Dict({"policy": gym.spaces.Box(-10.0, 10.0, (2,))})
    single_action_space = gym.spaces.Discrete(2)
    device, num_envs = torch.device("cpu"), B

    def __init__(self, hazard=0.15):
        self.hazard, self.chance, self.resets = hazard, torch.Generator().manual_seed(0), 0

    def _seen(self):
        noise = torch.rand(B, generator=self.chance)
        return {"policy": torch.stack((self.time.float(), noise), dim=1)}

    def reset(self, seed=None):
        self.time, self.resets = torch.zeros(B, dtype=torch.long), self.resets + 1
        return self._seen(), {}

    def step(self, actions):
        self.time = self.time + 1
        terminated = torch.rand(B, generator=self.chance) < self.hazard
        truncated = (self.time >= LIMIT) & ~terminated
        self.time[terminated | truncated] = 0
        novelty = torch.rand(B, generator=self.chance)
        return self._seen(), actions.reshape(-1).float(), terminated, truncated, {"novelty": novelty}

    def close(self):
        pass


class Policy(CategoricalMixin, Model):
    def __init__(self, env):
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device="cpu")
        CategoricalMixin.__init__(self)
        self.net = torch.nn.Linear(self.num_observations, self.num_actions)

    def compute(self, inputs, role=""):
        return self.net(inputs["observations"]), {}


class Value(DeterministicMixin, Model):
    def __init__(self, env):
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device="cpu")
        DeterministicMixin.__init__(self)
        self.net = torch.nn.Linear(self.num_observations, 1)

    def compute(self, inputs, role=""):
        return self.net(inputs["observations"]), {}


class Kept(PPO):
    """Keeps what the trainer records, what is stored of it, and the returns of each update."""

    def record_transition(self, **parts):
        rewards = parts["rewards"].clone()
        super().record_transition(**parts)
        k = (self.memory.memory_index - 1) % self.memory.memory_size
        stored = self.memory.get_tensor_by_name("rewards")[k].clone()
        self.rows = [*getattr(self, "rows", []), {**parts, "rewards": rewards, "stored": stored}]

    def update(self, **time):
        super().update(**time)
        self.returns = self.memory.get_tensor_by_name("returns")[..., 0].clone()


def wrapped(**options):
    return wrap_env(Lanes(**options), wrapper="isaaclab-single-agent", verbose=False)


def agent_for(env, folder, rollouts=50, **cfg):
    torch.manual_seed(0)
    models = {"policy": Policy(env), "value": Value(env)}
    memory = RandomMemory(memory_size=rollouts, num_envs=env.num_envs, device="cpu")
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    experiment = {"directory": str(folder), **QUIET}
    cfg = {"discount_factor": GAMMA, "rollouts": rollouts, "learning_epochs": 2, "experiment": experiment, **cfg}
    return Kept(models=models, memory=memory, cfg=cfg, device="cpu", **spaces)


def train(env, agent, timesteps=100):
    cfg = {"timesteps": timesteps, "disable_progressbar": True, "headless": True, "close_environment_at_exit": False}
    SequentialTrainer(env=env, agents=agent, cfg=cfg).train()
    return agent.rows


def column(rows, *keys):
    """A (T, B) array of one part of the transitions."""
    for key in keys:
        rows = [row[key] for row in rows]
    return torch.stack([row.reshape(-1) for row in rows]).numpy()
