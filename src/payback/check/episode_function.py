"""Shaping code as a black box: a function from one episode's rewards to its shaped rewards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from payback.check import plan as streams
from payback.check.counterexample import Trial
from payback.check.plan import Plan
from payback.check.properties import TINY, check_drift, check_finite, check_zero_sum, worth
from payback.check.report import CheckReport
from payback.check.stream import Finding, Stream, episodes_of, one_episode, refuse_where, written
from payback.check.subject import FLOAT16, FLOAT32, FLOAT64, Precision, Tested, as_numpy, keeps_float32

Shape = Callable[[Any], Any]

FULL = 200  # episodes up to this many steps are continued in other ways from many places; longer ones from two, or none
LAST = 1.0  # a function may subtract the last reward from a sum that holds it, as in (drawer): that rounding is allowed


@dataclass(frozen=True)
class EpisodeFunction(Tested):
    """The function under test."""

    shape: Shape

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
    function = EpisodeFunction(gamma, _precision(shape), shape)
    report = CheckReport(("zero sum", "causality", "policy invariance", "purity", "precision"))
    rng = np.random.default_rng([plan.seed, 6])
    every_length = (one_episode(rng.standard_normal(N), f"one episode of {N} steps") for N in range(1, 131))
    episodes = _episodes(plan, function.precision != FLOAT64)
    for check, tried in ((_check_episode, episodes), (_check_sum, every_length)):
        # What is shrunk may have lost its end: an episode always has one.
        trial = Trial(lambda stream, ask=check: ask(function, one_episode(stream.rewards[:, 0])), function)
        for episode in filter(_within_float16, tried) if function.precision == FLOAT16 else tried:
            trial.run(episode)
            report = report.with_stream(episode, "numpy", "float64")
    plain = one_episode(np.cos(np.arange(9.0)))
    return replace(report, pays_nothing=not function.pay(plain).any())


def _precision(shape: Shape) -> Precision:
    """Return the rounding of float16 or of float32 if the function answers in it, or keeps its loans in it."""
    try:
        answer = shape(np.array([0.5, 0.25, 1.0]))
    except Exception:  # the episodes will show what is wrong with it
        return FLOAT64
    if str(getattr(answer, "dtype", "")).rpartition(".")[2] == "float16":
        return FLOAT16
    return FLOAT32 if keeps_float32(lambda rewards: as_numpy(shape(rewards))) else FLOAT64


def _within_float16(stream: Stream) -> bool:
    """Whether float16 holds the rewards and their repayments without losing most digits."""
    sizes = np.abs(stream.rewards[stream.rewards != 0])
    return len(stream.rewards) < 15 and len(sizes) > 0 and sizes.min() > 1e-2 and sizes.max() < 10


def _episodes(plan: Plan, narrow: bool) -> Iterator[Stream]:
    """Yield the episodes that the streams' first environments have."""
    seed = plan.seed
    few = (*streams.small_streams(seed), *streams.large_last_streams(seed), *streams.random_streams(seed, plan.random))
    for stream in few if narrow else (*few, *streams.wide_range_streams(seed)):
        yield from _cut(stream)
    yield one_episode(np.ones(70), "70 ones")
    yield one_episode(np.cos(np.arange(150.0)), "a wave of 150 steps")
    for stream in streams.long_streams(seed):
        if len(stream.rewards) >= plan.longest_episode:
            yield one_episode(stream.rewards[: plan.longest_episode, 0], f"the start of: {stream.name}")
            return
        yield from (episode for episode in _cut(stream) if len(episode.rewards) >= 100)


def _cut(stream: Stream) -> Iterator[Stream]:
    """Yield each episode of a stream's first environment."""
    first = stream[:, :1]
    index = episodes_of(first)
    for start, end in zip(index.starts, index.ends, strict=True):
        yield one_episode(first.rewards[index.step[start : end + 1], 0], stream.name)


def _check_episode(function: EpisodeFunction, stream: Stream) -> None:
    paid, N = function.pay(stream), len(stream.rewards)
    check_finite(function, stream, paid)
    check_zero_sum(function, stream, paid, LAST)
    few = {N // 2, N - 1} if N <= 4 * FULL else set[int]()
    some = {1, 2, 3, N // 3, N // 2, N - 2, N - 1, N} if N <= FULL else few
    for t in range(1, N + 1) if N <= 8 else sorted(some):
        _check_continuations(function, stream, t)
    again = function.pay(stream)
    what = "it returns something else when it is called again: it remembers earlier episodes"
    refuse_where(again != paid, "purity", what, stream, again, paid)
    if N >= 60 and not function.may_overflow(stream, FLOAT32):
        # Episodes of this length give rounding the time to grow.
        check_drift(paid, as_numpy(function.shape(stream.rewards[:, 0].astype(np.float32)))[:, None], stream)


def _check_sum(function: EpisodeFunction, stream: Stream) -> None:
    check_zero_sum(function, stream, function.pay(stream), LAST)


def _check_continuations(function: EpisodeFunction, stream: Stream, t: int) -> None:
    """Continue an episode in other ways after t steps: F'_0 … F'_{t−1} must not change, nor the rest's worth."""
    rewards = stream.rewards[:, 0]
    ways = [one_episode(way) for way in (rewards[t:], *_continuations(rewards, t)) if len(way)]
    whole = [one_episode(np.concatenate((rewards[:t], way.rewards[:, 0])), stream.name) for way in ways]
    found = [function.pay(episode) for episode in whole]
    for episode, paid in zip(whole, found, strict=True):
        if np.isfinite(paid).all():
            check_zero_sum(function, episode, paid, LAST)
    first, size = worth(function.gamma, ways[0], found[0][t:], LAST)
    for way, paid in zip(ways[1:], found[1:], strict=True):
        after = [written(x.rewards[:, 0]) for x in (ways[0], way)]
        one, other = found[0][:t, 0], paid[:t, 0]
        scale = max(np.abs(x).max(initial=0) for x in (one, other, rewards, np.array(way.size)))
        for k in np.flatnonzero(~(np.abs(one - other) <= function.epsilon * scale))[:1]:
            what = (
                f"step {k} is paid {one[k]:.6g} if the episode goes on as {after[0]} after {t} steps, "
                f"{other[k]:.6g} if as {after[1]}: it depends on later rewards or on when the episode ends"
            )
            raise Finding("causality", what, stream, k, 0, other[k], one[k])
        tail, other_size = worth(function.gamma, way, paid[t:], LAST)
        if not abs(tail[0] - first[0]) <= function.epsilon * (size[0] + other_size[0] + 10 * stream.size) + TINY:
            what = (
                f"after {t} steps the rest of the episode is worth {first[0]:.6g} if it goes on as {after[0]}, "
                f"{tail[0]:.6g} if as {after[1]}"
            )
            raise Finding("policy invariance", what, stream, min(t, len(rewards) - 1), 0, tail[0], first[0])


def _continuations(rewards: np.ndarray, t: int) -> list[np.ndarray]:
    size = float(np.abs(rewards).max(initial=0)) or 1.0
    if len(rewards) > FULL:
        return [np.zeros(1), -size * np.cos(2.3 * np.arange(9.0))]
    waves = [np.cos(2.3 * np.arange(n) + n) + 0.25 for n in (1, 2, max(1, len(rewards) - t), 9)]
    return [np.zeros(1), *(size * height * wave for height, wave in zip((1, -3, 1, -1), waves, strict=True))]
