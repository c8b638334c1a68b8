"""From a law broken on some stream to the smallest stream found on which it is still broken, and its description."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from payback.check.finding import Finding
from payback.check.shrink import shrink
from payback.check.stream import Stream
from payback.core.errors import LawBroken

Examine = Callable[[Stream], None]
"""Raises where a law is broken on the stream."""


def hold(
    examine: Examine,
    stream: Stream,
    gamma: float,
    dtype: str,
    guess: Callable[[], str] = str,
    cheap: Examine | None = None,
) -> None:
    """Hold shaping code to what `examine` asks on one stream; raise `LawBroken` with the smallest stream that fails.

    `guess` says what a leak looks like, "" where it looks like nothing known. Where `cheap` sees the same failure, it
    is asked of the many smaller streams instead.
    """
    found = _failure(examine, stream)
    if found is None:
        return
    origin = stream
    if isinstance(found, Finding) and found.law in ("the law", "zero sum"):
        # Where the episode, continued in another way, does not even sum to zero, that is the plainer thing to show.
        other = _failure(examine, found.stream)
        if isinstance(other, Finding) and other.law in ("zero sum", "purity"):
            stream, found = found.stream, other
    kind = _kind(found, stream)
    if cheap is not None and _kind(_failure(cheap, stream), stream) == kind:
        examine = cheap
    small = shrink(stream, lambda smaller: _kind(_failure(examine, smaller), smaller) == kind)
    found = _failure(examine, small) or found
    if not isinstance(found, Finding):
        text = f"error: the shaper raises {type(found).__name__} ({found})"
        raise LawBroken(
            "\n".join([text, *_table(small), f"  found on: {origin.name}"]), law="error", rewards=small.rewards
        ) from found
    raise tell(found, origin, gamma, dtype, guess() if found.law in ("zero sum", "the law") else "") from None


def tell(found: Finding, origin: Stream, gamma: float, dtype: str, guess: str) -> LawBroken:
    """Return the error that shows a finding: where, what was paid and owed, and the stream."""
    paid = "" if found.paid is None else f", paid {found.paid:.9g}"
    due = "" if found.owed is None else f", owed {found.owed:.9g}"
    lines = [
        f"{found.law}: {found}",
        f"  step {found.step}, environment {found.environment}{paid}{due}   (γ = {gamma:g}, {dtype})",
        *_table(found.stream),
        f"  found on: {origin.name}",
        *([f"  it looks like: {guess}"] if guess else []),
    ]
    return LawBroken(
        "\n".join(lines),
        law=found.law,
        rewards=found.stream.rewards,
        step=found.step,
        paid=found.paid,
        owed=found.owed,
    )


def _failure(examine: Examine, stream: Stream) -> Exception | None:
    if not stream.rewards.size:
        return None
    try:
        examine(stream)
    except Exception as error:
        # Whatever a user's code raises on a lawful stream is a finding, shown with that stream.
        return error
    return None


def _kind(found: Exception | None, stream: Stream) -> object:
    """Return what kind of failure it is: the law, and whether it is broken by this very stream or by a continuation."""
    if not isinstance(found, Finding):
        return type(found)
    return found.law, len(found.stream.rewards) == len(stream.rewards) or found.law != "zero sum"


def _table(stream: Stream) -> Iterator[str]:
    """Write the stream down, one line per environment, the marks of a step behind its reward."""
    T, B = stream.rewards.shape
    for b in range(min(B, 6)):
        cells: list[str] = []
        for t in itertools.islice(range(T), 40):
            marks = "■" if stream.dones[t, b] else ""
            marks += "" if stream.valid is None or stream.valid[t, b] else "✗"
            marks += "" if stream.settle is None or not stream.settle[t, b] else "!"
            cells.append(f"{stream.rewards[t, b]:.6g}{marks}")
        yield f"  rewards of environment {b}: {'  '.join(cells)}{'  …' if T > 40 else ''}"
    marks = ["■ ends the episode"]
    marks += ["✗ is an invalid row"] if not np.all(stream.live) else []
    marks += ["! is an event"] if stream.settle is not None and stream.settle.any() else []
    yield f"  ({', '.join(marks)})"
