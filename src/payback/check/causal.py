"""Whether an intrinsic reward looks ahead: change the later half of a rollout and watch the earlier one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from payback.check.subject import as_numpy
from payback.core.arrays import is_dict, is_list, is_tuple, namespace
from payback.core.errors import LawBroken

Rollout = Any
"""An array whose first axis is time, or a dict, tuple or list of such arrays."""


def check_causal(
    fn: Callable[[Any], Any], rollout: Rollout, *, cuts: Iterable[int] | None = None, tolerance: float = 1e-6
) -> None:
    """Raise `LawBroken` if the rewards of a rollout's first half move when only its second half is changed.

        F_t is constant w.r.t. a_{t'} for all t' > t                                   (not_empowerment)

    `fn(rollout)` returns the rewards, time first; `rollout` is an array (T, …), or a dict, tuple or list of
    such arrays. The later rows are changed in several ways: reversed, repeated, replaced by other values (numbers
    made larger, flags flipped), and the flags of the row at the cut alone flipped, so that a bonus that knows
    whether the next step ends the episode is seen. That is done at the half and at the other `cuts` (left out: some
    places over the rollout, and the rows around the first ends). The error says where the first half moved most, and
    by how much: `step`, `paid` (after the change) and `owed` (before).

    An array that holds nothing but 0 and 1, of any dtype, is taken for flags. Not seen: what depends on later rows in
    ways that none of these changes touches, such as the sum of flags that were reversed, at a place that is no cut.

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
    for cut in _places(leaves, T) if cuts is None else sorted(set(cuts), key=lambda c: c != T // 2):
        if not 1 <= cut < T:
            raise ValueError(f"a cut lies between 1 and {T - 1} for a rollout of {T} steps, got {cut}")
        for name, change in CHANGES.items():
            after = _rewards(fn, _changed(rollout, cut, change), T)
            _compare(before, after, cut, name, tolerance)


def _places(leaves: list[Any], T: int) -> list[int]:
    """Return where a rollout is cut: the half first, some places over it, and around the first flags that are set."""
    places = {T // 2, T // 4, 3 * T // 4, T - 1, 1}
    for leaf in leaves:
        values = _to_numpy(leaf)
        if _is_flags(values):
            for t in np.flatnonzero(values.reshape(T, -1).any(axis=1))[:3].tolist():
                places |= {t, t + 1}
    return sorted((t for t in places if 1 <= t < T), key=lambda t: t != T // 2)


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
        f"is {after[most]:.6g} when only steps from {cut} on are changed ({change}); {count} of the first {cut} steps "
        "moved, this one most; standardise with statistics of earlier rollouts only",
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
    if is_dict(rollout):
        return [leaf for item in rollout.values() for leaf in _leaves(item)]
    if is_tuple(rollout) or is_list(rollout):
        return [leaf for item in rollout for leaf in _leaves(item)]
    if not hasattr(rollout, "shape"):
        raise TypeError(f"a rollout holds arrays with time first, got {type(rollout).__name__}")
    return [rollout]


def _changed(rollout: Rollout, cut: int, change: Change) -> Rollout:
    """Return a copy whose rows from `cut` on are changed, in the same containers and array library."""
    if is_dict(rollout):
        return {key: _changed(item, cut, change) for key, item in rollout.items()}
    if is_tuple(rollout) or is_list(rollout):
        items = [_changed(item, cut, change) for item in rollout]
        return type(rollout)(*items) if hasattr(rollout, "_fields") else type(rollout)(items)
    values = _to_numpy(rollout)
    values[cut:] = change(values[cut:].copy(), values)
    if isinstance(rollout, np.ndarray):
        return values
    device = getattr(rollout, "device", None)
    return namespace(rollout).asarray(values, dtype=rollout.dtype, device=device)


def _to_numpy(leaf: Any) -> np.ndarray:
    return np.array(leaf.detach().cpu().numpy() if hasattr(leaf, "detach") else leaf)


def _is_flags(values: np.ndarray) -> bool:
    return values.dtype == np.bool_ or bool(np.isin(values, (0, 1)).all())


Change = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Of the later rows, and of all rows as they were: other later rows."""


def _replaced(later: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Flip flags, make numbers larger, and take for each integer the next one that occurs."""
    if _is_flags(whole):
        return (1 - later.astype(np.int8)).astype(later.dtype)
    if later.dtype.kind == "f":
        return later * 3 + 1
    if later.dtype.kind not in "iu":
        return later[::-1]
    occur = np.unique(whole)
    return occur[(np.searchsorted(occur, later) + 1) % len(occur)]


def _flags_flipped(later: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Flip the flags of the first of the later rows and leave everything else."""
    if _is_flags(whole):
        later[0] = _replaced(later[0], whole)
    return later


CHANGES: dict[str, Change] = {
    "reversed": lambda later, whole: later[::-1],
    # So that whole numbers and flags stay among those that occur.
    "the first of them repeated": lambda later, whole: np.broadcast_to(later[:1], later.shape),
    "other values": _replaced,
    "flags of the first of them flipped": _flags_flipped,
}
"""What is done to the later rows."""
