"""`check_transform`: does shaping code repay every loan, on streams made to find where it does not?"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from payback.check.examined import check_episodes
from payback.check.laws import examine
from payback.check.naming import looks_like
from payback.check.precision import check_precision
from payback.check.shrink import shrink
from payback.check.streams import Stream, long_streams, random_streams, small_streams
from payback.check.trial import Trial, jitted
from payback.core.arrays import Array
from payback.core.errors import LawBroken
from payback.core.transform import Match, RewardTransform
from payback.core.validate import read_gamma

Shaper = RewardTransform | Callable[[Any], Any]


def check_transform(
    shaper: Shaper, gamma: float, *, example: Array | None = None, seconds: float = 5.0, seed: int = 0
) -> None:
    """Raise `LawBroken` unless the shaping repays every loan exactly, on streams made to find where it does not.

        Σ_t γ^t F'_t = 0 in every finished episode                               (zero sum)
        F'_t depends on nothing after t, nor on when the episode ends            (causality)
        Σ_{n≥t} γ^(n−t) F'_n = −Debt_t for every way to go on from step t        (the law)

    `shaper` is a `RewardTransform`, or a function that takes one episode's rewards (N,) and returns what is
    paid instead, (N,). The function must not remember earlier episodes.

    A transform is also held to: environments that keep the law whatever the others do, rows that are no
    transition, events, blocks that equal stepping, updates that are pure and keep no array of the caller's, and
    float32 that stays near float64. Not seen: *when* a loan is repaid (compare with `match_episode` for that), and
    what goes wrong only beyond what is tried (33,000 steps of one episode, 1,200 episodes, 140 environments).

    `example` is any array of the library, dtype and device to try it in (NumPy float64, then float32, when it
    is left out). Streams are tried, small ones first, until so many `seconds` of CPU time are spent.
    The error shows the smallest counter-example found, and holds it: `rewards`, `step`, `paid`, `owed`, `law`.

    >>> import payback
    >>> check_transform(payback.grm(0.99, delay=3), gamma=0.99)
    >>> check_transform(payback.scale(0.1), gamma=0.99)
    Traceback (most recent call last):
    payback.LawBroken: zero sum: an episode of 1 steps sums to 0.1, not 0 ...
    """
    gamma = read_gamma(gamma)
    if isinstance(shaper, RewardTransform):
        if isinstance(shaper, Match) and not np.isclose(shaper.gamma, gamma, rtol=1e-12, atol=0):
            raise LawBroken(
                f"wrong gamma: the transform repays at the interest of γ = {shaper.gamma}, the learner discounts "
                f"with {gamma}; build it with the learner's",
                law="gamma",
            )
        _check_stream_transform(shaper, gamma, example, seconds, seed)
    elif callable(shaper):
        check_episodes(shaper, gamma, seconds, seed)
    else:
        raise TypeError(
            "check_transform takes a RewardTransform or a function of one episode's rewards, "
            f"got {type(shaper).__name__}"
        )


def _check_stream_transform(
    shaper: RewardTransform, gamma: float, example: Array | None, seconds: float, seed: int
) -> None:
    start = time.process_time()
    dtypes = [example] if example is not None else [np.zeros(1), np.zeros(1, dtype=np.float32)]
    trials = [Trial(jitted(shaper, x), x, gamma) for x in dtypes]
    if len(trials) == 2:
        trials = [trial for trial in trials if _takes(trial)] or trials[:1]
    for k, (share, stream) in enumerate(_streams(seed)):
        late = time.process_time() - start > share * seconds
        if late and k > 3:
            continue
        for trial in trials[: 2 if k % 3 == 0 else 1]:
            _hold(trial, stream, examine)
        if len(trials) == 2 and len(stream.rewards) > 60:
            _hold(trials[0], stream, lambda _, stream: check_precision(trials[0], trials[1], stream))


def _takes(trial: Trial) -> bool:
    """Whether the transform works in this dtype: a long delay may refuse float32, others answer in float32 only."""
    try:
        _, shaped = trial.transform.update(trial.init(1), trial.floats(np.ones(1)), np.array([False]))
    except Exception:
        # What else is wrong will be found, and shown, on the streams.
        return trial.example.dtype == np.float64
    return str(getattr(shaped, "dtype", trial.example.dtype)) == str(trial.example.dtype)


def _streams(seed: int) -> Iterator[tuple[float, Stream]]:
    """Yield the streams in the order in which they are tried, each with the share of the time it may start in."""
    small, long = list(small_streams(seed)), list(long_streams(seed))
    yield from ((1.0, s) for s in (*small, *long[:6]))
    yield from ((0.75, s) for s in random_streams(seed, 30))
    yield from ((0.8, s) for s in long[6:])
    yield from ((0.75, s) for s in random_streams(seed + 1, 130))


def _hold(trial: Trial, stream: Stream, law: Callable[[Trial, Stream], None]) -> None:
    """Hold the transform to a law on one stream; on failure raise with the smallest stream that still fails."""
    found = _failure(trial, stream, law)
    if found is None:
        return
    if getattr(found, "law", None) == "the law":
        # Where the episode so continued does not even sum to zero, that is the plainer thing to show.
        whole = getattr(found, "stream", stream)
        other = _failure(trial, whole, law)
        if other is not None and getattr(other, "law", None) in ("zero sum", "purity"):
            stream, found = replace(whole, name=stream.name), other
    kind = getattr(found, "law", type(found))

    def fails_alike(smaller: Stream) -> bool:
        other = _failure(trial, smaller, law)
        return other is not None and getattr(other, "law", type(other)) == kind

    found = _failure(trial, shrink(stream, fails_alike), law) or found
    raise LawBroken(
        _describe(trial, stream, found),
        law=getattr(found, "law", "error"),
        rewards=getattr(found, "rewards", stream.rewards),
        step=getattr(found, "step", None),
        paid=getattr(found, "paid", None),
        owed=getattr(found, "owed", None),
    ) from (None if isinstance(found, LawBroken) else found)


def _failure(trial: Trial, stream: Stream, law: Callable[[Trial, Stream], None]) -> Exception | None:
    if not stream.rewards.size:
        return None
    try:
        law(trial, stream)
    except Exception as error:
        # Whatever a user's code raises on a lawful stream is a finding, shown with that stream.
        return error
    return None


def _describe(trial: Trial, origin: Stream, found: Exception) -> str:
    if not isinstance(found, LawBroken):
        return f"error: the transform raises {type(found).__name__} ({found}), on {origin.name}"
    stream, b = getattr(found, "stream", None), getattr(found, "environment", None)
    head = f"{found.law}: {found}"
    if stream is None:
        return head
    paid = "" if found.paid is None else f", paid {found.paid:.9g}"
    due = "" if found.owed is None else f", owed {found.owed:.9g}"
    lines = [head, f"  environment {b}, step {found.step}{paid}{due}   (γ = {trial.gamma}, {trial.example.dtype})"]
    guess = _guess(trial) if found.law in ("zero sum", "the law") else ""
    return "\n".join(
        [*lines, *_table(stream), f"  found on: {origin.name}", *([f"  it looks like: {guess}"] if guess else [])]
    )


def _guess(trial: Trial) -> str:
    try:
        return looks_like(trial)
    except Exception:
        # A guess is a courtesy: what the shaping does on yet another stream must not hide what was found.
        return ""


def _table(stream: Stream) -> Iterator[str]:
    """Write the stream down, one line per environment, the marks of a step behind its reward."""
    T, B = stream.rewards.shape
    for b in range(min(B, 6)):
        cells = []
        for t in itertools.islice(range(T), 40):
            marks = "■" if stream.dones[t, b] else ""
            marks += "" if stream.valid is None or stream.valid[t, b] else "✗"
            marks += "" if stream.settle is None or not stream.settle[t, b] else "!"
            cells.append(f"{stream.rewards[t, b]:.6g}{marks}")
        yield f"  rewards of environment {b}: {'  '.join(cells)}{'  …' if T > 40 else ''}"
    yield "  (■ ends the episode, ✗ is no transition, ! is an event)"
