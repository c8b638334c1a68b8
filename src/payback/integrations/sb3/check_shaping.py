"""The callback that checks what the wrapper cannot see, keeps F̄ with the model, and logs the shaping's figures."""

# pyright: standard
from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import VecEnvWrapper, VecNormalize, unwrap_vec_normalize
from stable_baselines3.her import HerReplayBuffer

from payback.core.arrays import any_of
from payback.core.state import running_mean
from payback.core.transform import Match
from payback.integrations.sb3.collect_bonus import bonus_advantage
from payback.integrations.sb3.saved_model import Stack, keep_means, restore_means, shapings_of
from payback.integrations.sb3.shape_vector_reward import ShapeVectorReward
from payback.integrations.wiring import names_of
from payback.messages import changed_reward, other_gamma, warn, warn_blind_replay
from payback.monitor import ROUNDING, changed

OWN = ("stable_baselines3.", "sb3_contrib.")


class CheckShaping(BaseCallback):
    """Check what the wrapper cannot see: the learner's γ, what is wrapped around, and the reward that comes out of it.

    Refuses another γ than the transform's, a VecNormalize outside that scales rewards, one inside with a replay buffer,
    and a buffer that relabels rewards; at each step another reward or other ends than the shaping's; and with each
    rollout a buffer whose rewards or advantages were changed. `strict=False` warns once and goes on. Put CheckShaping
    last: it cannot see what a later callback assigns.

    F̄ is kept with the model: `model.save`, CheckpointCallback and `load` carry it, also to another number of
    environments. The logger gets, once per rollout, `shaping/` extrinsic, intrinsic, shaped (means per step), owed (the
    mean debt), mean (F̄), residual (the largest |Σγ^t F′_t| / Σγ^t |F′_t| of the finished episodes) and drops.
    For an environment in `CollectBonus` it adds the bonus' advantage to each rollout instead.
    """

    def __init__(self, strict: bool = True):
        super().__init__()
        self.strict = strict
        self._tampered = self._hidden = False
        self._reported: list[tuple[list[float], ...]] = []  # of this rollout, by step

    def _on_training_start(self) -> None:
        self._gamma = getattr(self.model, "gamma", None)
        self._advantage = bonus_advantage(self.model, self.training_env)
        if self._advantage is not None:
            self._report(*self._advantage.problems())
            return self._advantage.restore()
        self._buffer = BufferCheck(self.model)
        self._stack = shapings_of(self.training_env)
        self._report(*problems_of(self.model, self._stack))
        blind = [shaping for shaping, _ in self._stack if not shaping.observes_debt]
        matches = any(isinstance(shaping.monitor.ledger.transform, Match) for shaping in blind)
        if matches and isinstance(self.model, OffPolicyAlgorithm):
            warn_blind_replay()
        for shaping, _ in self._stack:
            shaping.outer.left = 0  # because this callback sees all that the call stack would show, and more
            shaping.monitor.confirmed = True
        restore_means(self.model, self._stack)

    def _on_step(self) -> bool:
        if self._advantage is not None:
            if not self._tampered and "rewards" in self.locals:
                self._report_once(self._advantage.changed(self.locals))
            return True
        outermost = self._stack[0][0]
        self._reported.append(outermost.reported)
        given, ends, infos = map(self.locals.get, ("rewards", "dones", "infos"))
        if given is None and not self._hidden:
            self._hidden = True
            warn(f"{type(self.model).__name__} shows its callbacks no rewards, so CheckShaping cannot compare them")
        self._buffer.steps.append((outermost.paid, outermost.carried))
        if not self._tampered and given is not None:
            for shaping, outside in self._stack:
                if given.tobytes() != shaping.paid.tobytes():
                    self._report_once(_changed_reward(given, shaping, outside))
                given = shaping.received
            if outermost.ended or (ends is not None and any_of(ends)):
                self._report_once(_changed_end(ends, infos, *self._stack[0]))
        return True

    def _on_rollout_start(self) -> None:
        gamma, self._gamma = self._gamma, getattr(self.model, "gamma", None)
        if self._advantage is not None:
            if gamma != self._gamma:
                self._report(*self._advantage.other_gamma())
            return self._advantage.begin()
        self._report_once(self._buffer.look_back())
        if gamma != self._gamma:
            self._report(*gamma_problems_of(self.model, self._stack))

    def _on_rollout_end(self) -> None:
        if self._advantage is not None:
            for name, value in self._advantage.add().items():
                self.logger.record(f"shaping/{name}", value)
            return
        self._report_once(self._buffer.look())
        keep_means(self.model, self._stack)
        shaping, _ = self._stack[0]
        if self._reported:
            columns, count = zip(*self._reported, strict=True), len(self._reported) * shaping.num_envs
            for name, steps in zip(("extrinsic", "intrinsic", "shaped", "owed"), columns, strict=True):
                self.logger.record(f"shaping/{name}", sum(map(sum, steps)) / count)
            self._reported = []
        mean = running_mean(shaping.shaping_state.loans)
        if mean is not None:
            self.logger.record("shaping/mean", mean)
        if isinstance(shaping.monitor.ledger.transform, Match):
            self.logger.record("shaping/residual", shaping.monitor.take_residual())
        self.logger.record("shaping/drops", shaping.monitor.drops)

    def _on_training_end(self) -> None:
        if self._advantage is None:
            self._report_once(self._buffer.look_back())

    def _report_once(self, problem: str | None) -> None:
        if problem is not None and not self._tampered:
            self._tampered = True
            self._report(problem)

    def _report(self, *problems: str) -> None:
        for problem in problems:
            if self.strict:
                raise ValueError(f"{problem}; to go on all the same use CheckShaping(strict=False)")
            warn(problem)


