"""Shaping code as a black box: a function from one episode's rewards to what is paid instead."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from payback.check.laws import settlement
from payback.check.precision import first_drift
from payback.check.shrink import shrink
from payback.check.streams import Stream, long_streams, random_streams, small_streams
from payback.check.trial import as_numpy
from payback.core.errors import LawBroken

Shape = Callable[[Any], Any]


class Box(NamedTuple):
    """The function on trial, the discount, and the relative error that is forgiven."""

    shape: Shape
    gamma: float
    epsilon: float


def check_episodes(shape: Shape, gamma: float, seconds: float, seed: int) -> None:
    """Hold a function of one episode's rewards to zero sum, causality and the law."""
    # Asked in float64, some answer in float32: they are held to what that can hold.
    narrow = str(getattr(shape(np.ones(2)), "dtype", "float64")).endswith(("float32", "float16"))
    box = Box(shape, gamma, 1e-5 if narrow else 1e-9)
    start = time.process_time()
    longest, took = 1, 0.0
    for k, rewards in enumerate(_episodes(seed)):
        left = seconds - (time.process_time() - start)
        # A function may well be quadratic in N: what would not fit is left out, the first few never are.
        if k > 20 and (left < 0 or took * (len(rewards) / longest) ** 2 > left):
            continue
        began = time.process_time()
        _hold(box, rewards)
        if len(rewards) >= longest:
            longest, took = len(rewards), time.process_time() - began


def _episodes(seed: int) -> Iterator[np.ndarray]:
    for stream in small_streams(seed):
        yield from _cut(stream)
    for stream in random_streams(seed, 40):
        yield from _cut(stream)
    yield np.ones(70)
    yield np.cos(np.arange(150.0))
    yield from sorted((episode for stream in long_streams(seed) for episode in _cut(stream, least=100)), key=len)


def _cut(stream: Stream, least: int = 1) -> Iterator[np.ndarray]:
    """Yield the rewards of each episode of a stream's first environment."""
    live = stream.live[:, 0]
    rewards, ends = stream.rewards[live, 0], np.flatnonzero(stream.dones[live, 0]) + 1
    yield from (part for part in np.split(rewards, ends) if len(part) >= least)


def _hold(box: Box, rewards: np.ndarray) -> None:
    found = _failure(box, rewards)
    if found is None:
        return

    kind = getattr(found, "law", type(found))
    examine = _sum_of if kind == "zero sum" else _examine
    rewards = getattr(found, "rewards", rewards)

    def fails_alike(smaller: Stream) -> bool:
        other = _failure(box, smaller.rewards[:, 0], examine) if smaller.rewards.size else None
        return other is not None and getattr(other, "law", type(other)) == kind

    ends = np.zeros((len(rewards), 1), dtype=bool)
    small = shrink(Stream("", rewards[:, None], ends), fails_alike).rewards[:, 0]
    found = _failure(box, small, examine) or found
    if not isinstance(found, LawBroken):
        raise LawBroken(
            f"error: the function raises {type(found).__name__} ({found}) on rewards {_row(small)}",
            law="error",
            rewards=small,
        ) from found
    raise found from None


def _failure(box: Box, rewards: np.ndarray, examine: Any = None) -> Exception | None:
    try:
        (examine or _examine)(box, rewards)
    except OverflowError as error:
        return None if _may_overflow(box.gamma, rewards) else error
    except Exception as error:
        # Whatever a user's code raises on a plain episode is a finding, shown with that episode.
        return error
    return None


def _examine(box: Box, rewards: np.ndarray) -> None:
    paid = _ask(box.shape, rewards)
    if not np.isfinite(paid).all():
        if _may_overflow(box.gamma, rewards):
            return
        raise _broken("finite", "what is paid is not a finite number", rewards, int(np.argmin(np.isfinite(paid))), paid)
    _zero_sum(box, rewards, paid)
    for t in _places(len(rewards)):
        ways = [way for way in (rewards[t:], *_continuations(rewards, t)) if len(way)]
        found = [_ask(box.shape, np.concatenate((rewards[:t], way))) for way in ways]
        for way, paid_then in zip(ways, found, strict=True):
            if np.isfinite(paid_then).all():
                _zero_sum(box, np.concatenate((rewards[:t], way)), paid_then)
        _causality(box, rewards, ways, found, t)
        _law(box, rewards, ways, found, t)
    again = _ask(box.shape, rewards)
    if not np.array_equal(again, paid):
        what = "asked again for the same rewards it pays something else: it remembers earlier episodes"
        t = int(np.flatnonzero(again != paid)[0])
        raise _broken("purity", what, rewards, t, again, float(paid[t]))
    _precision(box, rewards, paid)


def _sum_of(box: Box, rewards: np.ndarray) -> None:
    _zero_sum(box, rewards, _ask(box.shape, rewards))


