"""Streams of hundreds or thousands of steps: what drifts, overflows a counter or fills a buffer shows here."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from payback.check.reward_patterns import episodes, with_events, with_invalid_rows
from payback.check.stream import Stream


def long_streams(seed: int) -> Iterator[Stream]:
    """Yield long streams, the cheapest first."""
    rng = np.random.default_rng([seed, 2])
    yield episodes("a long episode, then a short one", rng, [[600, 3, 300]], "normal")
    every = [[n for n in range(1, 131) if n % 8 == b] for b in range(8)]
    yield episodes("episodes of every length up to 130", rng, every, "normal")
    late = with_events(episodes("late events and invalid rows", rng, [[1500, 20], [700, 500]], "normal"), rng, 0.02)
    yield with_invalid_rows(late, rng, "rarely")
    yield episodes("five environments with one time limit", rng, [[100, 200, 50, 101]] * 5, "normal")
    yield episodes("a long episode of ones", rng, [[3000, 2]], "ones")
    lengths = [rng.integers(1, 12, 150).tolist(), rng.integers(1, 30, 60).tolist()]
    yield episodes("a hundred episodes", rng, lengths, "drifting")
    yield episodes("a long episode of drifting rewards", rng, [[2500, 1, 1200]], "drifting")
    yield episodes("more environments than anyone looks at", rng, [[1 + b % 4, 5, 3] for b in range(140)], "normal")
    near = [[n + k for n in (32, 50, 64, 100, 128, 200, 256) for k in (-1, 0, 1)], [511, 512, 513, 999, 1000, 1001]]
    yield episodes("episodes about as long as round numbers", rng, near, "normal")
    many = [rng.integers(1, 25, 14).tolist() for _ in range(17)]
    yield with_invalid_rows(episodes("many environments, invalid rows anywhere", rng, many, "normal"), rng)
    more = [[n for n in range(131, 261) if n % 16 == b] for b in range(16)]
    yield episodes("episodes of every length from 131 to 260", rng, more, "normal")
    yield with_events(episodes("an event at every step of a long episode", rng, [[300, 20]], "normal"), rng, share=1.0)
    yield episodes("a thousand episodes", rng, [[1, 2, 1, 3] * 300], "normal")
    yield episodes("a very long episode", rng, [[12_000, 5]], "normal")
    yield episodes("an episode longer than a 16-bit counter", rng, [[33_000, 5]], "negative")
