"""The callback that checks what the wrapper cannot see, keeps F̄ with the model, and logs the shaping's figures."""

# The host's types are generic or missing.
# pyright: standard

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize, unwrap_vec_normalize

from payback.core.state import running_mean
from payback.core.transform import Match
from payback.integrations.sb3.buffers import BufferCheck, buffer_problems_of
from payback.integrations.sb3.collect_bonus import BonusAdvantage, bonus_advantage
from payback.integrations.sb3.saved_model import Stack, keep_means, restore_means, shapings_of
from payback.integrations.sb3.shape_vector_reward import ShapeVectorReward
from payback.integrations.wiring import names_of
from payback.messages import changed_reward, other_gamma, warn, warn_blind_replay
from payback.monitor import changed


class CheckShaping(BaseCallback):
    """Check what the wrapper cannot see: the learner's γ, what is wrapped around, and the reward that comes out of it.

    Refuses another γ than the transform's (of every shaping in the stack, and of an n-step buffer), a VecNormalize
    outside that scales rewards, one inside with a replay buffer, and a buffer that relabels rewards; at each step a
    reward that is not the r_t + F'_t that the shaping paid, and other ends than its; and with each rollout a buffer
    whose rewards or advantages were changed. `strict=False` warns once and goes on. A learner with a replay buffer that
    does not see the debt is warned. What a later callback assigns anew, it cannot see: put CheckShaping last.

    F̄ is kept with the model: `model.save`, CheckpointCallback and `load` carry it, also to another number of
    environments. The logger gets, once per rollout, `shaping/` extrinsic, intrinsic, shaped (means per step), owed (the
    mean debt), mean (F̄), residual (the largest |Σγ^t F′_t| / Σγ^t |F′_t| of the finished episodes) and drops.

    Where the environment is in `CollectBonus` instead, it adds the bonus' advantage to each rollout; see there.
    """

    def __init__(self, strict: bool = True):
        super().__init__()
        self.strict = strict
        self._tampered = self._hidden = False
        self._buffer: BufferCheck
        self._gamma: float | None = None
        self._stack: Stack = []
        self._advantage: BonusAdvantage | None = None
        self._sums = [0.0] * 4
        self._steps = 0

    def _on_training_start(self) -> None:
        self._advantage = bonus_advantage(self.model, self.training_env)
        if self._advantage is not None:
            for problem in self._advantage.problems():
                self._report(problem)
            self._advantage.restore()
            return
        for problem in problems_of(self.model, self.training_env):
            self._report(problem)
        self._gamma = _gamma_of(self.model)
        self._stack, self._buffer = shapings_of(self.training_env), BufferCheck(self.model)
        if isinstance(self.model, OffPolicyAlgorithm) and any(
            isinstance(shaping.ledger.transform, Match) and not shaping.observes_debt for shaping, _ in self._stack
        ):
            warn_blind_replay()
        for shaping, _ in self._stack:
            shaping.outer.left = 0  # because this callback sees all that the call stack would show, and more
        self._begin_sums()
        restore_means(self.model, self.training_env)

    def _on_step(self) -> bool:
        if self._advantage is not None:
            self._report_once(self._advantage.changed_end(self.locals["dones"]))
            return True
        outermost = self._stack[0][0]
        self._sums = [total + sum(values) for total, values in zip(self._sums, outermost.reported, strict=True)]
        self._steps += 1
        given, ends, infos = (self.locals.get(key) for key in ("rewards", "dones", "infos"))
        if given is None and not self._hidden:
            self._hidden = True
            warn(
                f"{type(self.model).__name__} shows its callbacks no rewards, so CheckShaping cannot compare them with "
                "what the shaping paid"
            )
        self._buffer.add(outermost.paid, outermost.carried)
        if not self._tampered and given is not None:
            for shaping, outside in self._stack:
                if given.tobytes() != shaping.paid.tobytes():
                    self._compare(given, shaping, outside)
                given = shaping.received
            if ends is not None and ends.tobytes() != outermost.done.tobytes():
                self._compare_ends(ends)
            if infos is not None and np.count_nonzero(outermost.done):
                self._compare_limits(infos)
        return True

    def _on_rollout_start(self) -> None:
        if self._advantage is not None:
            other_gamma = self._advantage.other_gamma()
            if other_gamma:
                self._report(other_gamma)
            self._advantage.begin()
            return
        self._report_once(self._buffer.look_back())
        if _gamma_of(self.model) != self._gamma:
            self._gamma = _gamma_of(self.model)
            for problem in gamma_problems_of(self.model, self._stack):
                self._report(problem)

    def _on_rollout_end(self) -> None:
        if self._advantage is not None:
            for name, value in self._advantage.add().items():
                self.logger.record(f"shaping/{name}", value)
            return
        self._report_once(self._buffer.look())
        keep_means(self.model, self._stack)
        shaping, _ = self._stack[0]
        if self._steps:
            for name, total in zip(("extrinsic", "intrinsic", "shaped", "owed"), self._sums, strict=True):
                self.logger.record(f"shaping/{name}", total / (self._steps * shaping.num_envs))
        mean = running_mean(shaping.shaping_state.loans)
        if mean is not None:
            self.logger.record("shaping/mean", mean)
        if isinstance(shaping.monitor.ledger.transform, Match):
            self.logger.record("shaping/residual", shaping.monitor.take_residual())
        self.logger.record("shaping/drops", shaping.monitor.drops)
        self._begin_sums()

    def _on_training_end(self) -> None:
        if self._advantage is None:
            self._report_once(self._buffer.look_back())

    def _begin_sums(self) -> None:
        self._sums, self._steps = [0.0] * 4, 0

    def _compare(self, given: np.ndarray, shaping: ShapeVectorReward, outside: list[VecEnvWrapper]) -> None:
        k = changed(given, shaping.received, shaping.shaped)
        if k is not None:
            culprit = f"a wrapper outside ({names_of(outside, 'the host')})"
            self._report_once(changed_reward(shaping.paid[k], given[k], k, culprit, "put it inside ShapeVectorReward"))

    def _compare_ends(self, ends: np.ndarray) -> None:
        shaping, outside = self._stack[0]
        for k in np.flatnonzero(ends != shaping.done).tolist():
            self._report_once(
                f"the episode of environment {k} {'ends' if ends[k] else 'goes on'} for the learner, not for the "
                f"shaping, because a wrapper outside ({names_of(outside, 'the host')}) changes `done`: debts are "
                "settled at other steps than the learner's episodes end; put it inside ShapeVectorReward"
            )

    def _compare_limits(self, infos: list[dict[str, Any]]) -> None:
        shaping, outside = self._stack[0]
        for k in np.flatnonzero(shaping.done).tolist():
            if bool(infos[k].get("TimeLimit.truncated", False)) != shaping.carried[k]:
                happened = "carried" if shaping.carried[k] else "settled"
                self._report_once(
                    f"the debt of environment {k} was {happened} at the end of its episode, but a wrapper outside "
                    f"({names_of(outside, 'the host')}) changes TimeLimit.truncated, by which SB3 decides whether to "
                    "bootstrap: the debt is paid twice or never; put it inside ShapeVectorReward"
                )

    def _report_once(self, problem: str | None) -> None:
        """Report the first reward or end that was changed."""
        if problem is not None and not self._tampered:
            self._tampered = True
            self._report(problem)

    def _report(self, problem: str) -> None:
        if self.strict:
            raise ValueError(f"{problem}; to go on all the same use CheckShaping(strict=False)")
        warn(problem)


