"""Playing a finished TorchRL environment, to see whether what comes out is what the shaping paid."""

# TorchRL's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import Any

import numpy as np

from payback.integrations.host import host
from payback.integrations.shaping_warning import ShapingWarning
from payback.integrations.torchrl_outside import after, names
from payback.integrations.wiring import STEPS_PER_EPISODE, compare

with host("TorchRL", "pip install 'payback[torchrl]'"):
    import torch

KEYS = ("reward", "terminated", "truncated", "extrinsic_reward", "shaped_reward", "debt", "was_truncated")
KEPT = ("steps", "confirmed", "_said", "outside")


def check_wiring(env: Any, episodes: int = 20) -> int:
    """Play `episodes` with random actions, and compare the reward that comes out with r_t + F′_t as it was paid.

    Takes the finished TransformedEnv. Raises LawBroken where a transform after ShapeReward changes the reward
    (clipping, VecNorm, a frame skip) or ends episodes behind its back (StepCounter). Returns their number. The
    environment is reset afterwards, without debts, and F̄ put back; what the bonus learned stays. Nothing of it is
    recorded.
    """
    shaping = _find(env)
    buffers = {name: buffer.clone() for name, buffer in shaping.named_buffers()}
    before = {name: deepcopy(vars(shaping)[name]) for name in KEPT}
    followed, record, length = shaping.followed, shaping.record, shaping._length
    # Watch and log do not see what is played, so that nothing of them need be copied: an open log cannot be.
    shaping.followed = shaping.record = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ShapingWarning)
            finished = _play(env, shaping, episodes)
            env.reset()
    finally:
        vars(shaping).update(before)
        for name, buffer in shaping.named_buffers():
            buffer.copy_(buffers[name])
        shaping.followed, shaping.record = followed, record
        if followed is not None:
            followed.restart(torch.ones_like(length, dtype=torch.bool), length)
        shaping._open, shaping._length = None, torch.zeros_like(length)
    if not finished:
        warnings.warn(
            "no episode ended under random actions, so that check_wiring has seen no settlement",
            ShapingWarning,
            stacklevel=2,
        )
    return finished


def _find(env: Any) -> Any:
    """Return the last ShapeReward among the environment's transforms."""
    while env is not None:
        transform = getattr(env, "transform", None)
        members = list(getattr(transform, "transforms", [transform]))
        found = [member for member in members if hasattr(member, "shaping") and hasattr(member, "settles")]
        if found:
            return found[-1]
        env = getattr(env, "base_env", None)
    raise ValueError("check_wiring found no ShapeReward among the transforms; give it the finished TransformedEnv")


def _play(env: Any, shaping: Any, episodes: int) -> int:
    outside, finished, steps, length = names(after(shaping)), 0, 0, 64
    while finished < episodes and steps < episodes * STEPS_PER_EPISODE:
        rollout = env.rollout(length, break_when_any_done=False)["next"]
        if "truncated" not in rollout:  # as in environments that have no time limit
            rollout["truncated"] = torch.zeros_like(rollout["terminated"])
        # Time first, whatever the environment's batch: (T, B).
        rows = [_rows(rollout[key], len(rollout.batch_size)) for key in KEYS]
        for t in range(length):
            row = [column[t] for column in rows]
            compare(row, steps + t, shaping.settles, outside)
            finished += int(np.count_nonzero(row[1].astype(bool) | row[2].astype(bool)))
        steps, length = steps + length, 2 * length
    return finished


def _rows(column: Any, batch: int) -> np.ndarray:
    values = column.detach().cpu().numpy().squeeze(-1)
    return np.moveaxis(values, batch - 1, 0).reshape(values.shape[batch - 1], -1)