def _changed_reward(given: np.ndarray, shaping: ShapeVectorReward, outside: list[VecEnvWrapper]) -> str | None:
    """Return whose reward is another for the learner than the shaping paid; None where only rounding differs."""
    k, remedy = changed(given, shaping.received, shaping.shaped), "put it inside ShapeVectorReward"
    return None if k is None else changed_reward(shaping.paid[k], given[k], k, _culprit(outside), remedy)


def _changed_end(ends: Any, infos: Any, shaping: ShapeVectorReward, outside: list[VecEnvWrapper]) -> str | None:
    """Return whose episode ends otherwise for the learner than for the shaping."""
    if ends is not None and ends.tobytes() != shaping.done.tobytes():
        k = int(np.argmax(ends != shaping.done))
        ends_here = f"the episode of environment {k} {'ends' if ends[k] else 'goes on'} for the learner"
        return f"{ends_here}, not for the shaping: {_culprit(outside)} changes `done`; put it inside the shaping"
    for k in shaping.ended if infos else []:
        if bool(infos[k].get("TimeLimit.truncated", False)) != shaping.carried[k]:
            why = "by which SB3 decides whether to bootstrap; put it inside ShapeVectorReward"
            return f"{_culprit(outside)} changes TimeLimit.truncated of environment {k}, {why}"
    return None


def _culprit(outside: list[VecEnvWrapper]) -> str:
    return f"a wrapper outside ({names_of(outside, 'the host')})"


def gamma_problems_of(model: Any, stack: Stack) -> list[str]:
    """Return which shapings repay with another γ than the model discounts with now: a model's γ may be changed."""
    transforms = [shaping.monitor.ledger.transform for shaping, _ in stack]
    gammas = [transform.gamma for transform in transforms if isinstance(transform, Match)]
    learner = getattr(model, "gamma", None)
    if learner is not None:
        return [other_gamma(learner, gamma) for gamma in gammas if learner != gamma]
    words = "has no discount: it learns from undiscounted returns, but bonuses are repaid with gamma"
    return [f"{type(model).__name__} {words} {gamma}; use gamma=1 in the transform" for gamma in gammas if gamma != 1]