def _zero_sum(box: Box, rewards: np.ndarray, paid: np.ndarray) -> None:
    weight = box.gamma ** np.arange(len(rewards))
    leak, scale = weight @ paid, weight @ (np.abs(paid) + np.abs(rewards).max(initial=0))
    if not abs(leak) <= box.epsilon * scale:
        needed = settlement(box.gamma, paid)
        what = f"an episode of {len(rewards)} steps sums to {leak:.6g}, not 0"
        raise _broken("zero sum", what, rewards, len(rewards) - 1, paid, needed)


def _causality(box: Box, rewards: np.ndarray, ways: list[np.ndarray], found: list[np.ndarray], t: int) -> None:
    """F'_0 … F'_{t−1} are the same whatever comes after, and however long it takes."""
    for way, paid in zip(ways[1:], found[1:], strict=True):
        scale = max(np.abs(x).max(initial=0) for x in (found[0][:t], paid[:t], rewards, way))
        bad = np.flatnonzero(~(np.abs(found[0][:t] - paid[:t]) <= box.epsilon * scale))
        if bad.size:
            k = int(bad[0])
            what = (
                f"step {k} is paid {found[0][k]:.6g} if the episode goes on as {_row(ways[0])} after {t} steps, "
                f"{paid[k]:.6g} if as {_row(way)}: it depends on later rewards or on when the episode ends"
            )
            raise _broken("causality", what, rewards, k, paid, float(found[0][k]))


def _law(box: Box, rewards: np.ndarray, ways: list[np.ndarray], found: list[np.ndarray], t: int) -> None:
    """Σ_{n≥t} γ^(n−t) F'_n is the same for every continuation."""
    M = np.abs(rewards).max(initial=0)
    tails = []
    for way, paid in zip(ways, found, strict=True):
        weight = box.gamma ** np.arange(len(way))
        tails.append((weight @ paid[t:], weight @ (np.abs(paid[t:]) + M + np.abs(way).max(initial=0))))
    for way, (tail, scale) in zip(ways[1:], tails[1:], strict=True):
        if not abs(tail - tails[0][0]) <= box.epsilon * (scale + tails[0][1]):
            what = (
                f"after {t} steps the rest of the episode is worth {tails[0][0]:.6g} if it goes on as {_row(ways[0])}, "
                f"{tail:.6g} if as {_row(way)}"
            )
            raise LawBroken(
                f"the law: {what}\n  rewards {_row(rewards)}",
                law="the law",
                rewards=rewards,
                step=t,
                paid=float(tail),
                owed=float(tails[0][0]),
            )


def _precision(box: Box, rewards: np.ndarray, paid: np.ndarray) -> None:
    if len(rewards) < 60 or -np.log(box.gamma) * len(rewards) + np.log(np.abs(rewards).max() + 1e-30) > 69:
        return
    narrow = as_numpy(box.shape(rewards.astype(np.float32)))
    drift = first_drift(paid[:, None], narrow[:, None], float(np.abs(rewards).max()))
    if drift is not None:
        t = drift[0]
        what = f"float32 pays {narrow[t]:.6g} where float64 pays {paid[t]:.6g}: rounding errors grow from step to step"
        raise _broken("precision", what, rewards, t, narrow, float(paid[t]))


def _ask(shape: Shape, rewards: np.ndarray) -> np.ndarray:
    given = rewards.copy()
    paid = as_numpy(shape(given))
    if paid.shape != rewards.shape:
        raise _broken("shape", f"it returns shape {paid.shape} for {len(rewards)} rewards", rewards, 0, rewards)
    if not np.array_equal(given, rewards):
        raise _broken("purity", "it changes the rewards it was given", rewards, 0, paid)
    return paid


def _places(N: int) -> list[int]:
    """The steps after which the episode is continued in other ways."""
    if N <= 8:
        return list(range(1, N + 1)) if N > 1 else [1]
    return sorted({1, 2, 3, N // 3, N // 2, N - 2, N - 1, N})


def _continuations(rewards: np.ndarray, t: int) -> list[np.ndarray]:
    size = float(np.abs(rewards).max(initial=0)) or 1.0
    waves = [np.cos(2.3 * np.arange(n) + n) + 0.25 for n in (1, 2, max(1, len(rewards) - t), 9)]
    return [np.zeros(1), size * waves[0], -3 * size * waves[1], size * waves[2], -size * waves[3]]


def _may_overflow(gamma: float, rewards: np.ndarray) -> bool:
    size = max(float(np.abs(rewards).max(initial=0)), 1e-30) * len(rewards)
    return -np.log(gamma) * (len(rewards) + 10) + np.log(size) > 700


def _broken(
    law: str, what: str, rewards: np.ndarray, step: int, paid: np.ndarray, owed: float | None = None
) -> LawBroken:
    due = "" if owed is None else f", owed {owed:.9g}"
    text = f"{law}: {what}\n  rewards {_row(rewards)}\n  step {step}, paid {paid[step]:.9g}{due}"
    return LawBroken(text, law=law, rewards=rewards, step=step, paid=float(paid[step]), owed=owed)


def _row(values: np.ndarray) -> str:
    shown = ", ".join(f"{x:.6g}" for x in values[:20])
    return f"[{shown}{', …' if len(values) > 20 else ''}]"
