"""TorchRL: reading a step's intrinsic reward, flags and dtype from the tensordict."""

# TorchRL's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportConstantRedefinition=false

from __future__ import annotations

from payback.core.validate import read_flags
from payback.integrations.host import host
from payback.integrations.told import refuse_too_large

with host("TorchRL", "pip install 'payback[torchrl]'"):
    import torch
    from tensordict import TensorDictBase

HALVES = (torch.float16, torch.bfloat16)


def read_intrinsic(next_tensordict: TensorDictBase, key: str, step: int) -> torch.Tensor:
    """Return F as float64 of shape (B,), without its graph, or say which environment's is wrong, and at which step."""
    F = next_tensordict.get(key, None)
    n = next_tensordict.batch_size.numel()
    if F is None:
        raise KeyError(
            f"there is no {key!r} in the tensordict at step {step}: "
            "put the transform that computes it (RNDTransform) before ShapeReward"
        )
    if F.numel() != n:
        raise ValueError(
            f"the intrinsic reward at step {step} has shape {tuple(F.shape)}; "
            f"write one number per environment, of which there are {n}"
        )
    F = F.detach().reshape(-1).to(torch.float64)
    if F.device.type == "cpu" and not bool(torch.isfinite(F).all()):
        k = int(torch.nonzero(~torch.isfinite(F))[0])
        raise ValueError(f"the intrinsic reward of environment {k} at step {step} is {float(F[k])}; fix it")
    return F


def read_end(what: str, flags: torch.Tensor) -> torch.Tensor:
    """Return (B,) booleans; numbers other than 0 and 1 are refused."""
    flags = flags.reshape(-1)
    return flags if flags.dtype == torch.bool else read_flags("ShapeReward", what, flags, flags)


def refuse_dtype(dtype: torch.dtype) -> None:
    """Refuse to pay in half precision or in integers, because rounded loans and repayments do not cancel."""
    if dtype in HALVES:
        raise TypeError(
            f"the environment's reward is {dtype}, in which loans and repayments do not cancel, because they are "
            "rounded to two or three digits; cast the reward to float32 before ShapeReward (DTypeCastTransform)"
        )
    if not dtype.is_floating_point:
        raise TypeError(
            f"the environment's reward is {dtype}, which cannot hold loans and repayments, because they are fractions; "
            "cast the reward to float32 before ShapeReward (DTypeCastTransform)"
        )


def refuse_too_large_for(dtype: torch.dtype, shaped: torch.Tensor, lengths: torch.Tensor) -> None:
    """Raise where the reward's dtype cannot hold what is paid; `lengths` are the episodes' so far."""
    if shaped.device.type == "cpu" and dtype != shaped.dtype:
        large = torch.nonzero(shaped.abs() > torch.finfo(dtype).max)
        if len(large):
            k = int(large[0])
            refuse_too_large(float(shaped[k]), k, int(lengths[k]))
