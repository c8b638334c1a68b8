"""A stream of rewards: B environments over T steps, with what the environments say about each step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Stream:
    """Rewards of B environments over T steps, and their flags."""

    name: str
    rewards: np.ndarray
    """(T, B) float64."""
    dones: np.ndarray
    """(T, B) bool: this transition ends its episode."""
    valid: np.ndarray | None = None
    """(T, B) bool: false for invalid rows; None where all are valid."""
    settle: np.ndarray | None = None
    """(T, B) bool: events; None where there are none."""

    @property
    def live(self) -> np.ndarray:
        """(T, B) bool: the valid rows."""
        return np.ones(self.dones.shape, dtype=bool) if self.valid is None else self.valid

    @property
    def size(self) -> float:
        """The largest |F|."""
        return float(np.abs(self.rewards).max(initial=0))

    def rows(self, keep: slice | np.ndarray) -> Stream:
        """Return the stream of some of its steps only."""
        flags = (None if f is None else f[keep] for f in (self.valid, self.settle))
        return Stream(self.name, self.rewards[keep], self.dones[keep], *flags)

    def columns(self, keep: slice | np.ndarray) -> Stream:
        """Return the stream of some of its environments only."""
        flags = (None if f is None else f[:, keep] for f in (self.valid, self.settle))
        return Stream(self.name, self.rewards[:, keep], self.dones[:, keep], *flags)

    def followed_by(self, other: Stream) -> Stream:
        """Return this stream and then the other one."""
        flags: list[np.ndarray | None] = []
        for name, plain in (("valid", True), ("settle", False)):
            both: list[np.ndarray | None] = [getattr(stream, name) for stream in (self, other)]
            filled = [
                np.full(s.dones.shape, plain) if f is None else f for s, f in zip((self, other), both, strict=True)
            ]
            flags.append(None if all(f is None for f in both) else np.concatenate(filled))
        rewards, dones = np.concatenate((self.rewards, other.rewards)), np.concatenate((self.dones, other.dones))
        return Stream(self.name, rewards, dones, *flags)

    @cached_property
    def lent_before(self) -> np.ndarray:
        """(T + 1, B) the largest |F_i| lent so far in the open episode: the size that rounding is measured against.

        The last reward of an episode is left out, because it is lent and repaid at once.
        """
        T, B = self.rewards.shape
        largest = np.zeros((T + 1, B))
        sizes = np.where(self.live, np.abs(self.rewards), 0.0)
        forgets: np.ndarray = self.live & self.dones
        ends: np.ndarray = np.asarray(forgets.any(axis=1))
        for t in range(T):
            np.maximum(largest[t], sizes[t], out=largest[t + 1])
            if ends[t]:
                largest[t + 1, forgets[t]] = 0.0
        return largest


@dataclass(frozen=True)
class Episodes:
    """The valid rows of a stream, episode after episode, environment after environment."""

    step: np.ndarray
    """(R,) the row of the stream."""
    environment: np.ndarray
    """(R,) its column."""
    age: np.ndarray
    """(R,) steps since the start of its episode."""
    starts: np.ndarray
    """(E,) where in R each episode starts."""
    ends: np.ndarray
    """(E,) where in R each episode has its last row."""
    finished: np.ndarray
    """(E,) whether that row ends it."""

    @property
    def longest(self) -> int:
        """Steps of the longest episode."""
        return int((self.age[self.ends] + 1).max(initial=0))


def episodes_of(stream: Stream) -> Episodes:
    """Cut the valid rows of a stream into episodes."""
    environment, step = np.nonzero(stream.live.T)
    done = stream.dones[step, environment]
    first = np.ones(len(step), dtype=bool)
    first[1:] = done[:-1] | (environment[1:] != environment[:-1])
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(step))[: len(starts)] - 1
    age = np.arange(len(step)) - starts[np.cumsum(first) - 1] if len(step) else np.arange(0)
    return Episodes(step, environment, age, starts, ends, done[ends])


def one_episode(rewards: np.ndarray, name: str = "one episode") -> Stream:
    """Return the stream of one environment and one finished episode with rewards (N,)."""
    dones = np.zeros((len(rewards), 1), dtype=bool)
    dones[-1:] = True
    return Stream(name, np.asarray(rewards, dtype=np.float64)[:, None], dones)


def continuations(stream: Stream) -> list[Stream]:
    """Return streams to go on with: rewards of the same size, other lengths, other ends in every environment."""
    B: int = stream.rewards.shape[1]
    b, size = np.arange(B), max(stream.size, 1e-30)
    result: list[Stream] = []
    for k, (first, apart, wave) in enumerate([(0, 0, 0.0), (1, 1, 1.0), (6, 2, -3.0)]):
        last = first + apart * ((b + k) % 3)
        t = np.arange(int(last.max()) + 1)[:, None]
        rewards = size * wave * (np.cos(2.3 * t + b + k) + 0.25)
        result.append(Stream("continuation", rewards, t == last))
    return result


def written(values: np.ndarray, most: int = 12) -> str:
    """Write some rewards down."""
    shown = ", ".join(f"{x:.6g}" for x in values[:most])
    return f"[{shown}{', …' if len(values) > most else ''}]"
