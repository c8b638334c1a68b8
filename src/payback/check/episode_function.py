"""Shaping code as a black box: a function from one episode's rewards to its shaped rewards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from payback.check.counterexample import Trial
from payback.check.plan import (
    Plan,
    large_last_streams,
    long_streams,
    random_streams,
    small_streams,
    wide_range_streams,
)
from payback.check.properties import TINY, check_drift, check_zero_sum, worth
from payback.check.report import CheckReport
from payback.check.stream import Finding, Stream, episodes_of, one_episode, refuse_where, written
from payback.check.subject import FLOAT16, FLOAT32, FLOAT64, Precision, as_numpy, keeps_float32

Shape = Callable[[Any], Any]

FULL = 200
"""Episodes up to this many steps are continued in other ways from many places; longer ones from two, or none."""
LAST = 1.0
"""A function may subtract the last reward from a sum that holds it, as in (drawer): that rounding is allowed."""


@dataclass(frozen=True)
class EpisodeFunction:
    """The function under test, the discount, and the rounding that is allowed."""

    shape: Shape
    gamma: float
    precision: Precision

    @property
    def epsilon(self) -> float:
        """The relative error that is allowed."""
        return self.precision.epsilon

    def pay(self, stream: Stream) -> np.ndarray:
        """Return the shaped rewards (T, 1) of one finished episode."""
        given = stream.rewards[:, 0].copy()
        paid = as_numpy(self.shape(given))
        if paid.shape != given.shape:
            raise Finding("shape", f"it returns shape {paid.shape} for {len(given)} rewards", stream, 0)
        if not np.array_equal(given, stream.rewards[:, 0]):
            raise Finding("purity", "it overwrites the rewards that it was given", stream, 0)
        return paid[:, None]


def check_function(shape: Shape, gamma: float, plan: Plan) -> CheckReport:
    """Check a function of one episode's rewards for zero sum, causality, policy invariance and purity."""
    function = EpisodeFunction(shape, gamma, _precision(shape))
    report = CheckReport(("zero sum", "causality", "policy invariance", "purity", "precision"))
    every_length = (_check_sum, _every_length(plan.seed))
    for check, episodes in ((_check_episode, _episodes(plan, function.precision != FLOAT64)), every_length):
        # What is shrunk may have lost its end: an episode always has one.
        trial = Trial(lambda stream, ask=check: ask(function, one_episode(stream.rewards[:, 0])), gamma, "float64")
        for episode in filter(_within_float16, episodes) if function.precision == FLOAT16 else episodes:
            trial.run(episode)
            report = report.with_stream(episode, "numpy", "float64")
    plain = one_episode(np.cos(np.arange(9.0)))
    return replace(report, pays_nothing=not function.pay(plain).any())


def _precision(shape: Shape) -> Precision:
    """Return the rounding of float16 or of float32 if the function answers in it, or keeps its loans in it."""
    try:
        answer = shape(np.array([0.5, 0.25, 1.0]))
    except Exception:
        # The episodes will show what is wrong with it.
        return FLOAT64
    if str(getattr(answer, "dtype", "")).rpartition(".")[2] == "float16":
        return FLOAT16
    return FLOAT32 if keeps_float32(lambda rewards: as_numpy(shape(rewards))) else FLOAT64


def _within_float16(stream: Stream) -> bool:
    """Whether float16 holds the rewards and their repayments without losing most digits."""
    sizes = np.abs(stream.rewards[stream.rewards != 0])
    return len(stream.rewards) < 15 and len(sizes) > 0 and sizes.min() > 1e-2 and sizes.max() < 10


def _every_length(seed: int) -> Iterator[Stream]:
    rng = np.random.default_rng([seed, 6])
    yield from (one_episode(rng.standard_normal(N), f"one episode of {N} steps") for N in range(1, 131))


def _episodes(plan: Plan, narrow: bool) -> Iterator[Stream]:
    seed = plan.seed
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
    index = episodes_of(first)
    for start, end in zip(index.starts, index.ends, strict=True):
        yield one_episode(first.rewards[index.step[start : end + 1], 0], stream.name)


