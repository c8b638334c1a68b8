"""The streams that `check_transform` runs at each effort, the smallest first; the same ones on every machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from payback.check.stream import Stream

Effort = Literal["quick", "normal", "thorough"]
Place = Literal["after every end", "at the start", "anywhere", "rarely"]


@dataclass(frozen=True)
class Plan:
    """How many random and `long` streams are run, and the numbers of environments that are run for a few steps."""

    random: int
    batch_sizes: tuple[int, ...]
    long: int
    longest_episode: int  # for a function of one episode's rewards, whose cost may be quadratic
    seed: int = 0


LARGE = tuple(sorted({*range(136, 264, 8), *range(150, 1001, 50), *range(288, 1025, 32), 255, 257, 511, 513, 1000}))
PLANS: dict[Effort, Plan] = {
    "quick": Plan(random=10, batch_sizes=(4, 8, 16, 32, 64), long=5, longest_episode=600),
    "normal": Plan(random=30, batch_sizes=(*range(4, 131), *LARGE), long=9, longest_episode=1_000),
    "thorough": Plan(random=600, batch_sizes=(*range(4, 1025), 4096), long=9, longest_episode=10_000),
}
COMPILED = Plan(random=4, batch_sizes=(), long=1, longest_episode=0)  # the most for JAX, which compiles each shape


def plan_for(effort: Effort, seed: int = 0) -> Plan:
    """Return the plan of an effort; a ValueError lists the efforts."""
    if effort not in PLANS:
        raise ValueError(f"effort must be one of {', '.join(map(repr, PLANS))}, got {effort!r}")
    return replace(PLANS[effort], seed=seed)


KINDS: dict[str, Callable[[np.random.Generator, np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    # Each takes the generator, normal rewards (T, B), the steps (T, 1) and the environments (B,).
    "ones": lambda rng, x, t, b: np.ones_like(x),
    "normal": lambda rng, x, t, b: x,
    "negative": lambda rng, x, t, b: -1 - np.abs(x),
    "first": lambda rng, x, t, b: np.where(t == 0, 1.0, 0 * x),
    "sparse": lambda rng, x, t, b: np.where(rng.random(x.shape) < 0.2, 1 + x, 0.0),
    "columns": lambda rng, x, t, b: x * 10.0**b,
    "tiny": lambda rng, x, t, b: 1e-9 * x,
    "minute": lambda rng, x, t, b: 1e-18 * x,
    "huge": lambda rng, x, t, b: 1e6 * x,
    "enormous": lambda rng, x, t, b: 1e12 * x,
    "mixed": lambda rng, x, t, b: x * 10.0 ** rng.integers(-6, 7, x.shape),
    "drifting": lambda rng, x, t, b: x + 0.5 * t / max(1, len(x) / 40) - 3,
    "fading": lambda rng, x, t, b: x * 10.0 ** -(t % 9),
    "whole": lambda rng, x, t, b: (7.0 * t + 5 * b) % 25 - 12,
    "tenths": lambda rng, x, t, b: ((13.0 * t + b) % 41 - 20) / 10,
    "far apart": lambda rng, x, t, b: x * 10.0 ** (6 * (b % 3)),
    "late": lambda rng, x, t, b: np.where(t < len(x) // 2, 0.01 * x, 100 + 10 * x),
}


def rewards_of(rng: np.random.Generator, kind: str, T: int, B: int) -> np.ndarray:
    """Return (T, B) rewards that float32 holds exactly: both precisions are given the same numbers."""
    made = KINDS[kind](rng, rng.standard_normal((T, B)), np.arange(T)[:, None], np.arange(B))
    return made.astype(np.float32).astype(np.float64)


def episodes(name: str, rng: np.random.Generator, lengths: list[list[int]], kind: str, *more: str) -> Stream:
    """Build one environment per list of episode lengths, with one kind of rewards after the other."""
    T, B = max(sum(column) for column in lengths), len(lengths)
    dones = np.zeros((T, B), dtype=bool)
    for b, column in enumerate(lengths):
        dones[np.cumsum(column) - 1, b] = True
    rewards = rewards_of(rng, kind, T, B)
    for k, other in enumerate(more, start=1):
        rewards[:, k :: len(more) + 1] = rewards_of(rng, other, T, B)[:, k :: len(more) + 1]
    return Stream(name, rewards, dones)


def with_events(stream: Stream, rng: np.random.Generator, share: float = 0.3) -> Stream:
    """Mark a share of the steps as events."""
    return replace(stream, settle=rng.random(stream.dones.shape) < share)


def with_invalid_rows(stream: Stream, rng: np.random.Generator, place: Place = "anywhere") -> Stream:
    """Insert invalid rows, holding rewards and ends that must not count."""
    T, B = len(stream.dones), int(stream.dones.shape[1])
    chance = np.full((T + 1, B), 0.02 if place == "rarely" else 0.25)
    if place == "after every end":
        chance = np.concatenate((np.zeros((1, B)), 0.9 * stream.dones))
    elif place == "at the start":
        chance = np.where(np.arange(T + 1)[:, None] == 0, 1.0, np.zeros((T + 1, B)))
    rows = rng.random((T + 1, B)) < chance
    span = int((T + rows.sum(axis=0)).max())
    rewards, dones = rng.normal(5, 3, (span, B)), rng.random((span, B)) < 0.3
    valid = np.zeros((span, B), dtype=bool)
    settle = None if stream.settle is None else rng.random((span, B)) < 0.5
    at = np.arange(T)[:, None] + np.cumsum(rows[:T], axis=0), np.arange(B)
    rewards[at], dones[at], valid[at] = stream.rewards, stream.dones, True
    if settle is not None:
        settle[at] = stream.events
    rewards = rewards.astype(np.float32).astype(np.float64)
    return replace(stream, rewards=rewards, dones=dones, valid=valid, settle=settle)


def small_streams(seed: int) -> Iterator[Stream]:
    """Yield short streams that each isolate one mistake: lengths, sizes of rewards, invalid rows, events."""
    rng = np.random.default_rng(seed)
    for N in (1, 2, 3, 4, 5, 8):
        for kind in ("ones", "normal", "negative"):
            yield episodes(f"an episode of length {N}, rewards: {kind}", rng, [[N]], kind)
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
    yield episodes("a small environment beside large ones", rng, [[5, 6], [4, 7], [11]], "far apart")
    marked = episodes("all rows marked as valid, none as events", rng, [[4, 1, 6], [5, 6]], "normal")
    yield replace(marked, valid=np.ones_like(marked.dones), settle=np.zeros_like(marked.dones))
    for place in get_args(Place)[:3]:
        for B in (1, 2):
            yield with_invalid_rows(episodes(f"invalid rows {place}", rng, [[4, 1, 5]] * B, "normal"), rng, place)
    nobody = episodes("steps without a valid row", rng, [[5, 6], [3, 8], [11]], "normal")
    yield replace(nobody, valid=np.broadcast_to(np.arange(11)[:, None] % 4 != 2, nobody.dones.shape).copy())
    yield with_events(episodes("events", rng, [[7, 1, 5]], "normal"), rng)
    yield with_events(episodes("an event at every step", rng, [[4, 1, 3], [8]], "normal"), rng, share=1.0)
    yield with_events(episodes("events", rng, [[7, 2, 5], [3, 8, 3]], "drifting"), rng)
    events = with_events(episodes("events, and invalid rows anywhere", rng, [[9, 5]] * 2, "normal"), rng)
    yield with_invalid_rows(events, rng)


def large_last_streams(seed: int) -> Iterator[Stream]:
    """Yield streams with large last rewards: subtracting one again takes digits off the debt."""
    rng = np.random.default_rng([seed, 7])
    for much, factor, lengths in (("thousand", 1e3, [[2, 4, 5], [7, 3, 1]]), ("million", 1e6, [[3, 5], [6, 2]])):
        last = episodes(f"last rewards that are a {much} times larger", rng, lengths, "normal")
        yield replace(last, rewards=np.where(last.dones, factor * last.rewards, last.rewards))


def gap_streams(seed: int) -> Iterator[Stream]:
    """Yield streams with 50 consecutive invalid rows, in mid-episode and before the first step."""
    rng, shape = np.random.default_rng([seed, 8]), (50, 2)
    plain = episodes("50 consecutive invalid rows", rng, [[9, 4], [6, 7]], "normal")
    for at in (4, 0):
        rewards, invalid = rewards_of(rng, "normal", *shape), np.zeros(shape, dtype=bool)
        gap = Stream(plain.name, rewards, rng.random(shape) < 0.3, invalid)
        yield plain[:at].followed_by(gap).followed_by(plain[at:])


def large_float32_stream(seed: int) -> Stream:
    """Return rewards that are about as large as float32 can repay."""
    plain = episodes("rewards of about 1e+31", np.random.default_rng([seed, 9]), [[6, 1, 5], [12]], "normal")
    return replace(plain, rewards=(1e31 * plain.rewards).astype(np.float32).astype(np.float64))


def wide_range_streams(seed: int) -> Iterator[Stream]:
    """Yield streams whose rewards only float64 holds."""
    rng = np.random.default_rng([seed, 3])
    # In steps of 10⁸: a bound that is far exceeded leaves nothing that is large beside the rewards.
    for size in (1e-100, 1e-60, 1e-30, *10.0 ** np.arange(20, 101, 8)):
        plain = episodes(f"rewards of about {size:g}", rng, [[6, 1, 5], [12]], "normal")
        yield replace(plain, rewards=size * plain.rewards)


def form_streams(seed: int) -> tuple[Stream, Stream]:
    """Return a plain stream, and one with events and invalid rows: their arrays are handed over in several forms."""
    rng = np.random.default_rng([seed, 5])
    plain = episodes("two episodes in each of three environments", rng, [[5, 4], [7, 2], [1, 8]], "normal")
    return plain, with_invalid_rows(with_events(plain, rng), rng)


def batch_streams(seed: int, sizes: Iterable[int]) -> Iterator[Stream]:
    """Yield a few steps of each number of environments: a vector unit or a buffer may work on 8 or 64 at a time."""
    rng = np.random.default_rng([seed, 4])
    for B in sizes:
        lengths = [[1 + b % 2, 3] for b in range(B)]  # steps with ends, and steps without
        yield episodes(f"{B} environments", rng, lengths, "normal")


def long_streams(seed: int) -> Iterator[Stream]:
    """Yield streams on which something drifts, a counter overflows or a buffer fills up; the longest last."""
    rng = np.random.default_rng([seed, 2])
    yield episodes("a long episode, then a short one", rng, [[600, 3, 300]], "normal")
    every = [[n for n in range(1, 131) if n % 8 == b] for b in range(8)]
    yield episodes("episodes of every length up to 130", rng, every, "normal")
    late = with_events(episodes("late events and invalid rows", rng, [[1500, 20], [700, 500]], "normal"), rng)
    yield with_invalid_rows(late, rng, "rarely")
    yield episodes("five environments with one time limit", rng, [[100, 3, 101]] * 5, "normal")
    yield episodes("long episodes of ones and of drifting rewards", rng, [[3000, 2], [2500, 1]], "ones", "drifting")
    many = [[1, 2, 1, 1] * 280, rng.integers(1, 12, 150).tolist(), rng.integers(1, 30, 80).tolist()]
    yield episodes("a thousand episodes", rng, many, "drifting")
    yield episodes("140 environments", rng, [[1 + b % 4, 5, 3] for b in range(140)], "normal")
    many = [rng.integers(1, 25, 14).tolist() for _ in range(17)]
    yield with_invalid_rows(episodes("17 environments, invalid rows anywhere", rng, many, "normal"), rng)
    yield episodes("an episode longer than a 16-bit counter", rng, [[33_000, 5]], "negative")


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
        stream = Stream(f"random stream {k}, rewards: {kind}", rewards, dones)
        if rng.random() < 0.25:
            stream = with_events(stream, rng)
        if rng.random() < 0.35:
            stream = with_invalid_rows(stream, rng)
        yield stream
