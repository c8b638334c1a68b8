"""Short streams: the smallest first, each isolating one thing that shaping code gets wrong; then random ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from payback.check.reward_patterns import (
    Place,
    episodes,
    rewards_of,
    with_events,
    with_gap,
    with_invalid_rows,
    with_large_last,
)
from payback.check.stream import Stream

PLACES: tuple[Place, ...] = ("after every end", "at the start", "anywhere")


def small_streams(seed: int) -> Iterator[Stream]:
    """Yield short streams, the smallest first: plain ones, then rewards of odd sizes, invalid rows and events."""
    rng = np.random.default_rng(seed)
    for N in (1, 2, 3, 4, 5, 8):
        for kind in ("ones", "normal", "negative"):
            yield episodes(f"one episode of length {N}, {kind} rewards", rng, [[N]], kind)
    yield episodes("one-step episodes in consecutive steps", rng, [[1] * 6], "normal")
    yield episodes("the same episode twice", rng, [[3, 3]], "ones")
    yield episodes("a short episode after a long one", rng, [[12, 1, 1, 2]], "normal")
    yield episodes("no reward but the first", rng, [[9, 4]], "first")
    yield episodes("rewards that are mostly zero", rng, [[14, 9]], "sparse")
    yield episodes("two environments that end at once", rng, [[4, 5], [4, 5]], "normal")
    yield episodes("three environments that end at once, one step long", rng, [[1, 1, 6]] * 3, "normal")
    yield episodes("two environments that end in turn", rng, [[1, 6, 3], [4, 2, 4]], "normal")
    yield episodes("environments with rewards of different size", rng, [[5, 5], [7, 3]], "columns")
    for kind in ("tiny", "minute", "huge", "enormous", "mixed", "fading"):
        yield episodes(f"{kind} rewards", rng, [[6, 5], [11]], kind)
    yield episodes("a mean that drifts", rng, [[10, 12, 9], [7, 17, 7]], "drifting")
    yield episodes("rewards that grow after many small ones", rng, [[20, 8]], "late")
    yield episodes("whole numbers", rng, [[40, 17], [30, 27]], "whole")
    yield episodes("tenths", rng, [[40, 17], [30, 27]], "tenths")
    yield episodes("a small environment beside large ones", rng, [[5, 6], [4, 7], [11]], "apart")
    marked = episodes("all rows marked as valid, none as events", rng, [[4, 1, 6], [5, 6]], "normal")
    yield replace(marked, valid=np.ones_like(marked.dones), settle=np.zeros_like(marked.dones))
    for place in PLACES:
        for B in (1, 2):
            yield with_invalid_rows(episodes(f"invalid rows {place}", rng, [[4, 1, 5]] * B, "normal"), rng, place)
    nobody = episodes("steps at which nobody is valid", rng, [[5, 6], [3, 8], [11]], "normal")
    yield replace(nobody, valid=np.broadcast_to(np.arange(11)[:, None] % 4 != 2, nobody.dones.shape).copy())
    yield with_events(episodes("events", rng, [[7, 1, 5]], "normal"), rng)
    yield with_events(episodes("an event at every step", rng, [[4, 1, 3], [8]], "normal"), rng, share=1.0)
    yield with_events(episodes("events", rng, [[7, 2, 5], [3, 8, 3]], "drifting"), rng)
    both = with_events(episodes("events, and invalid rows anywhere", rng, [[9, 5]] * 2, "normal"), rng)
    yield with_invalid_rows(both, rng)


def large_last_streams(seed: int) -> Iterator[Stream]:
    """Yield streams whose last rewards are large: where they are subtracted again, they take digits of the debt."""
    rng = np.random.default_rng([seed, 7])
    last = episodes("last rewards that are a thousand times larger", rng, [[2, 4, 5], [7, 3, 1]], "normal")
    yield with_large_last(last, 1e3)
    last = episodes("last rewards that are a million times larger", rng, [[3, 5], [6, 2]], "normal")
    yield with_large_last(last, 1e6)


def gap_streams(seed: int) -> Iterator[Stream]:
    """Yield streams with many invalid rows in a row, in mid-episode and before the first step."""
    rng = np.random.default_rng([seed, 8])
    plain = episodes("50 invalid rows in a row", rng, [[9, 4], [6, 7]], "normal")
    yield with_gap(plain, rng, at=4, rows=50)
    yield with_gap(plain, rng, at=0, rows=50)


def large_float32_stream(seed: int) -> Stream:
    """Return rewards that are about as large as float32 can repay."""
    plain = episodes("rewards of about 1e+31", np.random.default_rng([seed, 9]), [[6, 1, 5], [12]], "normal")
    return replace(plain, rewards=(1e31 * plain.rewards).astype(np.float32).astype(np.float64))


def wide_range_streams(seed: int) -> Iterator[Stream]:
    """Yield streams whose rewards only float64 holds."""
    rng = np.random.default_rng([seed, 3])
    # In steps of 10⁸, because a bound that is crossed by far leaves nothing that is large beside the rewards.
    for size in (1e-100, 1e-60, 1e-30, *10.0 ** np.arange(20, 101, 8)):
        plain = episodes(f"rewards of about {size:g}", rng, [[6, 1, 5], [12]], "normal")
        yield replace(plain, rewards=size * plain.rewards)


def batch_streams(seed: int, sizes: Iterable[int]) -> Iterator[Stream]:
    """Yield a few steps of each number of environments: a vector unit or a buffer may work on 8 or 64 at a time."""
    rng = np.random.default_rng([seed, 4])
    for B in sizes:
        lengths = [[3 + b % 2, 5] for b in range(B)]  # steps with ends, and steps without
        yield episodes(f"{B} environments", rng, lengths, "normal")


RANDOM_KINDS = ("normal", "ones", "sparse", "negative", "huge", "tiny", "mixed", "drifting", "late")


def random_streams(seed: int, count: int, sizes: tuple[int, ...] = (1, 1, 2, 3, 5, 9)) -> Iterator[Stream]:
    """Yield random streams: any lengths, any ends, any rewards, now and then events and invalid rows."""
    rng = np.random.default_rng([seed, 1])
    for k in range(count):
        B, T = int(rng.choice(sizes)), int(rng.integers(2, 40))
        kind = str(rng.choice(RANDOM_KINDS))
        rewards = rewards_of(rng, kind, T, B)
        dones = rng.random((T, B)) < rng.choice([0.02, 0.1, 0.4, 0.8])
        if rng.random() < 0.3:
            dones[:] = dones[:, :1]
        dones[-1] = True
        stream = Stream(f"random stream {k}, {kind} rewards", rewards, dones)
        if rng.random() < 0.25:
            stream = with_events(stream, rng)
        if rng.random() < 0.35:
            stream = with_invalid_rows(stream, rng)
        yield stream