def _check_episode(function: EpisodeFunction, stream: Stream) -> None:
    N = len(stream.rewards)
    may_overflow = function.precision.may_overflow(function.gamma, N + 10, stream.size)
    try:
        paid = function.pay(stream)
        if not np.isfinite(paid).all():
            if may_overflow:
                return
            refuse_where(~np.isfinite(paid), "finite", "a shaped reward is not a finite number", stream, paid, None)
        check_zero_sum(function.gamma, function.epsilon, stream, paid, LAST)
        for t in _places(N):
            _check_continuations(function, stream, t)
        again = function.pay(stream)
        what = "it returns something else when it is called again: it remembers earlier episodes"
        refuse_where(again != paid, "purity", what, stream, again, paid)
        if N >= 60 and not FLOAT32.may_overflow(function.gamma, N, stream.size):
            # Episodes of this length give rounding the time to grow.
            check_drift(paid, as_numpy(function.shape(stream.rewards[:, 0].astype(np.float32)))[:, None], stream)
    except OverflowError:
        if not may_overflow:
            raise


def _check_sum(function: EpisodeFunction, stream: Stream) -> None:
    check_zero_sum(function.gamma, function.epsilon, stream, function.pay(stream), LAST)


def _check_continuations(function: EpisodeFunction, stream: Stream, t: int) -> None:
    """Continue an episode in other ways after t steps, and check causality and policy invariance."""
    rewards = stream.rewards[:, 0]
    ways = [one_episode(way) for way in (rewards[t:], *_continuations(rewards, t)) if len(way)]
    whole = [one_episode(np.concatenate((rewards[:t], way.rewards[:, 0])), stream.name) for way in ways]
    found = [function.pay(episode) for episode in whole]
    for episode, paid in zip(whole, found, strict=True):
        if np.isfinite(paid).all():
            check_zero_sum(function.gamma, function.epsilon, episode, paid, LAST)
    first, size = worth(function.gamma, ways[0], found[0][t:], LAST)
    for way, paid in zip(ways[1:], found[1:], strict=True):
        _check_causality(function, stream, t, (ways[0], found[0]), (way, paid))
        tail, other_size = worth(function.gamma, way, paid[t:], LAST)
        if not abs(tail[0] - first[0]) <= function.epsilon * (size[0] + other_size[0] + 10 * stream.size) + TINY:
            what = (
                f"after {t} steps the rest of the episode is worth {first[0]:.6g} if it goes on as "
                f"{written(ways[0].rewards[:, 0])}, {tail[0]:.6g} if as {written(way.rewards[:, 0])}"
            )
            raise Finding("policy invariance", what, stream, min(t, len(rewards) - 1), 0, tail[0], first[0])


def _check_causality(
    function: EpisodeFunction,
    stream: Stream,
    t: int,
    one: tuple[Stream, np.ndarray],
    other: tuple[Stream, np.ndarray],
) -> None:
    """Check that F'_0 … F'_{t−1} are the same whatever comes after, and however long it takes."""
    (way, paid), (other_way, other_paid) = one, other
    sizes = (paid[:t], other_paid[:t], stream.rewards, other_way.rewards)
    scale = max(np.abs(x).max(initial=0) for x in sizes)
    bad = np.flatnonzero(~(np.abs(paid[:t, 0] - other_paid[:t, 0]) <= function.epsilon * scale))
    if bad.size:
        k = int(bad[0])
        ways = [written(x.rewards[:, 0]) for x in (way, other_way)]
        what = (
            f"step {k} is paid {paid[k, 0]:.6g} if the episode goes on as {ways[0]} after {t} steps, "
            f"{other_paid[k, 0]:.6g} if as {ways[1]}: it depends on later rewards or on when the episode ends"
        )
        raise Finding("causality", what, stream, k, 0, other_paid[k, 0], paid[k, 0])


def _places(N: int) -> list[int]:
    """Return the steps after which the episode is continued in other ways."""
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
