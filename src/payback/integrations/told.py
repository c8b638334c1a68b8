"""What adapters tell a user who breaks the law by the way things are wired: warnings, each given once, and refusals."""

from __future__ import annotations

import warnings
from typing import NoReturn

import numpy as np

from payback.core.transform import Match, RewardTransform
from payback.core.validate import read_gamma
from payback.integrations.shaping_warning import ShapingWarning


def refuse_unknown(transform: RewardTransform, on_truncation: str) -> None:
    """Refuse what is no transform, and a treatment of truncation that would break the guarantee."""
    if not isinstance(transform, RewardTransform):
        raise TypeError(f"transform must be a RewardTransform such as payback.grm(gamma, delay), got {transform!r}")
    if on_truncation not in ("settle", "carry"):
        raise ValueError(f"on_truncation must be 'settle' or 'carry', got {on_truncation!r}")
    if not isinstance(transform, Match):
        warnings.warn(
            "there is no match in this transform: the bonus is never repaid and may change the optimal policy; "
            "end the chain with a match such as payback.match_after, or use payback.grm or payback.pbim",
            ShapingWarning,
            stacklevel=4,
        )
    elif on_truncation == "carry" and not transform.falls_due_alone:
        raise ValueError(
            "on_truncation='carry' is refused for this match: its loans need not fall due before a truncation, and a "
            "loan that is never due is a plain bonus; use 'settle', or match_after, match_evenly, or match_geometric "
            "with rate < gamma"
        )


def confirm_gamma(transform: RewardTransform, learner_gamma: float | None) -> bool:
    """Say whether the learner's γ is known to be the one that loans are repaid with; refuse another one."""
    if not isinstance(transform, Match):
        return True
    if learner_gamma is not None and read_gamma(learner_gamma) != transform.gamma:
        raise ValueError(other_gamma(learner_gamma, transform.gamma))
    return learner_gamma is not None


def other_gamma(learner: float, loans: float) -> str:
    """Say that the learner discounts with another γ than loans are repaid with."""
    return (
        f"the learner discounts with gamma {learner}, the loans are repaid with gamma {loans}: they would not cancel; "
        "give both the same"
    )


def refuse_too_large(shaped: float, environment: int, length: int) -> NoReturn:
    """Raise on a settlement that float32, in which the host pays, cannot hold."""
    raise OverflowError(
        f"environment {environment} is to be paid {shaped:.3g} at step {length} of its episode, which the learner's "
        "float32 cannot hold: the interest has grown too large; repay sooner, with grm and a shorter delay, end "
        "episodes earlier, or scale the bonus down"
    )


def say_unconfirmed(transform: RewardTransform, stacklevel: int) -> None:
    """Say that nobody compared the learner's γ with the transform's; adapters do so once, at the first end."""
    gamma = transform.gamma if isinstance(transform, Match) else None
    warnings.warn(
        f"the learner's discount was never confirmed: loans are repaid with gamma {gamma} and cancel only for a "
        f"learner with the same; say so with learner_gamma=… (in SB3, or train with the callback CheckShaping())",
        ShapingWarning,
        stacklevel=stacklevel,
    )


def say_dropped(dropped: np.ndarray, steps: int, stacklevel: int) -> None:
    """Say that a debt was dropped, and where a time limit belongs; adapters do so once."""
    k = int(np.flatnonzero(dropped)[0])
    warnings.warn(
        f"environment {k} was reset in mid-episode, after step {steps}, and its debt of {dropped[k]:.6g} was dropped: "
        "that episode's bonus is not repaid and may change the optimal policy. If a time limit ends episodes, put it "
        "inside the shaping (Gymnasium and SB3: wrap TimeLimit first, then shape; TorchRL: StepCounter before "
        "ShapeReward, no max_frames_per_traj in the collector), so that the shaping sees the end. A second learn() "
        "of SB3 resets too, once. `drops` goes on counting; this warning is given once",
        ShapingWarning,
        stacklevel=stacklevel,
    )


def say_loans_go_on(owed: np.ndarray, stacklevel: int) -> None:
    """Say that loaded debts are repaid by the episodes under way; the ledger does so at the first step after it."""
    k = int(np.flatnonzero(owed)[0])
    warnings.warn(
        f"the loaded state holds open loans (environment {k} owes {owed[k]:.6g}), and no reset came after it: they are "
        "repaid in the episode under way, which is right only if the environments, too, were put back to where they "
        "stood when the state was saved. If they began anew, call load() first and reset() after it",
        ShapingWarning,
        stacklevel=stacklevel,
    )


def say_time_limit(stacklevel: int) -> None:
    """Say that the time limit is now part of the task; adapters do so once."""
    warnings.warn(
        "a truncated episode's debt is settled at its last step, which is therefore reported as terminated: "
        "the time limit is now part of the task. For an artificial time limit use on_truncation='carry'",
        ShapingWarning,
        stacklevel=stacklevel,
    )
