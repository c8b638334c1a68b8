"""The warnings and errors that adapters share: `warn_*` warns, `refuse_*` raises.

A warning names the line outside payback that led to it. The caller decides how often: the adapters give each once.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import NoReturn

import numpy as np

from payback.core.errors import ShapingWarning
from payback.core.transform import Match, RewardTransform
from payback.core.validate import read_gamma

PACKAGE = str(Path(__file__).parent)


def warn(words: str) -> None:
    """Warn on behalf of the first caller outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(words, ShapingWarning, stacklevel=level - 1)


def refuse_unknown(transform: RewardTransform, on_truncation: str) -> None:
    """Refuse what is no transform, and a treatment of truncation that would break the guarantee."""
    if not isinstance(transform, RewardTransform):
        raise TypeError(f"transform must be a RewardTransform such as payback.grm(gamma, delay), got {transform!r}")
    if on_truncation not in ("settle", "carry"):
        raise ValueError(f"on_truncation must be 'settle' or 'carry', got {on_truncation!r}")
    if on_truncation == "carry" and isinstance(transform, Match) and not transform.falls_due_alone:
        raise ValueError(
            "on_truncation='carry' is refused for this match: its loans may never fall due before a truncation, and a "
            "loan that is never due is a plain bonus. Use 'settle', or match_after, match_evenly, or match_geometric "
            "with rate < gamma"
        )


def warn_no_match() -> None:
    """Warn that the bonus is never repaid."""
    warn(
        "there is no match in this transform: the bonus is never repaid and may change the optimal policy. End the "
        "chain with a match such as payback.match_after, or use payback.grm or payback.pbim"
    )


def is_confirmed(transform: RewardTransform, learner_gamma: float | None) -> bool:
    """Return whether the learner's γ is known to be the match's; refuse another one."""
    if not isinstance(transform, Match):
        return True
    if learner_gamma is not None and read_gamma(learner_gamma) != transform.gamma:
        raise ValueError(other_gamma(learner_gamma, transform.gamma))
    return learner_gamma is not None


def other_gamma(learner: float, match: float) -> str:
    """Return what is wrong with a learner that discounts with another γ than loans are repaid with."""
    return (
        f"the learner discounts with gamma {learner}, the loans are repaid with gamma {match}, so they do not cancel; "
        "give both the same"
    )


def warn_unconfirmed(transform: RewardTransform) -> None:
    """Warn that nobody compared the learner's γ with the match's."""
    gamma = transform.gamma if isinstance(transform, Match) else None
    warn(
        f"the learner's discount was never confirmed: loans are repaid with gamma {gamma} and cancel only for a "
        "learner with the same gamma. Pass learner_gamma= to confirm it; in SB3, train with CheckShaping()"
    )


def warn_time_limit() -> None:
    """Warn that settled truncations make the time limit a part of the task."""
    warn(
        "a truncated episode's debt is settled at its last step, which is therefore reported as terminated: "
        "the time limit is now part of the task. For an artificial time limit use on_truncation='carry'"
    )


def warn_dropped(dropped: np.ndarray, steps: int) -> None:
    """Warn that a debt was dropped, and say where a time limit belongs."""
    k = int(np.flatnonzero(dropped)[0])
    warn(
        f"environment {k} was reset in mid-episode, after step {steps}, and its debt of {dropped[k]:.6g} was dropped: "
        "that episode's bonus is not repaid and may change the optimal policy. If a time limit ends episodes, put it "
        "inside the shaping (Gymnasium and SB3: wrap TimeLimit first, then shape; TorchRL: StepCounter before "
        "ShapeReward, no max_frames_per_traj in the collector). A second learn() of SB3 also resets, once. `drops` "
        "counts them all; this warning is given once"
    )


def warn_loans_go_on(owed: np.ndarray) -> None:
    """Warn that loaded debts are repaid by the episodes under way."""
    k = int(np.flatnonzero(owed)[0])
    warn(
        f"the loaded state holds open loans (environment {k} owes {owed[k]:.6g}), and no reset came after it: the "
        "episode under way repays them, which is right only if the environments, too, were restored. If they began "
        "anew, call load() first and reset() after it"
    )


def warn_broken(broken: int, finished: int | None, worst: float) -> None:
    """Warn that the shaped rewards of finished episodes do not cancel."""
    count = f"{broken}" if finished is None else f"{broken} of {finished}"
    warn(
        f"{count} finished episodes did not cancel: |Σγ^t F′_t| is up to {worst:.3g} of Σγ^t |F′_t|, "
        "where 0 is right, so the bonus may change the optimal policy. The likely cause is a Match of your own that "
        "does not settle at `done`, or whose `owed` is wrong (payback.check_transform shows where), or, where it is "
        "nan, interest that the dtype cannot hold: repay sooner, with grm and a shorter delay"
    )


def refuse_too_large(shaped: float, environment: int, length: int, dtype: str) -> NoReturn:
    """Raise on a payment that the learner's dtype cannot hold."""
    raise OverflowError(
        f"environment {environment} is to be paid {shaped:.3g} at step {length} of its episode, which the learner's "
        f"{dtype} cannot hold: the interest has grown too large. Repay sooner, with grm and a shorter delay, end "
        "episodes earlier, or scale the bonus down"
    )


def changed_reward(paid: float, given: float, environment: int, culprit: str, remedy: str) -> str:
    """Return that somebody changed the reward after the shaping paid it."""
    return (
        f"the shaping paid {paid:.6g} to environment {environment}, but the learner is given {given:.6g}, because "
        f"{culprit} changes rewards: loans and repayments no longer cancel; {remedy}"
    )
