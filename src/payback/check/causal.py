"""Whether an intrinsic reward looks ahead: change the later half of a rollout and watch the earlier one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from payback.check.subject import as_numpy
from payback.core.errors import LawBroken

Rollout = Any
"""An array whose first axis is time, or a dict, tuple or list of such arrays."""


def check_causal(
    fn: Callable[[Any], Any], rollout: Rollout, *, cuts: Iterable[int] | None = None, tolerance: float = 1e-6
) -> None:
    """Raise `LawBroken` if the rewards of a rollout's first half move when only its second half is changed.

        F_t is constant w.r.t. a_{t'} for all t' > t                                   (not_empowerment)

    `fn(rollout)` returns the rewards, time first; `rollout` is an array (T, …), or a dict, tuple or list of
    such arrays. The later rows are changed in several ways (reversed, repeated, and numbers also made larger),
    at the half and at the other `cuts`. The error says where the first half moved most, and by how much:
    `step`, `paid` (after the change) and `owed` (before).

    Batch normalisation over a rollout, nearest neighbours within it and empowerment look ahead. `fn` has to
    start from the same state at every call: a network or a running mean that it trains on the way is reset first.

    >>> import numpy as np
    >>> check_causal(lambda x: np.abs(x), np.arange(8.0))
    >>> check_causal(lambda x: x / x.std(), np.arange(8.0))
    Traceback (most recent call last):
    payback.LawBroken: causality: the reward of step 3 depends on what comes after step 3: ...
    """
    leaves = _leaves(rollout)
    lengths = {len(leaf) for leaf in leaves}
    if len(lengths) != 1 or min(lengths) < 2:
        raise ValueError(
            f"the rollout's arrays must share one first axis, time, of at least 2 steps; got lengths {sorted(lengths)}"
        )
    T = lengths.pop()
    before = _rewards(fn, rollout, T)
    if not np.array_equal(before, _rewards(fn, rollout, T), equal_nan=True):
        raise ValueError(
            "fn gives other rewards for the same rollout when it is called again; "
            "fix its seed and reset what it learns at each call"
        )
    for cut in sorted({T // 2, *(T // 4 or 1, T - 1, 1)} if cuts is None else set(cuts), key=lambda c: c != T // 2):
        if not 1 <= cut < T:
            raise ValueError(f"a cut lies between 1 and {T - 1} for a rollout of {T} steps, got {cut}")
        for change in (_reversed, _repeated, _enlarged):
            after = _rewards(fn, _changed(rollout, cut, change), T)
            _compare(before, after, cut, change.__name__.strip("_"), tolerance)


def _compare(before: np.ndarray, after: np.ndarray, cut: int, change: str, tolerance: float) -> None:
    moved = np.abs(after[:cut] - before[:cut])
    moved[np.isnan(moved) & ~(np.isnan(before[:cut]) & np.isnan(after[:cut]))] = np.inf
    scale = np.abs(before).max(initial=0)
    if not np.nanmax(moved, initial=0) > tolerance * (scale if np.isfinite(scale) and scale else 1):
        return
    most: tuple[int, ...] = tuple(int(i) for i in np.unravel_index(int(np.nanargmax(moved)), moved.shape))
    step, *rest = most
    place = f"step {step}" + (f", environment {', '.join(map(str, rest))}" if rest else "")
    count = int((moved > tolerance * scale).reshape(cut, -1).any(axis=1).sum())
    raise LawBroken(
        f"causality: the reward of {place} depends on what comes after step {cut - 1}: it was {before[most]:.6g} and "
        f"is {after[most]:.6g} when only the steps from {cut} on are {change}; {count} of the first {cut} steps moved, "
        "this one most; standardise with statistics of earlier rollouts only",
        law="causality",
        rewards=before,
        step=step,
        paid=float(after[most]),
        owed=float(before[most]),
    )


def _rewards(fn: Callable[[Any], Any], rollout: Rollout, T: int) -> np.ndarray:
    rewards = as_numpy(fn(rollout))
    if rewards.ndim == 0 or len(rewards) != T:
        raise ValueError(f"fn returned rewards of shape {rewards.shape} for a rollout of {T} steps; time comes first")
    return rewards


def _leaves(rollout: Rollout) -> list[Any]:
    if isinstance(rollout, dict):
        return [leaf for item in rollout.values() for leaf in _leaves(item)]
    if isinstance(rollout, (tuple, list)):
        return [leaf for item in rollout for leaf in _leaves(item)]
    if not hasattr(rollout, "shape"):
        raise TypeError(f"a rollout holds arrays with time first, got {type(rollout).__name__}")
    return [rollout]


def _changed(rollout: Rollout, cut: int, change: Callable[[np.ndarray], np.ndarray]) -> Rollout:
    """Return a copy whose rows from `cut` on are changed, in the same containers and array library."""
    if isinstance(rollout, dict):
        return {key: _changed(item, cut, change) for key, item in rollout.items()}
    if isinstance(rollout, (tuple, list)):
        items = [_changed(item, cut, change) for item in rollout]
        return type(rollout)(*items) if hasattr(rollout, "_fields") else type(rollout)(items)
    values = np.array(rollout.detach().cpu().numpy() if hasattr(rollout, "detach") else rollout)
    values[cut:] = change(values[cut:])
    if isinstance(rollout, np.ndarray):
        return values
    from payback.core.arrays import namespace

    device = getattr(rollout, "device", None)
    return namespace(rollout).asarray(values, dtype=rollout.dtype, device=device)


def _reversed(later: np.ndarray) -> np.ndarray:
    return later[::-1].copy()


def _repeated(later: np.ndarray) -> np.ndarray:
    """Repeat the first row: whole numbers and flags stay among those that occur."""
    return np.broadcast_to(later[:1], later.shape).copy()


def _enlarged(later: np.ndarray) -> np.ndarray:
    return later * 3 + 1 if later.dtype.kind == "f" else later[np.arange(len(later)) // 2].copy()
