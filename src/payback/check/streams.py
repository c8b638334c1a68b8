"""Streams of rewards that find faults in shaping code: the plain ones first, then those that nobody tries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class Stream:
    """Rewards of B environments over T steps, with what the environments say about each step."""

    name: str
    rewards: np.ndarray
    """(T, B) float64."""
    dones: np.ndarray
    """(T, B) bool: this transition ends its episode."""
    valid: np.ndarray | None = None
    """(T, B) bool: false where the row is no transition; None where all are."""
    settle: np.ndarray | None = None
    """(T, B) bool: events; None where there are none."""

    @property
    def live(self) -> np.ndarray:
        """(T, B) bool: the rows that are transitions."""
        return np.ones(self.dones.shape, dtype=bool) if self.valid is None else self.valid

    def rows(self, keep: slice | np.ndarray) -> Stream:
        """Return the stream of some of its steps only."""
        flags = (None if f is None else f[keep] for f in (self.valid, self.settle))
        return Stream(self.name, self.rewards[keep], self.dones[keep], *flags)

    def followed_by(self, other: Stream) -> Stream:
        """Return this stream and then the other one."""
        flags = []
        for name, plain in (("valid", True), ("settle", False)):
            both = [getattr(stream, name) for stream in (self, other)]
            filled = [
                np.full(s.dones.shape, plain) if f is None else f for s, f in zip((self, other), both, strict=True)
            ]
            flags.append(None if all(f is None for f in both) else np.concatenate(filled))
        rewards, dones = np.concatenate((self.rewards, other.rewards)), np.concatenate((self.dones, other.dones))
        return Stream(self.name, rewards, dones, *flags)

    def columns(self, keep: slice | np.ndarray) -> Stream:
        """Return the stream of some of its environments only."""
        flags = (None if f is None else f[:, keep] for f in (self.valid, self.settle))
        return Stream(self.name, self.rewards[:, keep], self.dones[:, keep], *flags)


def small_streams(seed: int) -> Iterator[Stream]:
    """Yield short streams, the smallest first: each isolates one thing that shaping code gets wrong."""
    rng = np.random.default_rng(seed)
    for N in (1, 2, 3, 4, 5, 8):
        for kind in ("ones", "normal", "negative"):
            yield _episodes(f"one episode of {N} steps, {kind} rewards", rng, [[N]], kind)
    yield _episodes("one-step episodes in consecutive steps", rng, [[1] * 6], "normal")
    yield _episodes("the same episode twice", rng, [[3, 3]], "ones")
    yield _episodes("a short episode after a long one", rng, [[12, 1, 1, 2]], "normal")
    yield _episodes("no reward but the first", rng, [[9, 4]], "first")
    yield _episodes("rewards that are mostly zero", rng, [[14, 9]], "sparse")
    yield _episodes("two environments that end at once", rng, [[4, 5], [4, 5]], "normal")
    yield _episodes("three environments that end at once, one step long", rng, [[1, 1, 6]] * 3, "normal")
    yield _episodes("two environments that end in turn", rng, [[1, 6, 3], [4, 2, 4]], "normal")
    yield _episodes("environments with rewards of different size", rng, [[5, 5], [7, 3]], "columns")
    yield _episodes("tiny rewards", rng, [[6, 5]], "tiny")
    yield _episodes("minute rewards", rng, [[6, 5]], "minute")
    yield _episodes("huge rewards", rng, [[6, 5], [11]], "huge")
    yield _episodes("enormous rewards", rng, [[4, 7]], "enormous")
    marked = _episodes("all rows marked as transitions, none as events", rng, [[4, 1, 6], [5, 6]], "normal")
    yield replace(marked, valid=np.ones_like(marked.dones), settle=np.zeros_like(marked.dones))
    yield _episodes("huge and tiny rewards", rng, [[9, 8]], "mixed")
    yield _episodes("rewards that fade", rng, [[9, 8, 10]], "fading")
    yield _episodes("a mean that drifts", rng, [[10, 12, 9], [7, 17, 7]], "drifting")
    yield _episodes("rewards that grow after many small ones", rng, [[20, 8]], "late")
    for place in ("after every end", "in mid-episode", "at the start", "anywhere"):
        for B in (1, 2):
            yield _with_invalid(_episodes(f"rows that are no transition {place}", rng, [[4, 1, 5]] * B, "normal"), rng)
    yield _with_events(_episodes("events", rng, [[7, 1, 5]], "normal"), rng)
    yield _with_events(_episodes("events", rng, [[7, 2, 5], [3, 8, 3]], "drifting"), rng)
    yield _with_invalid(
        _with_events(_episodes("events, and rows that are no transition anywhere", rng, [[9, 5]] * 2, "normal"), rng),
        rng,
    )


def random_streams(seed: int, count: int) -> Iterator[Stream]:
    """Yield random streams: any lengths, any ends, any rewards, now and then events and invalid rows."""
    rng = np.random.default_rng([seed, 1])
    for k in range(count):
        B, T = int(rng.choice([1, 1, 2, 3, 5])), int(rng.integers(2, 40))
        kind = str(rng.choice(["normal", "ones", "sparse", "negative", "huge", "tiny", "mixed", "drifting", "late"]))
        rewards = _rewards(rng, kind, T, B)
        dones = rng.random((T, B)) < rng.choice([0.02, 0.1, 0.4, 0.8])
        if rng.random() < 0.3:
            dones[:] = dones[:, :1]
        dones[-1] = True
        stream = Stream(f"random stream {k}, {kind} rewards", rewards, dones)
        if rng.random() < 0.25:
            stream = _with_events(stream, rng)
        if rng.random() < 0.35:
            stream = _with_invalid(stream, rng)
        yield stream


def long_streams(seed: int) -> Iterator[Stream]:
    """Yield streams of thousands of steps: what drifts, overflows a counter or fills a buffer shows here."""
    rng = np.random.default_rng([seed, 2])
    yield _episodes("a long episode, then a short one", rng, [[600, 3, 300]], "normal")
    yield _episodes("a long episode of ones", rng, [[3000, 2]], "ones")
    yield _episodes(
        "a hundred episodes", rng, [rng.integers(1, 12, 150).tolist(), rng.integers(1, 30, 60).tolist()], "drifting"
    )
    yield _episodes("a long episode of drifting rewards", rng, [[2500, 1, 1200]], "drifting")
    yield _episodes("more environments than anyone looks at", rng, [[1 + b % 4, 5, 3] for b in range(140)], "normal")
    near = [[n + k for n in (32, 50, 64, 100, 128, 200, 256) for k in (-1, 0, 1)], [511, 512, 513, 999, 1000, 1001]]
    yield _episodes("episodes about as long as round numbers", rng, near, "normal")
    many = [rng.integers(1, 25, 14).tolist() for _ in range(17)]
    yield _with_invalid(_episodes("many environments, rows that are no transition anywhere", rng, many, "normal"), rng)
    yield _episodes("a thousand episodes", rng, [[1, 2, 1, 3] * 300], "normal")
    yield _episodes("a very long episode", rng, [[12_000, 5]], "normal")
    yield _episodes("an episode longer than a 16-bit counter", rng, [[33_000, 5]], "negative")


def continuations(stream: Stream, size: float) -> list[Stream]:
    """Return streams to go on with: other rewards, other lengths, other ends in every environment."""
    B = stream.rewards.shape[1]
    b = np.arange(B)
    result = []
    for k, (first, apart, wave) in enumerate([(0, 0, 0.0), (1, 1, 1.0), (6, 2, -3.0)]):
        last = first + apart * ((b + k) % 3)
        T = int(last.max()) + 1
        t = np.arange(T)[:, None]
        rewards = size * wave * (np.cos(2.3 * t + b + k) + 0.25)
        result.append(Stream("continuation", rewards, t == last))
    return result


def _episodes(name: str, rng: np.random.Generator, lengths: list[list[int]], kind: str) -> Stream:
    """Build one column per list of episode lengths; shorter columns go on without an end."""
    T = max(sum(column) for column in lengths)
    dones = np.zeros((T, len(lengths)), dtype=bool)
    for b, column in enumerate(lengths):
        dones[np.cumsum(column) - 1, b] = True
    return Stream(name, _rewards(rng, kind, T, len(lengths)), dones)


def _rewards(rng: np.random.Generator, kind: str, T: int, B: int) -> np.ndarray:
    normal = rng.standard_normal((T, B))
    t = np.arange(T)[:, None]
    # A quarter of a float32's digits: the same numbers in both precisions.
    made = {
        "ones": np.ones((T, B)),
        "normal": normal,
        "negative": -1 - np.abs(normal),
        "first": np.where(t == 0, 1.0, np.zeros((T, B))),
        "sparse": np.where(rng.random((T, B)) < 0.2, 1 + normal, 0.0),
        "columns": normal * 10.0 ** np.arange(B),
        "tiny": 1e-9 * normal,
        "minute": 1e-18 * normal,
        "huge": 1e6 * normal,
        "enormous": 1e12 * normal,
        "mixed": normal * 10.0 ** rng.integers(-6, 7, (T, B)),
        "drifting": normal + 0.5 * t / max(1, T / 40) - 3,
        "fading": normal * 10.0 ** -(t % 9),
        "late": np.where(t < T // 2, 0.01 * normal, 100 + 10 * normal),
    }[kind]
    return made.astype(np.float32).astype(np.float64)


def _with_invalid(stream: Stream, rng: np.random.Generator) -> Stream:
    """Insert rows that are no transition, holding rewards and ends that must not count."""
    T, B = stream.dones.shape
    after_end = np.zeros((T + 1, B), dtype=bool)
    after_end[1:] = stream.dones
    chance = np.where(after_end, 0.9, 0.0) if "after every end" in stream.name else np.full((T + 1, B), 0.25)
    if "at the start" in stream.name:
        chance[1:] = 0
        chance[0] = 1
    rows = rng.random((T + 1, B)) < chance
    span = int((T + rows.sum(axis=0)).max())
    rewards, dones = rng.normal(5, 3, (span, B)), rng.random((span, B)) < 0.3
    valid = np.zeros((span, B), dtype=bool)
    settle = None if stream.settle is None else rng.random((span, B)) < 0.5
    for b in range(B):
        at = np.arange(T) + np.cumsum(rows[:T, b])
        rewards[at, b], dones[at, b], valid[at, b] = stream.rewards[:, b], stream.dones[:, b], True
        if settle is not None and stream.settle is not None:
            settle[at, b] = stream.settle[:, b]
    return replace(
        stream, rewards=rewards.astype(np.float32).astype(np.float64), dones=dones, valid=valid, settle=settle
    )


def _with_events(stream: Stream, rng: np.random.Generator) -> Stream:
    return replace(stream, settle=rng.random(stream.dones.shape) < 0.3)
