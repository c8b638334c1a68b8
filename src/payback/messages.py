"""The warnings and errors that adapters share: `warn_*` warns, `refuse_*` raises.

A warning names the line outside payback that led to it. Callers decide how often to warn; the adapters warn once.
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


def refuse_unknown(transform: RewardTransform, on_truncation: str | None) -> None:
    """Refuse anything but a transform, and a treatment of truncation that would break the guarantee."""
    if not isinstance(transform, RewardTransform):
        raise TypeError(f"transform must be a RewardTransform such as payback.grm(gamma, delay), got {transform!r}")
    if on_truncation not in (None, "settle", "carry"):
        raise ValueError(f"on_truncation must be 'settle' or 'carry', got {on_truncation!r}")
    if on_truncation == "carry" and isinstance(transform, Match) and not transform.falls_due_alone:
        raise ValueError(
            "on_truncation='carry' is refused for this match: a bonus that is not due within a bounded time may never "
            "be repaid. Use 'settle', or match_after, match_evenly, or match_geometric with rate < gamma"
        )


def warn_of_transform(transform: RewardTransform) -> None:
    """Warn of a bonus that is never repaid, or that is repaid at once."""
    if not isinstance(transform, Match):
        warn(
            "there is no match in this transform, so the bonus is never repaid and may change the optimal policy. "
            "End the chain with a match such as payback.match_after, or use payback.grm or payback.pbim"
        )
    elif any(getattr(part, "delay", None) == 0 for part in getattr(transform, "_parts", (transform,))):
        warn("delay=0 repays each bonus at the step that pays it, so the learner gets none of it; use at least 1")


def warn_unseen_debt(transform: RewardTransform, on_truncation: str | None, remedy: str) -> None:
    """Warn that a debt is carried by a value function that does not see it."""
    if on_truncation == "carry" and isinstance(transform, Match):
        warn(
            "on_truncation='carry' is not exact here, because the value function that takes over the debt at a time "
            f"limit doesn't see it: histories with different debts look the same. {remedy}"
        )


def is_confirmed(transform: RewardTransform, learner_gamma: float | None) -> bool:
    """Return whether the learner's γ is known to equal the match's; raise if it differs."""
    if not isinstance(transform, Match):
        return True
    if learner_gamma is not None and read_gamma(learner_gamma) != transform.gamma:
        raise ValueError(other_gamma(learner_gamma, transform.gamma))
    return learner_gamma is not None


def other_gamma(learner: float, match: float) -> str:
    """Describe a learner whose discount differs from the match's."""
    return (
        f"the learner discounts with gamma {learner}, the loans are repaid with gamma {match}, so they do not cancel; "
        "pass the same gamma to both"
    )


def warn_unconfirmed(transform: RewardTransform) -> None:
    """Warn that nobody compared the learner's γ with the match's."""
    gamma = transform.gamma if isinstance(transform, Match) else None
    warn(
        f"the learner's discount was never confirmed: loans are repaid with gamma {gamma} and cancel only for a "
        "learner with the same gamma. Pass learner_gamma= to confirm it; in SB3, train with CheckShaping()"
    )


def warn_blind_replay() -> None:
    """Warn that a learner with a replay buffer does not see the debt."""
    warn(
        "this learner replays rewards and does not see the debt: its Q-function averages over the debts of different "
        "histories, so its greedy policy may differ from the one without a bonus. A Q-function that sees the debt "
        "(observe_debt=True) learns that policy"
    )


def warn_time_limit() -> None:
    """Warn that settling truncated episodes makes the time limit part of the task."""
    warn(
        "a truncated episode settles its debt at the last step, which is reported as terminated, so the time limit is "
        "now part of the task. Pass on_truncation='settle' to accept that, or 'carry' if the time limit is artificial"
    )


def warn_dropped(dropped: np.ndarray, steps: int) -> None:
    """Warn of a debt that a reset dropped, and say where a time limit belongs."""
    k = int(np.flatnonzero(dropped)[0])
    warn(
        f"environment {k} was reset in mid-episode, after step {steps}, and its debt of {dropped[k]:.6g} was dropped, "
        "so that episode's bonus is not repaid (`drops` counts such resets; a second learn() of SB3 also resets). "
        "If a time limit ends episodes, put it inside the shaping: wrap TimeLimit first, then shape; in TorchRL, "
        "StepCounter before ShapeReward, and no max_frames_per_traj in the collector"
    )


def warn_loans_go_on(owed: np.ndarray) -> None:
    """Warn that the current episodes repay loaded debts."""
    k = int(np.flatnonzero(owed)[0])
    warn(
        f"the loaded state has debts (environment {k} owes {owed[k]:.6g}), which the current episodes repay because no "
        "reset followed. Unless you restored the environments too, call load() first and reset() after it"
    )


def warn_broken(broken: int, finished: int | None, worst: float) -> None:
    """Warn that the shaped rewards of finished episodes do not cancel."""
    count = f"{broken}" if finished is None else f"{broken} of {finished}"
    warn(
        f"the shaped rewards of {count} finished episodes did not cancel (|Σγ^t F′_t| is up to {worst:.3g} of "
        "Σγ^t |F′_t|, which should be 0), so the bonus may change the optimal policy. Run payback.check_transform on a "
        "match of your own; if the figure is nan, the interest overflows: use grm with a shorter delay"
    )


def refuse_too_large(shaped: float, environment: int, length: int, dtype: str) -> NoReturn:
    """Raise on a shaped reward that the learner's dtype cannot hold."""
    raise OverflowError(
        f"the shaped reward of environment {environment} is {shaped:.3g} at step {length} of its episode, which the "
        f"learner's {dtype} cannot hold, because the interest has grown too large. Repay sooner, with grm and a "
        "shorter delay, end episodes earlier, or scale the bonus down"
    )


def changed_reward(paid: float, given: float, environment: int, culprit: str, remedy: str) -> str:
    """Describe a reward that was changed between the shaping and the learner."""
    return (
        f"the shaping paid {paid:.6g} to environment {environment}, but the learner is given {given:.6g}, because "
        f"{culprit} changes rewards: loans and repayments no longer cancel; {remedy}"
    )