def gamma_problems_of(model: Any, stack: Stack) -> list[str]:
    """Return which shapings repay with another γ than the model discounts with now: a model's γ may be changed."""
    transforms = [shaping.ledger.transform for shaping, _ in stack]
    gammas = [transform.gamma for transform in transforms if isinstance(transform, Match)]
    learner = _gamma_of(model)
    if learner is not None:
        return [other_gamma(learner, gamma) for gamma in gammas if learner != gamma]
    return [
        f"{type(model).__name__} has no discount: it learns from undiscounted returns, but bonuses are repaid with "
        f"gamma {gamma}; use gamma=1 in the transform"
        for gamma in gammas
        if gamma != 1
    ]


def problems_of(model: Any, env: VecEnv) -> list[str]:
    """Return what of the model and its environment's wrappers is known to undo the guarantee."""
    stack = shapings_of(env)
    for shaping, _ in stack:
        shaping.monitor.confirmed = True
    problems = gamma_problems_of(model, stack)
    if any(isinstance(wrapper, VecNormalize) and wrapper.norm_reward for _, outside in stack for wrapper in outside):
        problems.append(
            "VecNormalize outside the shaping divides and clips shaped rewards by a drifting scale, so bonuses and "
            "repayments no longer cancel; put it inside ShapeVectorReward, or use norm_reward=False"
        )
    inner = unwrap_vec_normalize(stack[-1][0].venv)
    if isinstance(model, OffPolicyAlgorithm) and inner is not None and unwrap_vec_normalize(env) is inner:
        problems.append(
            "VecNormalize is inside the shaping, and SB3's off-policy learners store the reward that it was given, "
            "without the shaping; put it outside ShapeVectorReward, with norm_reward=False"
        )
    carries = any(shaping.ledger.on_truncation == "carry" for shaping, _ in stack)
    return problems + buffer_problems_of(model, carries)


def _gamma_of(model: Any) -> float | None:
    """Return the discount that a model uses now, None for one that has none (ARS)."""
    return getattr(model, "gamma", None)
