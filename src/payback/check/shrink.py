"""Making a counter-example small: fewer environments, fewer steps, plainer rewards, still broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from payback.check.stream import Stream

TRIES = 500
ROWS = 15_000
"""Shrinking stops after `TRIES` smaller streams, or once these have had `ROWS` rows together."""


def shrink(stream: Stream, fails: Callable[[Stream], bool]) -> Stream:
    """Return the smallest stream found for which `fails` is still true."""
    tries, rows = TRIES, ROWS
    found = True
    while found:
        found = False
        for smaller in _smaller(stream):
            tries, rows = tries - 1, rows - len(smaller.rewards)
            if tries < 0 or rows < 0:
                return stream
            if fails(smaller):
                stream, found = smaller, True
                break
    return stream


def _smaller(stream: Stream) -> Iterator[Stream]:
    """Yield streams that are simpler than this one, the greatest steps first."""
    T, B = stream.rewards.shape
    for keep in _without_parts(B):
        yield stream.columns(keep)
    for keep in _without_parts(T):
        yield stream.rows(keep)
    for name in ("valid", "settle"):
        flags = getattr(stream, name)
        if flags is not None:
            yield replace(stream, **{name: None})
            yield from _cleared(stream, name, flags, plain=name == "valid")
    yield from _cleared(stream, "dones", stream.dones, plain=False)
    yield from _plainer(stream)


def _without_parts(count: int) -> Iterator[np.ndarray]:
    """Yield what is left of so many rows or columns without each half, then each quarter, …, each single one."""
    size = count
    while size > 1:
        size = (size + 1) // 2
        for first in range(0, count, size):
            yield np.r_[0:first, min(first + size, count) : count]


def _cleared(stream: Stream, name: str, flags: np.ndarray, plain: bool) -> Iterator[Stream]:
    """Yield the stream with single flags set to what is ordinary."""
    for t, b in np.argwhere(flags != plain)[:40]:
        changed = flags.copy()
        changed[t, b] = plain
        yield replace(stream, **{name: changed})


def _plainer(stream: Stream) -> Iterator[Stream]:
    """Yield the stream with plainer rewards: all ones, all rounded, single zeros, single ones, single roundings."""
    rewards = stream.rewards
    for plainer in (np.ones_like(rewards), np.sign(rewards), np.round(rewards), np.round(rewards, 2)):
        # Only towards plainer numbers, or two forms would take turns for ever.
        if _length(plainer) < _length(rewards):
            yield replace(stream, rewards=plainer)
    if rewards.size > 60:
        return
    for t, b in np.argwhere(rewards != 0):
        for value in (0.0, 1.0, float(np.round(rewards[t, b])), float(np.round(rewards[t, b], 1))):
            plainer = rewards.copy()
            plainer[t, b] = value
            if _length(plainer) < _length(rewards):
                yield replace(stream, rewards=plainer)


def _length(rewards: np.ndarray) -> int:
    """How much there is to read: zeros least, then ones, then by digits."""
    flat = rewards.reshape(-1)[:4000].tolist()
    return sum(0 if x == 0 else 1 if x == 1 else 1 + len(f"{x:.9g}") for x in flat)
