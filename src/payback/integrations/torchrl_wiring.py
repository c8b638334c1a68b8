"""TorchRL: find the transforms that change what the shaping paid, in training and by playing a finished environment."""

# pyright: standard

from __future__ import annotations

from typing import Any

import numpy as np

from payback.integrations.host import host
from payback.integrations.wiring import NO_END, STEPS_PER_EPISODE, callers_of, compare, names_of, rehearsed
from payback.messages import changed_reward, warn
from payback.monitor import changed, to_numpy

with host("TorchRL", "pip install 'payback[torchrl]'"):
    import torch
    from tensordict import TensorDictBase
    from torchrl.envs.transforms import Compose, Transform, TransformedEnv

CHANGING = ("RewardClipping", "RewardScaling", "BinarizeReward", "SignTransform", "VecNorm", "VecNormV2")
"""TorchRL's transforms that change the values of their keys, by the names of their classes."""
OUTSIDE = "outside its TransformedEnv"
KEYS = ("reward", "terminated", "truncated", "extrinsic_reward", "shaped_reward", "debt", "was_truncated")


class RewardTamperCheck:
    """Remember what one step paid, and compare it one step later with what the learner reads.

    The transforms after the shaping write into the same tensordict, which is what the learner reads.
    """

    def __init__(self) -> None:
        self.warned = False
        self._given: tuple[TensorDictBase, torch.Tensor, torch.Tensor, torch.Tensor] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"warned": self.warned, "_given": None}

    def paid(
        self, next_tensordict: TensorDictBase, extrinsic: torch.Tensor, shaped: torch.Tensor, total: torch.Tensor
    ) -> None:
        """Remember r_t, F′_t and their sum, as it stands in the tensordict."""
        self._given = None if self.warned else (next_tensordict, extrinsic, shaped, total)

    def look(self, shaping: Transform) -> None:
        """Warn once if the reward of the last step is not what was paid."""
        if self._given is None:
            return
        tensordict, extrinsic, shaped, total = self._given
        self._given, seen = None, tensordict.get("reward")
        if seen is total:
            return
        given, r, F = (to_numpy(x).reshape(-1) for x in (seen, extrinsic, shaped))
        k = changed(given, r, F)
        if k is not None:
            self.warned = True
            culprit = f"a transform after ShapeReward ({names_of(after(shaping), OUTSIDE)})"
            warn(changed_reward(float(r[k] + F[k]), float(given[k]), k, culprit, "put it before ShapeReward"))


def after(shaping: Transform) -> list[Transform]:
    """Return the transforms that come after the shaping, as far as the environment shows them."""
    found: list[Transform] = []
    inner: Any = shaping
    while True:
        reference = inner.__dict__.get("_container")
        container = None if reference is None else reference()
        if not isinstance(container, Compose):
            return found
        members: list[Any] = list(container.transforms)
        found += members[[member is inner for member in members].index(True) + 1 :]
        inner = container


def refuse_stacked(shaping: Transform, gamma: float) -> None:
    """Refuse another shaping after this one, because both would keep their debts under the same keys."""
    for transform in after(shaping):
        if type(transform) is type(shaping):
            monitor: Any = transform.monitor
            other = getattr(monitor.ledger.transform, "gamma", None)
            raise ValueError(
                f"there are two ShapeReward (gamma {gamma}, then {other}) in one environment, which would keep their "
                "debts under the same keys; add the bonuses up and shape them once"
            )


def warn_outer_transforms(shaping: Transform) -> None:
    """Warn of transforms that change rewards around a vector (SerialEnv) of shaped environments.

    The vector copies rewards, so `RewardTamperCheck` cannot follow them.
    """
    for _, env in callers_of(("_step",)):
        if not isinstance(env, TransformedEnv) or _holds(env, shaping):
            continue
        parts: list[Any] = list(env.transform.modules())
        changing = [part for part in parts if type(part).__name__ in CHANGING and "reward" in part.in_keys]
        if changing:
            warn(
                f"{names_of(changing)} around a vector of shaped environments changes the rewards that they paid: "
                "bonuses and repayments no longer cancel; put it before ShapeReward"
            )
            return


def _holds(env: Any, shaping: Transform) -> bool:
    """Return whether the shaping is in this environment, or in one that it wraps without a vector between them."""
    while isinstance(env, TransformedEnv):
        if any(part is shaping for part in env.transform.modules()):
            return True
        env = env.base_env
    return False


def check_wiring(env: Any, episodes: int = 20) -> int:
    """Play `episodes` with random actions, and compare the reward that comes out with r_t + F′_t as it was paid.

    Takes the finished TransformedEnv. Raises InvarianceError where a transform after ShapeReward changes the reward
    (clipping, VecNorm, a frame skip) or ends episodes (StepCounter). Returns the number of episodes. Afterwards the
    environment is reset and F̄ restored; what the bonus learned stays. Nothing is recorded.
    """
    shaping = _find(env)
    buffers = {name: buffer.clone() for name, buffer in shaping.named_buffers()}
    tampering = vars(shaping.tampering).copy()
    with rehearsed(shaping.monitor):
        try:
            finished = _play(env, shaping, episodes)
            env.reset()
        finally:
            vars(shaping.tampering).update(tampering, _given=None)
            for name, buffer in shaping.named_buffers():
                buffer.copy_(buffers[name])
            shaping._open = None
    if not finished:
        warn(NO_END)
    return finished


def _find(env: Any) -> Any:
    """Return the last ShapeReward among the environment's transforms."""
    while env is not None:
        transform = getattr(env, "transform", None)
        members = list(getattr(transform, "transforms", [transform]))
        found = [member for member in members if hasattr(member, "tampering") and hasattr(member, "monitor")]
        if found:
            return found[-1]
        env = getattr(env, "base_env", None)
    raise ValueError("check_wiring found no ShapeReward among the transforms; give it the finished TransformedEnv")


def _play(env: Any, shaping: Any, episodes: int) -> int:
    outside, finished, steps, length = names_of(after(shaping), OUTSIDE), 0, 0, 64
    while finished < episodes and steps < episodes * STEPS_PER_EPISODE:
        rollout = env.rollout(length, break_when_any_done=False)["next"]
        if "truncated" not in rollout:  # as in environments that have no time limit
            rollout["truncated"] = torch.zeros_like(rollout["terminated"])
        # Time first, whatever the environment's batch: (T, B).
        rows = [_rows(rollout[key], len(rollout.batch_size)) for key in KEYS]
        for t in range(length):
            row = [column[t] for column in rows]
            compare(row, steps + t, shaping.monitor.ledger.settles, outside)
            finished += int(np.count_nonzero(row[1].astype(bool) | row[2].astype(bool)))
        steps, length = steps + length, 2 * length
    return finished


def _rows(column: Any, batch: int) -> np.ndarray:
    values = column.detach().cpu().numpy().squeeze(-1)
    return np.moveaxis(values, batch - 1, 0).reshape(values.shape[batch - 1], -1)
