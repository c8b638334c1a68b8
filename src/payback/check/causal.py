"""`check_causal`: does an intrinsic reward depend on the future of its rollout?"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from payback.check.subject import as_numpy
from payback.core.arrays import is_a, namespace, to_numpy
from payback.core.errors import InvarianceError

Rollout = Any  # an array whose first axis is time, or a dict, tuple or list of such arrays


def check_causal(
    fn: Callable[[Any], Any], rollout: Rollout, *, cuts: Iterable[int] | None = None, tolerance: float = 1e-6
) -> None:
    """Raise `InvarianceError` if an intrinsic reward depends on later steps of its rollout.

        F_t is constant w.r.t. a_{t'} for all t' > t                                   (not_empowerment)

    `fn(rollout)` returns the rewards, time first; `rollout` is an array (T, …), or a dict, tuple or list of such
    arrays. At each of the `cuts` (default: the middle, a few others, and the rows around the first ends) the later
    rows are changed and the earlier rewards must stay the same. The later rows are reversed, repeated or replaced by
    other values (larger numbers, flipped flags); flipping only the flags of the row at the cut detects a bonus that
    knows whether the next step ends the episode. The error names the earlier reward that changed most: `step`, `paid`
    (after the change) and `owed` (before).

    An array of any dtype that holds only 0 and 1 counts as flags. Not detected: a dependence on later rows that none
    of these changes touches, such as the sum of flags that were reversed, at a place that is no cut.

    Batch normalisation over a rollout, nearest neighbours within it and empowerment depend on the future. `fn` must
    start from the same state at every call: reset a network or a running mean that it trains.

    >>> import numpy as np
    >>> check_causal(lambda x: np.abs(x), np.arange(8.0))
    >>> check_causal(lambda x: x / x.std(), np.arange(8.0))
    Traceback (most recent call last):
    payback.InvarianceError: causality: the reward of step 3 depends on what comes after step 3: ...
    """
    leaves = _leaves(rollout)
    lengths = {len(leaf) for leaf in leaves}
    if len(lengths) != 1 or min(lengths) < 2:
        raise ValueError(f"a rollout's arrays share one first axis, time, of at least 2 steps; got {sorted(lengths)}")
    T = lengths.pop()
    before = _rewards(fn, rollout, T)
    if not np.array_equal(before, _rewards(fn, rollout, T), equal_nan=True):
        what = "fn returns other rewards when it is called again with the same rollout"
        raise ValueError(f"{what}; fix its seed, and reset its networks and running means at each call")
    for cut in sorted(_places(leaves, T) if cuts is None else set(cuts), key=lambda cut: cut != T // 2):
        if not 1 <= cut < T:
            raise ValueError(f"a cut lies between 1 and {T - 1} for a rollout of {T} steps, got {cut}")
        for name, change in CHANGES.items():
            after = _rewards(fn, _changed(rollout, cut, change), T)
            _compare(before, after, cut, name, tolerance)


def _places(leaves: list[Any], T: int) -> set[int]:
    """Return the default cuts: the half, other places, and the rows around the first flags that are set."""
    places = {T // 2, T // 4, 3 * T // 4, T - 1, 1}
    for values in filter(_is_flags, map(to_numpy, leaves)):
        for t in np.flatnonzero(values.reshape(T, -1).any(axis=1))[:3].tolist():
            places |= {t, t + 1}
    return {t for t in places if 1 <= t < T}


def _compare(before: np.ndarray, after: np.ndarray, cut: int, change: str, tolerance: float) -> None:
    moved = np.abs(after[:cut] - before[:cut])
    moved[np.isnan(moved) & ~(np.isnan(before[:cut]) & np.isnan(after[:cut]))] = np.inf
    scale = np.abs(before).max(initial=0)
    if not np.nanmax(moved, initial=0) > tolerance * (scale if np.isfinite(scale) and scale else 1):
        return
    most: tuple[int, ...] = tuple(int(i) for i in np.unravel_index(int(np.nanargmax(moved)), moved.shape))
    paid, owed, (step, *rest) = float(after[most]), float(before[most]), most
    place = f"step {step}" + (f", environment {', '.join(map(str, rest))}" if rest else "")
    count = int((moved > tolerance * scale).reshape(cut, -1).any(axis=1).sum())
    text = (
        f"causality: the reward of {place} depends on what comes after step {cut - 1}: it was {owed:.6g} and "
        f"becomes {paid:.6g} when only steps from {cut} on are changed ({change}); {count} of the first {cut} "
        "steps change, this one most; standardise with statistics of earlier rollouts only"
    )
    raise InvarianceError(text, violated="causality", rewards=before, step=step, paid=paid, owed=owed)


def _rewards(fn: Callable[[Any], Any], rollout: Rollout, T: int) -> np.ndarray:
    rewards = as_numpy(fn(rollout))
    if rewards.ndim == 0 or len(rewards) != T:
        raise ValueError(f"fn returned rewards of shape {rewards.shape} for a rollout of {T} steps; time comes first")
    return rewards


def _leaves(rollout: Rollout) -> list[Any]:
    if is_a(rollout, dict, tuple, list):
        return [leaf for item in (rollout.values() if is_a(rollout, dict) else rollout) for leaf in _leaves(item)]
    if not hasattr(rollout, "shape"):
        raise TypeError(f"a rollout holds arrays with time first, got {type(rollout).__name__}")
    return [rollout]


def _changed(rollout: Rollout, cut: int, change: Change) -> Rollout:
    """Return a copy whose rows from `cut` on are changed, in the same containers and array library."""
    if is_a(rollout, dict):
        return {key: _changed(item, cut, change) for key, item in rollout.items()}
    if is_a(rollout, tuple, list):
        items = [_changed(item, cut, change) for item in rollout]
        return type(rollout)(*items) if hasattr(rollout, "_fields") else type(rollout)(items)
    values = np.array(to_numpy(rollout))
    values[cut:] = change(values[cut:].copy(), values)
    if isinstance(rollout, np.ndarray):
        return values
    device = getattr(rollout, "device", None)
    return namespace(rollout).asarray(values, dtype=rollout.dtype, device=device)


def _is_flags(values: np.ndarray) -> bool:
    return values.dtype == np.bool_ or bool(np.isin(values, (0, 1)).all())


Change = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (later rows, all rows) → other later rows


def _replaced(later: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Flip flags, enlarge floats, and replace each integer by the next one that occurs."""
    if _is_flags(whole):
        return (1 - later.astype(np.int8)).astype(later.dtype)
    if later.dtype.kind == "f":
        return later * 3 + 1
    if later.dtype.kind not in "iu":
        return later[::-1]
    occur = np.unique(whole)
    return occur[(np.searchsorted(occur, later) + 1) % len(occur)]


CHANGES: dict[str, Change] = {
    "reversed": lambda later, whole: later[::-1],
    # Keeps integers and flags among the values that occur.
    "the first repeated": lambda later, whole: np.broadcast_to(later[:1], later.shape),
    "other values": _replaced,
    "flags of the first flipped": lambda later, whole: (
        np.concatenate((_replaced(later[:1], whole), later[1:])) if _is_flags(whole) else later
    ),
}
