"""Compare what a model's buffer holds with what the shaping paid, and find buffers that undo the guarantee."""

# The host's types are generic or missing.
# pyright: standard

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.her import HerReplayBuffer

from payback.messages import changed_reward
from payback.monitor import ROUNDING, changed

OWN = ("stable_baselines3.", "sb3_contrib.")


class BufferCheck:
    """Remember what the steps of one rollout paid, and look for it in the buffer, before and after other callbacks.

    Steps whose debt is carried are left out, because SB3 adds the bootstrapped value there.
    """

    def __init__(self, model: Any):
        self._model = model
        self._paid: list[np.ndarray] = []
        self._carried: list[np.ndarray] = []
        self._held: list[tuple[str, np.ndarray, Any, np.ndarray]] = []

    def add(self, paid: np.ndarray, carried: np.ndarray) -> None:
        """Remember a step."""
        self._paid.append(paid)
        self._carried.append(carried)

    def look(self) -> str | None:
        """Look at the buffer when a rollout is complete; return what is wrong."""
        paid, carried = np.array(self._paid), np.array(self._carried)
        self._paid, self._carried = [], []
        buffer, rows = _newest(self._model, len(paid))
        if buffer is None:
            return None
        names = [name for name in ("rewards", "advantages", "returns") if hasattr(buffer, name)]
        self._held = [(name, getattr(buffer, name), rows, getattr(buffer, name)[rows].copy()) for name in names]
        given = buffer.rewards[rows]
        paid, carried = paid[-len(given) :], carried[-len(given) :]
        first = changed(np.where(carried, paid, given).ravel(), paid.ravel(), np.zeros(()))
        if first is not None:
            t, k = np.unravel_index(first, paid.shape)
            ours = type(buffer).add.__module__.startswith(OWN)
            culprit = "another callback" if ours else f"the buffer ({type(buffer).__name__})"
            remedy = "add bonuses up before they are shaped" if ours else "store rewards as they come"
            return changed_reward(float(paid[t, k]), float(given[t, k]), int(k), culprit, remedy)
        if _has_own_advantages(buffer):
            off = buffer.advantages + buffer.values - buffer.returns
            if not np.allclose(off, 0, atol=ROUNDING * (1 + np.abs(buffer.returns).max())):
                return _changed_after("advantages")
        return None

    def look_back(self) -> str | None:
        """Look at the last rollout again: callbacks after this one may have changed it in place."""
        held, self._held = self._held, []
        wrong = [name for name, values, rows, then in held if values[rows].tobytes() != then.tobytes()]
        return _changed_after(wrong[0]) if wrong else None


def buffer_problems_of(model: Any, carries: bool) -> list[str]:
    """Return how the model's replay buffer is known to undo the guarantee; `carries`: debts are carried."""
    buffer, problems = getattr(model, "replay_buffer", None), list[str]()
    if isinstance(buffer, HerReplayBuffer):
        problems.append("HerReplayBuffer recomputes rewards for other goals and loses the shaping; use a plain buffer")
    discount = getattr(buffer, "gamma", None)
    if discount is not None and discount != model.gamma:
        problems.append(
            f"{type(buffer).__name__} adds up n steps with gamma {discount}, but {type(model).__name__} discounts with "
            f"gamma {model.gamma}; give both the transform's"
        )
    if carries and not getattr(buffer, "handle_timeout_termination", True):
        problems.append(
            "the replay buffer has handle_timeout_termination=False, so the learner does not bootstrap at time limits "
            "and a carried debt is never repaid; use on_truncation='settle'"
        )
    return problems


def _newest(model: Any, count: int) -> tuple[Any, Any]:
    """Return the model's buffer and the rows of its last `count` steps; None for models without one."""
    if isinstance(model, OffPolicyAlgorithm):
        buffer = model.replay_buffer
        if buffer is None or not count:
            return None, None
        return buffer, np.arange(buffer.pos - min(count, buffer.buffer_size), buffer.pos) % buffer.buffer_size
    buffer = getattr(model, "rollout_buffer", None)
    return (buffer, slice(None)) if count and buffer is not None and len(buffer.rewards) == count else (None, None)


def _has_own_advantages(buffer: Any) -> bool:
    """Return whether the buffer's returns are SB3's: advantages plus values."""
    ours = RolloutBuffer.compute_returns_and_advantage
    return getattr(type(buffer), "compute_returns_and_advantage", None) is ours


def _changed_after(name: str) -> str:
    return (
        f"another callback changes the {name} in the model's buffer: bonuses and repayments no longer cancel; add "
        "bonuses up before they are shaped"
    )