def problems_of(model: Any, stack: Stack) -> list[str]:
    """Return what of the model, its replay buffer and its environment's wrappers is known to undo the guarantee."""
    problems, buffer = gamma_problems_of(model, stack), getattr(model, "replay_buffer", None)
    outside = [wrapper for _, wrappers in stack for wrapper in wrappers if isinstance(wrapper, VecNormalize)]
    if any(wrapper.norm_reward for wrapper in outside):
        problems.append("VecNormalize outside the shaping rescales rewards; put it inside, or use norm_reward=False")
    if isinstance(model, OffPolicyAlgorithm) and not outside and unwrap_vec_normalize(stack[-1][0].venv):
        words = "VecNormalize is inside the shaping, so the replay buffer stores rewards without the shaping"
        problems.append(f"{words}; put it outside, with norm_reward=False")
    if isinstance(buffer, HerReplayBuffer):
        problems.append("HerReplayBuffer recomputes rewards for other goals and loses the shaping; use a plain buffer")
    discount = getattr(buffer, "gamma", None)
    if discount is not None and discount != model.gamma:
        gammas = f"gamma {discount}, the model with {model.gamma}"
        problems.append(f"{type(buffer).__name__} adds up n steps with {gammas}; give both the same")
    carries = any(shaping.monitor.ledger.on_truncation == "carry" for shaping, _ in stack)
    if carries and not getattr(buffer, "handle_timeout_termination", True):
        problems.append("handle_timeout_termination=False: a carried debt is never repaid; use on_truncation='settle'")
    return problems


class BufferCheck:
    """Remember what the steps of one rollout paid, and look for it in the buffer, before and after other callbacks."""

    def __init__(self, model: Any):
        self._model = model
        # What each step paid, and whose debt was left to the value that SB3 adds to the reward.
        self.steps: list[tuple[np.ndarray, np.ndarray]] = []
        self._held: list[tuple[str, np.ndarray, Any, np.ndarray]] = []

    def look(self) -> str | None:
        """Look at the buffer when a rollout is complete; return what is wrong."""
        steps, self.steps = self.steps, []
        buffer, rows = _newest(self._model, len(steps))
        if buffer is None:
            return None
        names = [name for name in ("rewards", "advantages", "returns") if hasattr(buffer, name)]
        self._held = [(name, getattr(buffer, name), rows, getattr(buffer, name)[rows].copy()) for name in names]
        given = buffer.rewards[rows]
        paid, carried = (np.array(column[-len(given) :]) for column in zip(*steps, strict=True))
        same = given.tobytes() == paid.tobytes()  # the usual case, in a fraction of the time
        first = None if same else changed(np.where(carried, paid, given).ravel(), paid.ravel(), np.zeros(()))
        if first is not None:
            k = first % paid.shape[1]
            culprit, remedy = "another callback", "add bonuses up before they are shaped"
            if not type(buffer).add.__module__.startswith(OWN):
                culprit, remedy = f"the buffer ({type(buffer).__name__})", "store rewards as they come"
            return changed_reward(float(paid.flat[first]), float(given.flat[first]), k, culprit, remedy)
        estimate = getattr(type(buffer), "compute_returns_and_advantage", None)
        if estimate is RolloutBuffer.compute_returns_and_advantage:  # the returns are advantages plus values
            off = np.abs(buffer.advantages + buffer.values - buffer.returns).max()
            if not off <= ROUNDING * (1 + np.abs(buffer.returns).max()):
                return _changed_after("advantages")
        return None

    def look_back(self) -> str | None:
        """Look at the last rollout again: callbacks after this one may have changed it in place."""
        held, self._held = self._held, []
        wrong = [name for name, values, rows, then in held if values[rows].tobytes() != then.tobytes()]
        return _changed_after(wrong[0]) if wrong else None


def _newest(model: Any, count: int) -> tuple[Any, Any]:
    """Return the model's buffer and the rows of its last `count` steps; None for models without one."""
    if isinstance(model, OffPolicyAlgorithm):
        buffer = model.replay_buffer
        if buffer is None or not count:
            return None, None
        return buffer, np.arange(buffer.pos - min(count, buffer.buffer_size), buffer.pos) % buffer.buffer_size
    buffer = getattr(model, "rollout_buffer", None)
    return (buffer, slice(None)) if count and buffer is not None and len(buffer.rewards) == count else (None, None)


def _changed_after(name: str) -> str:
    return f"another callback changes the {name} in the model's buffer; add bonuses up before they are shaped"
