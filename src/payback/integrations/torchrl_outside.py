"""TorchRL: what comes after the shaping, seen in the tensordict that the learner reads and in the transforms."""

# TorchRL's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import sys
import warnings
from typing import Any

from payback.integrations.host import host
from payback.integrations.shaping_warning import ShapingWarning
from payback.integrations.watch import ROUNDING

with host("TorchRL", "pip install 'payback[torchrl]'"):
    import torch
    from tensordict import TensorDictBase
    from torchrl.envs.transforms import Compose, Transform, TransformedEnv

CHANGING = ("RewardClipping", "RewardScaling", "BinarizeReward", "SignTransform", "VecNorm", "VecNormV2")
"""TorchRL's transforms that change the values of their keys, by the names of their classes."""


class Outside:
    """Remembers what one step paid, and looks one step later at what became of it.

    The transforms after the shaping write into the same tensordict, which is what the learner reads.
    """

    def __init__(self) -> None:
        self.said = False
        self._given: tuple[TensorDictBase, torch.Tensor, torch.Tensor] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"said": self.said, "_given": None}

    def paid(self, next_tensordict: TensorDictBase, reward: torch.Tensor, size: torch.Tensor) -> None:
        """Remember the reward r_t + F′_t, and |r_t| + |F′_t|, by which rounding is measured."""
        self._given = None if self.said else (next_tensordict, reward, size)

    def look(self, shaping: Transform) -> None:
        """Warn once if the reward of the last step is not what was paid."""
        if self._given is None:
            return
        tensordict, paid, size = self._given
        self._given, seen = None, tensordict.get("reward")
        if seen is paid:
            return
        wrong = (seen - paid).abs().reshape(-1) > (ROUNDING * size + 1e-12).reshape(-1)
        if bool(wrong.any()):
            self.said, k = True, int(torch.nonzero(wrong)[0])
            warnings.warn(
                f"the shaping paid {float(paid.reshape(-1)[k]):.6g} to environment {k}, but the learner is given "
                f"{float(seen.reshape(-1)[k]):.6g}, because a transform after ShapeReward ({names(after(shaping))}) "
                "changes rewards: loans and repayments no longer cancel; put it before ShapeReward",
                ShapingWarning,
                stacklevel=6,
            )


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
    """Refuse another shaping after this one, because both would keep their loans under the same keys."""
    for transform in after(shaping):
        if type(transform) is type(shaping):
            other = getattr(getattr(transform, "shaping", None), "gamma", None)
            raise ValueError(
                f"there are two ShapeReward (gamma {gamma}, then {other}) in one environment, which would keep their "
                "loans under the same keys; add the bonuses up and shape them once"
            )


def say_around(shaping: Transform) -> None:
    """Warn of transforms that change rewards around a vector (SerialEnv) of shaped environments.

    The vector copies what its environments pay, so that `Outside` cannot follow it; but while the shaping takes a step,
    the environments around it are on the call stack, if they are in the same process.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        env = frame.f_locals.get("self") if frame.f_code.co_name == "_step" else None
        frame = frame.f_back
        if not isinstance(env, TransformedEnv) or _holds(env, shaping):
            continue
        parts: list[Any] = list(env.transform.modules())
        changing = [part for part in parts if type(part).__name__ in CHANGING and "reward" in part.in_keys]
        if changing:
            warnings.warn(
                f"{names(changing)} around a vector of shaped environments changes the rewards that they paid: loans "
                "and repayments no longer cancel; put it before ShapeReward",
                ShapingWarning,
                stacklevel=6,
            )
            return


def _holds(env: Any, shaping: Transform) -> bool:
    """Say whether the shaping is in this environment, or in one that it wraps without a vector between them."""
    while isinstance(env, TransformedEnv):
        if any(part is shaping for part in env.transform.modules()):
            return True
        env = env.base_env
    return False


def names(transforms: list[Transform]) -> str:
    """Return the classes of some transforms, for a sentence."""
    return ", ".join(type(transform).__name__ for transform in transforms) or "outside its TransformedEnv"
