"""rsl_rl's runner and the shaping on the example's lanes, which may also end by chance; `Kept` keeps each step's parts.

Needs rsl_rl (make test-hosts).
"""

import importlib.util
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from rsl_rl.runners import OnPolicyRunner

from payback.integrations.rsl_rl import ShapedPPO

spec = importlib.util.spec_from_file_location("rsl_rl_ppo", Path(__file__).parents[2] / "examples" / "rsl_rl_ppo.py")
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)
GAMMA, LIMIT, B = example.GAMMA, example.LIMIT, 2
IGNORED_WARNINGS = [
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
"""Warnings that are not what these tests are about."""


def runner(env, algorithm, steps=2 * LIMIT):
    with redirect_stdout(StringIO()):
        return OnPolicyRunner(env, {**example.config(algorithm), "num_steps_per_env": steps})


def shaped(transform, on_truncation="settle"):
    bonus = example.novelty
    return {"class_name": ShapedPPO, "transform": transform, "bonus": bonus, "on_truncation": on_truncation}


class Random(example.Lanes):
    """Lanes that also end by chance, without a time-out."""

    step_dt = 1.0
    """Read by rsl_rl to scale the weight of its RND."""

    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.unwrapped = self
        self.chance = torch.Generator().manual_seed(0)

    def step(self, actions):
        _, reward, dones, extras = super().step(actions)
        ends = (torch.rand(self.num_envs, generator=self.chance) < 0.15) & (dones == 0)
        self.episode_length_buf[ends] = 0
        extras["novelty"] = torch.rand(self.num_envs, generator=self.chance).double()
        return self.get_observations(), reward, dones | ends.long(), extras


class Kept(ShapedPPO):
    """Keeps each step's parts."""

    def process_env_step(self, obs, rewards, dones, extras):
        values = self.transition.values.clone()
        super().process_env_step(obs, rewards, dones, extras)
        stored = self.storage.rewards[self.storage.step - 1, :, 0].clone()
        row = (
            rewards,
            dones,
            extras["time_outs"],
            self.intrinsic_rewards,
            self.shaped_rewards,
            self.debts.owed,
            stored,
        )
        self.kept = [*getattr(self, "kept", []), (*row, values[:, 0])]
