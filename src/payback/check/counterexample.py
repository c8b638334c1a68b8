"""From a violation on some stream to the smallest stream that shows it, and the `InvarianceError` that users get."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from payback.auditing.audit import audit
from payback.auditing.hypotheses import Cause
from payback.check.stream import Finding, Stream
from payback.check.subject import Subject, Tested, step_through
from payback.core.errors import InvarianceError

TRIES = 500
ROWS = 15_000  # shrinking stops after `TRIES` smaller streams, or once these have had `ROWS` rows together
LENGTHS = (6, 4, 9, 5, 7, 12, 3, 8, 6, 10)  # the episodes from which the likely cause is guessed
LEAKS = ("zero sum", "policy invariance")  # the violations that an audit can explain

StreamCheck = Callable[[Stream], Any]  # raises if the shaping violates a property on the stream


@dataclass(frozen=True)
class Trial:
    """A check of shaping code on streams. Where a `cheap` one finds the same violation, it is used for shrinking."""

    check: StreamCheck
    tested: Tested
    cheap: StreamCheck | None = None

    def run(self, stream: Stream) -> Any:
        """Return what the check of a stream returns; raise `InvarianceError` with the smallest stream that fails."""
        found = self._try(self.check, stream)
        if not isinstance(found, Exception):
            return found
        origin, check = stream, self.check
        if isinstance(found, Finding) and found.violated in LEAKS:
            # If the continued episode does not even sum to zero, that is easier to understand.
            other = self._try(check, found.stream)
            if isinstance(other, Finding) and other.violated in ("zero sum", "purity"):
                stream, found = found.stream, other
        kind = _kind(found, stream)
        if self.cheap is not None and _kind(self._try(self.cheap, stream), stream) == kind:
            check = self.cheap
        small = shrink(stream, lambda smaller: _kind(self._try(check, smaller), smaller) == kind, found)
        again = self._try(check, small)
        found = again if isinstance(again, Exception) else found
        raise self._error(found, small, origin) from (None if isinstance(found, Finding) else found)

    def _try(self, check: StreamCheck, stream: Stream) -> Any:
        """Return what the check returns or raises; None where an overflow is right."""
        try:
            return check(stream) if stream.rewards.size else None
        except OverflowError as error:
            return None if self.tested.may_overflow(stream) else error
        except Exception as error:  # whatever a user's code raises on a valid stream is shown with that stream
            return error

    def _error(self, found: Exception, small: Stream, origin: Stream) -> InvarianceError:
        if not isinstance(found, Finding):
            text = f"error: the shaper raises {type(found).__name__} ({found})"
            lines = [text, *_table(small), f"  found on: {origin.name}"]
            return InvarianceError("\n".join(lines), violated="error", rewards=small.rewards)
        paid = "" if found.paid is None else f", paid {found.paid:.9g}"
        due = "" if found.owed is None else f", owed {found.owed:.9g}"
        dtype = self.tested.dtype if isinstance(self.tested, Subject) else "float64"
        lines = [
            f"{found.violated}: {found}",
            f"  step {found.step}, environment {found.environment}{paid}{due}   (γ = {self.tested.gamma:g}, {dtype})",
            *_table(found.stream),
            f"  found on: {origin.name}",
        ]
        if isinstance(self.tested, Subject) and found.violated in LEAKS and (guess := guess_cause(self.tested)):
            lines.append(f"  it looks like: {guess}")
        text, rewards, violated = "\n".join(lines), found.stream.rewards, found.violated
        where = {"paid": found.paid, "owed": found.owed}
        return InvarianceError(text, violated=violated, rewards=rewards, step=found.step, **where)


def _kind(found: object, stream: Stream) -> object:
    """Return the violated property, and whether this very stream violates it or a continuation of it."""
    if not isinstance(found, Finding):
        return type(found)
    return found.violated, len(found.stream.rewards) == len(stream.rewards) or found.violated != "zero sum"


def _table(stream: Stream) -> Iterator[str]:
    """Format the stream, one line per environment, with the marks of a step behind its reward."""
    T, B = stream.rewards.shape
    marks = {"■ ends the episode": stream.dones, "✗ is an invalid row": ~stream.live, "! is an event": stream.events}
    for b in range(min(B, 6)):
        cells = [
            f"{stream.rewards[t, b]:.6g}" + "".join(key[0] for key, where in marks.items() if where[t, b])
            for t in range(min(T, 40))
        ]
        yield f"  rewards of environment {b}: {'  '.join(cells)}{'  …' if T > 40 else ''}"
    yield f"  ({', '.join(key for key, where in marks.items() if key[0] == '■' or where.any())})"


def shrink(stream: Stream, fails: Callable[[Stream], bool], found: Exception | None = None) -> Stream:
    """Return the smallest stream found for which `fails` is still true, given the failure of the whole stream."""
    if isinstance(found, Finding) and len(found.stream.rewards) == len(stream.rewards):
        # Most failures need neither the other environments nor the steps after it.
        alone = stream[:, [found.environment]]
        for smaller in (alone[: found.step + 1], alone, stream[: found.step + 1]):
            if smaller.rewards.size < stream.rewards.size and fails(smaller):
                stream = smaller
                break
    tries, rows, simpler = TRIES, ROWS, _smaller(stream)
    while tries > 0 and rows > 0 and (smaller := next(simpler, None)) is not None:
        tries, rows = tries - 1, rows - len(smaller.rewards)
        if fails(smaller):
            stream, simpler = smaller, _smaller(smaller)
    return stream


def _smaller(stream: Stream) -> Iterator[Stream]:
    """Yield streams that are simpler than this one, the largest steps first."""
    T, B = stream.rewards.shape
    yield from (stream[:, keep] for keep in _without_parts(B))
    yield from (stream[keep] for keep in _without_parts(T))
    for name in ("valid", "settle", "dones"):
        flags, plain = getattr(stream, name), name == "valid"
        if flags is None:
            continue
        if name != "dones":
            yield replace(stream, **{name: None})
        for t, b in np.argwhere(flags != plain)[:40]:
            changed = flags.copy()
            changed[t, b] = plain
            yield replace(stream, **{name: changed})
    # Only towards plainer numbers, or two forms would take turns for ever.
    length = _length(stream.rewards)
    yield from (replace(stream, rewards=x) for x in _plainer(stream.rewards) if _length(x) < length)


def _without_parts(count: int) -> Iterator[np.ndarray]:
    """Yield the rows or columns that are left without each half, each quarter, …, each single one."""
    size = count
    while size > 1:
        size = (size + 1) // 2
        for first in range(0, count, size):
            yield np.r_[0:first, min(first + size, count) : count]


def _plainer(rewards: np.ndarray) -> Iterator[np.ndarray]:
    """Yield other rewards: all ones, all rounded, single zeros, single ones, single roundings."""
    yield from (np.ones_like(rewards), np.sign(rewards), np.round(rewards), np.round(rewards, 2))
    for t, b in np.argwhere(rewards != 0) if rewards.size <= 60 else ():
        for value in (0.0, 1.0, np.round(rewards[t, b]), np.round(rewards[t, b], 1)):
            plainer = rewards.copy()
            plainer[t, b] = value
            yield plainer


def _length(rewards: np.ndarray) -> int:
    """Return how much there is to read: zeros least, then ones, then by digits."""
    flat = rewards.reshape(-1)[:4000].tolist()
    return sum(0 if x == 0 else 1 if x == 1 else 1 + len(f"{x:.9g}") for x in flat)


def guess_cause(subject: Subject) -> str:
    """Return the cause that an audit of a few plain episodes names, "" if these do not leak."""
    rng = np.random.default_rng(3)
    rewards = (1 + rng.random((sum(LENGTHS), 1))).astype(np.float32).astype(np.float64)
    dones = np.isin(np.arange(len(rewards)), np.cumsum(LENGTHS) - 1)[:, None]
    guess = ""
    for size in (1.0, 1e6):  # large rewards show clipping
        stream = Stream("plain episodes", size * rewards, dones)
        try:
            shaped = step_through(subject, stream).shaped
            leaks = audit(shaped, dones, subject.gamma, rewards=stream.rewards, worst=1).leaks
        except Exception:  # must not hide the fault that was detected on another stream
            return guess
        for leak in leaks:
            text = f"{leak.cause.value}: {leak.detail}"
            if leak.cause is not Cause.UNKNOWN:
                return text
            guess = guess or text
    return guess
