"""Patterns of rewards, ends, invalid rows and events, of which the streams of a check are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from payback.check.stream import Stream

Place = Literal["after every end", "at the start", "anywhere", "rarely"]
"""Where invalid rows stand."""


def _environments(x: np.ndarray) -> np.ndarray:
    """Return the number of each column: 0, 1, …, B − 1."""
    B: int = x.shape[1]
    return np.arange(B)


KINDS: dict[str, Callable[[np.random.Generator, np.ndarray, np.ndarray], np.ndarray]] = {
    # Of the generator, normal rewards (T, B) and the steps (T, 1).
    "ones": lambda rng, x, t: np.ones_like(x),
    "normal": lambda rng, x, t: x,
    "negative": lambda rng, x, t: -1 - np.abs(x),
    "first": lambda rng, x, t: np.where(t == 0, 1.0, 0 * x),
    "sparse": lambda rng, x, t: np.where(rng.random(x.shape) < 0.2, 1 + x, 0.0),
    "columns": lambda rng, x, t: x * 10.0 ** _environments(x),
    "tiny": lambda rng, x, t: 1e-9 * x,
    "minute": lambda rng, x, t: 1e-18 * x,
    "huge": lambda rng, x, t: 1e6 * x,
    "enormous": lambda rng, x, t: 1e12 * x,
    "mixed": lambda rng, x, t: x * 10.0 ** rng.integers(-6, 7, x.shape),
    "drifting": lambda rng, x, t: x + 0.5 * t / max(1, len(x) / 40) - 3,
    "fading": lambda rng, x, t: x * 10.0 ** -(t % 9),
    "whole": lambda rng, x, t: (7.0 * t + 5 * _environments(x)) % 25 - 12,
    "tenths": lambda rng, x, t: ((13.0 * t + _environments(x)) % 41 - 20) / 10,
    "apart": lambda rng, x, t: x * 10.0 ** (6 * (_environments(x) % 3)),
    "late": lambda rng, x, t: np.where(t < len(x) // 2, 0.01 * x, 100 + 10 * x),
}


def rewards_of(rng: np.random.Generator, kind: str, T: int, B: int) -> np.ndarray:
    """Return (T, B) rewards that float32 holds exactly: the same numbers are tried in both precisions."""
    made = KINDS[kind](rng, rng.standard_normal((T, B)), np.arange(T)[:, None])
    return made.astype(np.float32).astype(np.float64)


def episodes(name: str, rng: np.random.Generator, lengths: list[list[int]], kind: str) -> Stream:
    """Build one environment per list of episode lengths; shorter ones go on without an end."""
    T = max(sum(column) for column in lengths)
    dones = np.zeros((T, len(lengths)), dtype=bool)
    for b, column in enumerate(lengths):
        dones[np.cumsum(column) - 1, b] = True
    return Stream(name, rewards_of(rng, kind, T, len(lengths)), dones)


def with_large_last(stream: Stream, factor: float) -> Stream:
    """Make the last reward of every episode larger by a factor: lent and repaid at once, it must not matter."""
    return replace(stream, rewards=np.where(stream.dones, factor * stream.rewards, stream.rewards))


def with_events(stream: Stream, rng: np.random.Generator, share: float = 0.3) -> Stream:
    """Mark a share of the steps as events."""
    return replace(stream, settle=rng.random(stream.dones.shape) < share)


def with_gap(stream: Stream, rng: np.random.Generator, at: int, rows: int) -> Stream:
    """Insert so many invalid rows in a row, in every environment, before step `at`; they hold rewards and ends."""
    B: int = stream.dones.shape[1]
    rewards, invalid = rewards_of(rng, "normal", rows, B), np.zeros((rows, B), dtype=bool)
    gap = Stream(stream.name, rewards, rng.random((rows, B)) < 0.3, invalid)
    return stream.rows(slice(0, at)).followed_by(gap).followed_by(stream.rows(slice(at, None)))


def with_invalid_rows(stream: Stream, rng: np.random.Generator, place: Place = "anywhere") -> Stream:
    """Insert invalid rows, holding rewards and ends that must not count."""
    T, B = len(stream.dones), stream.dones.shape[1]
    chance = np.full((T + 1, B), 0.25)
    if place == "after every end":
        chance = np.concatenate((np.zeros((1, B)), 0.9 * stream.dones))
    elif place == "rarely":
        chance = np.full((T + 1, B), 0.02)
    elif place == "at the start":
        chance = np.where(np.arange(T + 1)[:, None] == 0, 1.0, np.zeros((T + 1, B)))
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
    rewards = rewards.astype(np.float32).astype(np.float64)
    return replace(stream, rewards=rewards, dones=dones, valid=valid, settle=settle)
