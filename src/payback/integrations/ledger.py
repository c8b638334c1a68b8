"""The loans of a batch of environments: what every adapter holds between two steps of its host's loop."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from payback.core.arrays import all_finite
from payback.core.state_io import load_state, save_state
from payback.core.transform import Match, RewardTransform, drop, owed, raw_step
from payback.core.validate import read_flags, read_gamma, refuse_overflow
from payback.integrations.shaping_warning import ShapingWarning
from payback.integrations.watch import Watch

__all__ = [
    "Ledger",
    "ShapingWarning",
    "ask",
    "confirm_gamma",
    "read_end",
    "read_intrinsic",
    "refuse_too_large",
    "refuse_unknown",
    "say_dropped",
    "say_time_limit",
    "say_unconfirmed",
]

Mask = np.ndarray
"""(B,) booleans."""


class Ledger:
    """Holds a transform's state for B environments, in float64: the debt grows as γ⁻ᵏ.

    `bonus` is the intrinsic reward: if it has a method `reset(where)`, that is called with the (B,) mask of the
    environments whose episode ended, after the last transition was rewarded, and at every reset.

    >>> import payback
    >>> ledger = Ledger(payback.match_at_end(0.5), 1)
    >>> no, yes = np.array([False]), np.array([True])
    >>> ledger.step(np.array([3.0]), no, no), ledger.owed
    (array([3.]), array([6.]))
    >>> ledger.step(np.array([0.0]), yes, no), ledger.owed
    (array([-6.]), array([0.]))
    """

    def __init__(
        self,
        transform: RewardTransform,
        num_envs: int,
        on_truncation: str = "settle",
        bonus: object | None = None,
        learner_gamma: float | None = None,
    ):
        refuse_unknown(transform, on_truncation)
        self.confirmed = confirm_gamma(transform, learner_gamma)
        """Whether the learner's γ is known to be the transform's; where it is not, the first end says so."""
        self.transform = transform
        self.num_envs = num_envs
        self.settles = on_truncation == "settle"
        self.state = transform.init(np.zeros(num_envs))
        self.owed = np.zeros(num_envs)
        """What each environment owes, valued at its next step."""
        self.ending = self.owed
        """The same before a truncated episode's debt was left to the bootstrapped value."""
        self.steps = 0
        """Steps taken so far."""
        self.largest: float | None = None
        """The largest number that the learner's dtype holds, where that is not float64."""
        self._began = np.zeros(num_envs, dtype=np.int64)
        self.drops = 0
        """Episodes that were reset before they ended, with a debt."""
        self.dropped = np.zeros(num_envs)
        """What those episodes owed, summed per environment."""
        self._said = False
        self._clear_bonus: Callable[[Mask], None] | None = getattr(bonus, "reset", None)
        self._name, self._step = repr(transform), raw_step(transform)
        self._owed = transform.owed if isinstance(transform, Match) else None
        self.watch = Watch(transform.gamma, num_envs) if isinstance(transform, Match) else None
        """Counts the finished episodes whose shaped rewards do not cancel, and warns of the first."""

    def step(
        self,
        reward: np.ndarray,
        terminated: np.ndarray | None,
        truncated: np.ndarray | None,
        valid: np.ndarray | None = None,
        settle: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return F'_t for F_t = `reward`, finite float64 as `read_intrinsic` gives it; flags are booleans, all (B,).

        `terminated` and `truncated` may be None where no episode ends in that way. Input was read by the adapter, so
        the transform's raw step is taken.
        """
        self.steps += 1
        ended = _either(terminated, truncated)
        done = ended if self.settles else terminated
        if valid is not None:
            reward, done = np.where(valid, reward, 0.0), None if done is None else done & valid
            settle = None if settle is None else settle & valid
        if done is not None and not np.count_nonzero(done):
            done = None
        state, shaped = self._step(np, self.state, reward, done, valid, settle)
        refuse_overflow(np, self._name, shaped)
        if self.largest is not None:
            paid: list[float] = shaped.tolist()
            if max(paid) > self.largest or min(paid) < -self.largest:
                k = int(np.argmax(np.abs(shaped)))
                refuse_too_large(paid[k], k, self.steps - int(self._began[k]))
        self.state = state
        if self._owed is not None:
            self.owed = self.ending = self._owed(state)
        if self.watch is not None:
            self.watch.add(shaped, valid)
        if ended is not None:
            self._end(ended if valid is None else ended & valid, terminated)
        return shaped

    def _end(self, ended: Mask, terminated: Mask | None) -> None:
        """Leave the debt of carried truncations to the bootstrapped value, and let the bonus begin anew."""
        if not np.count_nonzero(ended):
            return
        self._began[ended] = self.steps
        if not self.confirmed:
            self.confirmed = True
            say_unconfirmed(self.transform, stacklevel=5)
        if not self.settles:
            carried = ended if terminated is None else ended & ~terminated
            self.forget(carried)
            if self.watch is not None:
                self.watch.end(carried, judged=False)
        if self.watch is not None:
            self.watch.end(ended, judged=True)
        if self._clear_bonus is not None:
            self._clear_bonus(ended)

    def abandon(self, ended: Mask | None) -> None:
        """Close the episodes that ended in a step which could not be rewarded, because the bonus raised.

        Their debts are dropped: a caller that goes on must not find them in the next episode.
        """
        if ended is not None:
            self.reset(ended)

    def ends(self, terminated: np.ndarray, truncated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (terminated, truncated) as the learner must see them: never settle *and* bootstrap."""
        if not self.settles or not np.count_nonzero(truncated):
            return terminated, truncated
        if not self._said:
            self._said = True
            say_time_limit(stacklevel=5)
        return terminated | truncated, np.zeros_like(truncated)

    def reset(self, where: np.ndarray | None = None) -> None:
        """Start new episodes in the environments `where`, or all; debts in mid-episode are dropped and counted."""
        where = np.ones(self.num_envs, dtype=bool) if where is None else where
        dropped = self.forget(where)
        self._began[where] = self.steps
        if self.watch is not None:
            self.watch.end(where, judged=False)
        if np.count_nonzero(dropped):
            if not self.drops:
                say_dropped(dropped, self.steps, stacklevel=4)
            self.drops += int(np.count_nonzero(dropped))
            self.dropped = self.dropped + dropped
        if self._clear_bonus is not None:
            self._clear_bonus(where)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to an NPZ file, to train on from it; see `payback.save_state`."""
        save_state(path, self.state)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Read a state that `save` wrote for the same transform and number of environments."""
        self.state = load_state(path, like=self.state)
        if self._owed is not None:
            self.owed = self.ending = self._owed(self.state)

    def forget(self, where: Mask) -> np.ndarray:
        """Drop the debts of the environments `where`, without counting them, and return them: (B,)."""
        if self._owed is None:
            return np.zeros(self.num_envs)
        self.state, dropped = drop(self.transform, self.state, where)
        self.owed = owed(self.transform, self.state)
        return dropped


def confirm_gamma(transform: RewardTransform, learner_gamma: float | None) -> bool:
    """Say whether the learner's γ is known to be the one that loans are repaid with; refuse another one."""
    if not isinstance(transform, Match):
        return True
    if learner_gamma is not None and read_gamma(learner_gamma) != transform.gamma:
        raise ValueError(
            f"the learner discounts with gamma {learner_gamma}, the loans are repaid with gamma {transform.gamma}: "
            "they would not cancel; give both the same"
        )
    return learner_gamma is not None


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


def _either(terminated: Mask | None, truncated: Mask | None) -> Mask | None:
    if terminated is None or truncated is None:
        return truncated if terminated is None else terminated
    return terminated | truncated


def read_end(what: str, flags: Any, num_envs: int) -> Mask:
    """Return (B,) booleans; numbers other than 0 and 1 are refused, because a fraction is no answer."""
    flags = np.asarray(flags)
    if flags.dtype == np.bool_ and flags.shape == (num_envs,):
        return flags
    return read_flags("the environment", what, flags, np.zeros(num_envs))


def say_dropped(dropped: np.ndarray, steps: int, stacklevel: int) -> None:
    """Say that a debt was dropped, and where a time limit belongs; adapters do so once."""
    k = int(np.flatnonzero(dropped)[0])
    warnings.warn(
        f"environment {k} was reset in mid-episode, after step {steps}, and its debt of {dropped[k]:.6g} was dropped: "
        "that episode's bonus is not repaid and may change the optimal policy. If a time limit ends episodes, put it "
        "inside the shaping (Gymnasium and SB3: wrap TimeLimit first, then shape; TorchRL: StepCounter before "
        "ShapeReward, no max_frames_per_traj in the collector), so that the shaping sees the end. A second learn() "
        "of SB3 resets too, once. `drops` goes on counting; this is said once",
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


def ask(intrinsic: Callable[..., Any], num_envs: int, step: int, *transition: Any) -> Any:
    """Call the intrinsic reward on a batch of transitions; say where it raised, if it does."""
    try:
        return intrinsic(*transition)
    except Exception as error:
        which = "environment 0" if num_envs == 1 else f"environments 0 to {num_envs - 1}"
        raise RuntimeError(
            f"the intrinsic reward raised {type(error).__name__} at step {step} ({which}): {error}"
        ) from error


def read_intrinsic(values: Any, num_envs: int, step: int, valid: np.ndarray | None = None) -> np.ndarray:
    """Return F as float64 of shape (B,), or say which environment's is wrong, and at which step."""
    F = values if type(values) is np.ndarray and values.dtype == np.float64 else _as_floats(values, num_envs, step)
    if F.shape != (num_envs,):
        raise ValueError(
            f"the intrinsic reward at step {step} has shape {F.shape}, not ({num_envs},); "
            f"return one number per environment, for environments 0 to {num_envs - 1}"
        )
    if not all_finite(F):
        bad = ~np.isfinite(F) if valid is None else ~np.isfinite(F) & valid
        if bad.any():
            k = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"the intrinsic reward of environment {k} at step {step} is {F[k]}; fix it before it is shaped"
            )
    return F


def _as_floats(values: Any, num_envs: int, step: int) -> np.ndarray:
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"the intrinsic reward at step {step} is a {type(values).__name__}, not an array of {num_envs} numbers"
        ) from None
