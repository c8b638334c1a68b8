"""What is wrapped around the shaping, and what of it breaks the law before the first step."""

# Stable-Baselines3's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize, unwrap_vec_normalize
from stable_baselines3.her import HerReplayBuffer

from payback.core.transform import Match
from payback.integrations.sb3.shape_vec_reward import ShapeVecReward
from payback.integrations.told import other_gamma

OFF_POLICY = (
    "A replayed F′ belongs to its own history: a history is worth its extrinsic value less its debt, for one-step and "
    "n-step targets, replayed in any order. A Q-function that sees the debt (observe_debt=True) learns exactly that, "
    "and its greedy policy is the one without a bonus; one that does not see it averages over the debts of other "
    "histories, and its greedy policy may change."
)
"""What holds for learners with a replay buffer; tests/integrations/test_off_policy.py holds it."""


def find_shaping(env: VecEnv | None) -> tuple[ShapeVecReward, list[VecEnvWrapper]]:
    """Return the outermost shaping wrapper in `env` and the wrappers outside it."""
    outside = []
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, ShapeVecReward):
            return env, outside
        outside.append(env)
        env = env.venv
    raise ValueError("there is no ShapeVecReward among the environment's wrappers; wrap it before making the model")


def shapings_of(env: VecEnv | None) -> list[tuple[ShapeVecReward, list[VecEnvWrapper]]]:
    """Return every shaping wrapper in `env`, the outermost first, each with the wrappers between it and the last."""
    found = [find_shaping(env)]
    while True:
        try:
            found.append(find_shaping(found[-1][0].venv))
        except ValueError:
            return found


def gamma_of(model: Any) -> float:
    """Return the discount that a model uses now."""
    return model.gamma


def gamma_problems_of(model: Any, stack: list[tuple[ShapeVecReward, list[VecEnvWrapper]]]) -> list[str]:
    """Say which shapings repay with another γ than the model discounts with, now: a model's γ may be changed."""
    matches = [shaping.ledger.transform for shaping, _ in stack if isinstance(shaping.ledger.transform, Match)]
    return [other_gamma(model.gamma, match.gamma) for match in matches if model.gamma != match.gamma]


def problems_of(model: Any, env: VecEnv) -> list[str]:
    """Say what of the model and its environment's wrappers is known to break the law."""
    stack = shapings_of(env)
    for shaping, _ in stack:
        shaping.ledger.confirmed = True
    problems = gamma_problems_of(model, stack)
    if any(isinstance(wrapper, VecNormalize) and wrapper.norm_reward for _, outside in stack for wrapper in outside):
        problems.append(
            "VecNormalize outside the shaping divides and clips shaped rewards by a drifting scale, so loans and "
            "repayments no longer cancel; put it inside ShapeVecReward, or use norm_reward=False"
        )
    inner = unwrap_vec_normalize(stack[-1][0].venv)
    if isinstance(model, OffPolicyAlgorithm) and inner is not None and unwrap_vec_normalize(env) is inner:
        problems.append(
            "VecNormalize is inside the shaping, and SB3's off-policy learners store the reward that it was given, "
            "without the shaping; put it outside ShapeVecReward, with norm_reward=False"
        )
    if isinstance(getattr(model, "replay_buffer", None), HerReplayBuffer):
        problems.append(
            "HerReplayBuffer computes rewards anew for other goals and loses the shaping; use a plain buffer"
        )
    return problems


def is_blind(model: Any, env: VecEnv) -> bool:
    """Say whether a learner with a replay buffer does not see the debt."""
    return isinstance(model, OffPolicyAlgorithm) and not all(one.observes_debt for one, _ in shapings_of(env))
