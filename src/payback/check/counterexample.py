"""From a violation on some stream to the smallest stream that shows it, and the `InvarianceError` that users get."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from payback.auditing.audit import audit
from payback.auditing.hypotheses import Cause
from payback.check.stream import Finding, Stream
from payback.check.subject import Subject, step_through
from payback.core.errors import InvarianceError

TRIES = 500
ROWS = 15_000
"""Shrinking stops after `TRIES` smaller streams, or once these have had `ROWS` rows together."""
LENGTHS = (6, 4, 9, 5, 7, 12, 3, 8, 6, 10)
"""The episodes from which the likely cause is guessed."""

StreamCheck = Callable[[Stream], object]
"""Raises if the shaping violates a property on the stream."""


@dataclass(frozen=True)
class Trial:
    """A check of shaping code on streams."""

    check: StreamCheck
    gamma: float
    dtype: str
    cheap: StreamCheck | None = None
    """A faster check; where it finds the same violation, it is used for shrinking."""
    subject: Subject | None = None
    """The transform, whose likely fault is guessed; None for a function."""

    def run(self, stream: Stream) -> None:
        """Check one stream; raise `InvarianceError` with the smallest stream found that fails."""
        found = _failure(self.check, stream)
        if found is None:
            return
        origin, check = stream, self.check
        if isinstance(found, Finding) and found.violated in ("policy invariance", "zero sum"):
            # If the continued episode does not even sum to zero, that is easier to understand.
            other = _failure(check, found.stream)
            if isinstance(other, Finding) and other.violated in ("zero sum", "purity"):
                stream, found = found.stream, other
        kind = _kind(found, stream)
        if self.cheap is not None and _kind(_failure(self.cheap, stream), stream) == kind:
            check = self.cheap
        small = shrink(stream, lambda smaller: _kind(_failure(check, smaller), smaller) == kind, found)
        found = _failure(check, small) or found
        if isinstance(found, Finding):
            raise self._error(found, origin) from None
        lines = [f"error: the shaper raises {type(found).__name__} ({found})", *_table(small)]
        text = "\n".join([*lines, f"  found on: {origin.name}"])
        raise InvarianceError(text, violated="error", rewards=small.rewards) from found

    def _error(self, found: Finding, origin: Stream) -> InvarianceError:
        paid = "" if found.paid is None else f", paid {found.paid:.9g}"
        due = "" if found.owed is None else f", owed {found.owed:.9g}"
        may_leak = self.subject is not None and found.violated in ("zero sum", "policy invariance")
        guess = guess_cause(self.subject) if self.subject is not None and may_leak else ""
        lines = [
            f"{found.violated}: {found}",
            f"  step {found.step}, environment {found.environment}{paid}{due}   (γ = {self.gamma:g}, {self.dtype})",
            *_table(found.stream),
            f"  found on: {origin.name}",
            *([f"  it looks like: {guess}"] if guess else []),
        ]
        return InvarianceError(
            "\n".join(lines),
            violated=found.violated,
            rewards=found.stream.rewards,
            step=found.step,
            paid=found.paid,
            owed=found.owed,
        )


def _failure(check: StreamCheck, stream: Stream) -> Exception | None:
    if not stream.rewards.size:
        return None
    try:
        check(stream)
    except Exception as error:
        # Whatever a user's code raises on a valid stream is a finding, shown with that stream.
        return error
    return None


def _kind(found: Exception | None, stream: Stream) -> object:
    """Return the violated property, and whether this very stream violates it or a continuation of it."""
    if not isinstance(found, Finding):
        return type(found)
    return found.violated, len(found.stream.rewards) == len(stream.rewards) or found.violated != "zero sum"


def _table(stream: Stream) -> Iterator[str]:
    """Format the stream, one line per environment, with the marks of a step behind its reward."""
    T, B = stream.rewards.shape
    for b in range(min(B, 6)):
        cells: list[str] = []
        for t in range(min(T, 40)):
            marks = "■" if stream.dones[t, b] else ""
            marks += "" if stream.valid is None or stream.valid[t, b] else "✗"
            marks += "" if stream.settle is None or not stream.settle[t, b] else "!"
            cells.append(f"{stream.rewards[t, b]:.6g}{marks}")
        yield f"  rewards of environment {b}: {'  '.join(cells)}{'  …' if T > 40 else ''}"
    marks = ["■ ends the episode"]
    marks += ["✗ is an invalid row"] if not np.all(stream.live) else []
    marks += ["! is an event"] if stream.settle is not None and stream.settle.any() else []
    yield f"  ({', '.join(marks)})"


# ------------------------------------------------------------------ shrinking


def shrink(stream: Stream, fails: Callable[[Stream], bool], found: Exception | None = None) -> Stream:
    """Return the smallest stream found for which `fails` is still true, given the failure of the whole stream."""
    if isinstance(found, Finding) and len(found.stream.rewards) == len(stream.rewards):
        # Most failures need neither the other environments nor the steps after it.
        alone, until = slice(found.environment, found.environment + 1), slice(0, found.step + 1)
        for smaller in (stream.columns(alone).rows(until), stream.columns(alone), stream.rows(until)):
            if smaller.rewards.size < stream.rewards.size and fails(smaller):
                stream = smaller
                break
    tries, rows = TRIES, ROWS
    improved = True
    while improved:
        improved = False
        for smaller in _smaller(stream):
            tries, rows = tries - 1, rows - len(smaller.rewards)
            if tries < 0 or rows < 0:
                return stream
            if fails(smaller):
                stream, improved = smaller, True
                break
    return stream


def _smaller(stream: Stream) -> Iterator[Stream]:
    """Yield streams that are simpler than this one, the largest steps first."""
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
    """Yield the rows or columns that are left without each half, each quarter, …, each single one."""
    size = count
    while size > 1:
        size = (size + 1) // 2
        for first in range(0, count, size):
            yield np.r_[0:first, min(first + size, count) : count]


def _cleared(stream: Stream, name: str, flags: np.ndarray, plain: bool) -> Iterator[Stream]:
    for t, b in itertools.islice(np.argwhere(flags != plain), 40):
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
    """Return how much there is to read: zeros least, then ones, then by digits."""
    flat = rewards.reshape(-1)[:4000].tolist()
    return sum(0 if x == 0 else 1 if x == 1 else 1 + len(f"{x:.9g}") for x in flat)


# ------------------------------------------------------------------ the likely cause


def guess_cause(subject: Subject) -> str:
    """Return the cause that an audit of a few plain episodes names, "" if these do not leak.

    Small rewards show most faults; large ones show clipping.
    """
    rng = np.random.default_rng(3)
    rewards = (1 + rng.random((sum(LENGTHS), 1))).astype(np.float32).astype(np.float64)
    dones = np.zeros(rewards.shape, dtype=bool)
    dones[np.cumsum(LENGTHS) - 1] = True
    guess = ""
    for size in (1.0, 1e6):
        stream = Stream("plain episodes", size * rewards, dones)
        try:
            shaped = step_through(subject, stream, keep=()).shaped
            leaks = audit(shaped, dones, subject.gamma, rewards=stream.rewards, worst=1).leaks
        except Exception:
            # An error of the shaping on this stream must not hide the fault that was detected on another.
            return guess
        for leak in leaks:
            guess = guess or f"{leak.cause.value}: {leak.detail}"
            if leak.cause is not Cause.UNKNOWN:
                return f"{leak.cause.value}: {leak.detail}"
    return guess
