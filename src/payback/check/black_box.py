"""Shaping code as a black box: a function from one episode's rewards to what is paid instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from payback.check.counterexample import hold
from payback.check.finding import Finding, refuse_where
from payback.check.laws import TINY, check_zero_sum, worth
from payback.check.long_streams import long_streams
from payback.check.plan import Plan
from payback.check.rounding import FLOAT16, FLOAT32, FLOAT64, Precision, first_drift, keeps_float32
from payback.check.short_streams import large_last_streams, random_streams, small_streams, wide_range_streams
from payback.check.stream import Stream, episodes_of, one_episode, written
from payback.check.subject import as_numpy
from payback.check.tried import Tried, with_stream

Shape = Callable[[Any], Any]

FULL = 200
"""Episodes up to this many steps are continued in other ways from many places; longer ones from two, or none."""
LAST = 1.0
"""A function may subtract the last reward from a sum that holds it, as in (drawer): that rounding is forgiven."""


@dataclass(frozen=True)
class BlackBox:
    """The function under test, the discount, and what rounding is forgiven."""

    shape: Shape
    gamma: float
    precision: Precision = field(default=FLOAT64)

    @property
    def epsilon(self) -> float:
        """The relative error that is forgiven."""
        return self.precision.epsilon

    def pay(self, stream: Stream) -> np.ndarray:
        """Return what is paid (T, 1) for a stream of one finished episode."""
        given = stream.rewards[:, 0].copy()
        paid = as_numpy(self.shape(given))
        if paid.shape != given.shape:
            raise Finding("shape", f"it returns shape {paid.shape} for {len(given)} rewards", stream, 0)
        if not np.array_equal(given, stream.rewards[:, 0]):
            raise Finding("purity", "it changes the rewards it was given", stream, 0)
        return paid[:, None]


def check_function(shape: Shape, gamma: float, plan: Plan, seed: int) -> Tried:
    """Hold a function of one episode's rewards to zero sum, causality and the law; return what was tried."""
    precision, tried = _precision(shape), Tried()
    box, narrow = BlackBox(shape, gamma, precision), precision != FLOAT64
    for law, episodes in ((_examine, _episodes(plan, seed, narrow)), (_examine_sum, _every_length(seed))):
        for episode in filter(_within_float16, episodes) if precision == FLOAT16 else episodes:
            # What is shrunk may have lost its end: an episode always has one.
            hold(lambda stream, ask=law: ask(box, one_episode(stream.rewards[:, 0])), episode, gamma, "float64")
            tried = with_stream(tried, episode, "float64")
    return tried


def _precision(shape: Shape) -> Precision:
    """Return what rounding is forgiven: that of float16 where it answers in float16, of float32 where it keeps that."""
    try:
        answer = shape(np.array([0.5, 0.25, 1.0]))
    except Exception:
        # What is wrong with it is found, and shown, on the episodes.
        return FLOAT64
    if str(getattr(answer, "dtype", "")).rpartition(".")[2] == "float16":
        return FLOAT16
    return FLOAT32 if keeps_float32(lambda rewards: as_numpy(shape(rewards))) else FLOAT64


def _within_float16(stream: Stream) -> bool:
    """Whether float16 holds the rewards and what is repaid of them without losing most digits."""
    sizes = np.abs(stream.rewards[stream.rewards != 0])
    return len(stream.rewards) < 15 and len(sizes) > 0 and sizes.min() > 1e-2 and sizes.max() < 10


def _every_length(seed: int) -> Iterator[Stream]:
    rng = np.random.default_rng([seed, 6])
    yield from (one_episode(rng.standard_normal(N), f"one episode of {N} steps") for N in range(1, 131))


def _episodes(plan: Plan, seed: int, narrow: bool) -> Iterator[Stream]:
    wide = () if narrow else wide_range_streams(seed)
    for stream in (*small_streams(seed), *large_last_streams(seed), *random_streams(seed, plan.random), *wide):
        yield from _cut(stream)
    yield one_episode(np.ones(70), "70 ones")
    yield one_episode(np.cos(np.arange(150.0)), "a wave of 150 steps")
    for stream in long_streams(seed):
        if len(stream.rewards) >= plan.longest_episode:
            yield one_episode(stream.rewards[: plan.longest_episode, 0], f"the start of: {stream.name}")
            return
        yield from (episode for episode in _cut(stream) if len(episode.rewards) >= 100)


def _cut(stream: Stream) -> Iterator[Stream]:
    """Yield each episode of a stream's first environment."""
    first = stream.columns(slice(0, 1))
    cut = episodes_of(first)
    for start, end in zip(cut.starts, cut.ends, strict=True):
        yield one_episode(first.rewards[cut.step[start : end + 1], 0], stream.name)


def _examine(box: BlackBox, stream: Stream) -> None:
    N = len(stream.rewards)
    may_overflow = box.precision.may_overflow(box.gamma, N + 10, stream.size)
    try:
        paid = box.pay(stream)
        if not np.isfinite(paid).all():
            if may_overflow:
                return
            refuse_where(~np.isfinite(paid), "finite", "what is paid is not a finite number", stream, paid, None)
        check_zero_sum(box.gamma, box.epsilon, stream, paid, LAST)
        for t in _places(N):
            _go_on_from(box, stream, t)
        again = box.pay(stream)
        what = "asked again for the same rewards it pays something else: it remembers earlier episodes"
        refuse_where(again != paid, "purity", what, stream, again, paid)
        _compare_precisions(box, stream, paid)
    except OverflowError:
        if not may_overflow:
            raise


def _examine_sum(box: BlackBox, stream: Stream) -> None:
    """Ask of one more length only that the episode sums to zero."""
    check_zero_sum(box.gamma, box.epsilon, stream, box.pay(stream), LAST)


def _go_on_from(box: BlackBox, stream: Stream, t: int) -> None:
    """Hold an episode to causality and the law: continue it in other ways after t steps."""
    rewards = stream.rewards[:, 0]
    ways = [one_episode(way) for way in (rewards[t:], *_continuations(rewards, t)) if len(way)]
    whole = [one_episode(np.concatenate((rewards[:t], way.rewards[:, 0])), stream.name) for way in ways]
    found = [box.pay(episode) for episode in whole]
    for episode, paid in zip(whole, found, strict=True):
        if np.isfinite(paid).all():
            check_zero_sum(box.gamma, box.epsilon, episode, paid, LAST)
    first, size = worth(box.gamma, ways[0], found[0][t:], LAST)
    for way, paid in zip(ways[1:], found[1:], strict=True):
        _causality(box, stream, t, (ways[0], found[0]), (way, paid))
        tail, other_size = worth(box.gamma, way, paid[t:], LAST)
        if not abs(tail[0] - first[0]) <= box.epsilon * (size[0] + other_size[0] + 10 * stream.size) + TINY:
            what = (
                f"after {t} steps the rest of the episode is worth {first[0]:.6g} if it goes on as "
                f"{written(ways[0].rewards[:, 0])}, {tail[0]:.6g} if as {written(way.rewards[:, 0])}"
            )
            raise Finding("the law", what, stream, min(t, len(rewards) - 1), 0, tail[0], first[0])


def _causality(
    box: BlackBox, stream: Stream, t: int, one: tuple[Stream, np.ndarray], other: tuple[Stream, np.ndarray]
) -> None:
    """F'_0 … F'_{t−1} are the same whatever comes after, and however long it takes."""
    (way, paid), (other_way, other_paid) = one, other
    sizes = (paid[:t], other_paid[:t], stream.rewards, other_way.rewards)
    scale = max(np.abs(x).max(initial=0) for x in sizes)
    bad = np.flatnonzero(~(np.abs(paid[:t, 0] - other_paid[:t, 0]) <= box.epsilon * scale))
    if bad.size:
        k = int(bad[0])
        ways = [written(x.rewards[:, 0]) for x in (way, other_way)]
        what = (
            f"step {k} is paid {paid[k, 0]:.6g} if the episode goes on as {ways[0]} after {t} steps, "
            f"{other_paid[k, 0]:.6g} if as {ways[1]}: it depends on later rewards or on when the episode ends"
        )
        raise Finding("causality", what, stream, k, 0, other_paid[k, 0], paid[k, 0])


def _compare_precisions(box: BlackBox, stream: Stream, paid: np.ndarray) -> None:
    """Hold float32 to staying near float64, in episodes long enough for rounding to grow."""
    if len(paid) < 60 or FLOAT32.may_overflow(box.gamma, len(paid), stream.size):
        return
    narrow = as_numpy(box.shape(stream.rewards[:, 0].astype(np.float32)))[:, None]
    drift = first_drift(paid, narrow, stream.size)
    if drift is not None:
        t, _ = drift
        what = f"float32 pays {narrow[t, 0]:.6g} where float64 pays {paid[t, 0]:.6g}: rounding errors grow step by step"
        raise Finding("precision", what, stream, t, 0, narrow[t, 0], paid[t, 0])


def _places(N: int) -> list[int]:
    """The steps after which the episode is continued in other ways."""
    if N <= 8:
        return list(range(1, N + 1))
    return sorted(
        {1, 2, 3, N // 3, N // 2, N - 2, N - 1, N} if N <= FULL else {N // 2, N - 1} if N <= 4 * FULL else set()
    )


def _continuations(rewards: np.ndarray, t: int) -> list[np.ndarray]:
    size = float(np.abs(rewards).max(initial=0)) or 1.0
    if len(rewards) > FULL:
        return [np.zeros(1), -size * np.cos(2.3 * np.arange(9.0))]
    waves = [np.cos(2.3 * np.arange(n) + n) + 0.25 for n in (1, 2, max(1, len(rewards) - t), 9)]
    return [np.zeros(1), size * waves[0], -3 * size * waves[1], size * waves[2], -size * waves[3]]
