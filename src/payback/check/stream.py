"""A stream of rewards from B environments over T steps, and a violation found on one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

Property = Literal[  # that shaping code must have; `InvarianceError.violated` names it
    "zero sum", "causality", "policy invariance", "debt", "invalid rows", "purity", "rollout", "precision", "input",
    "shape", "finite",
]  # fmt: skip


@dataclass(frozen=True)
class Stream:
    """Rewards of B environments over T steps, and their flags, all (T, B). `stream[rows, columns]` is a part of it."""

    name: str
    rewards: np.ndarray
    dones: np.ndarray
    valid: np.ndarray | None = None  # false for invalid rows, None where all are valid
    settle: np.ndarray | None = None  # marks events, None where there are none

    def __getitem__(self, keep: Any) -> Stream:
        flags = (None if x is None else x[keep] for x in (self.valid, self.settle))
        return Stream(self.name, self.rewards[keep], self.dones[keep], *flags)

    @property
    def live(self) -> np.ndarray:
        """(T, B) bool: the valid rows."""
        return np.ones(self.dones.shape, dtype=bool) if self.valid is None else self.valid

    @property
    def events(self) -> np.ndarray:
        """(T, B) bool: the events."""
        return np.zeros(self.dones.shape, dtype=bool) if self.settle is None else self.settle

    @property
    def size(self) -> float:
        """The largest |F|."""
        return float(np.abs(self.rewards).max(initial=0))

    def followed_by(self, other: Stream) -> Stream:
        """Return this stream with the other one appended."""
        valid = None if self.valid is other.valid is None else np.concatenate((self.live, other.live))
        settle = None if self.settle is other.settle is None else np.concatenate((self.events, other.events))
        rewards, dones = np.concatenate((self.rewards, other.rewards)), np.concatenate((self.dones, other.dones))
        return Stream(self.name, rewards, dones, valid, settle)

    @cached_property
    def lent_before(self) -> np.ndarray:
        """(T + 1, B) the largest |F_i| so far in the open episode, without a last one, which is repaid at once."""
        T, B = self.rewards.shape
        largest = np.zeros((T + 1, B))
        sizes, going_on = np.where(self.live, np.abs(self.rewards), 0.0), ~(self.live & self.dones)
        for t in range(T):
            np.maximum(largest[t], sizes[t], out=largest[t + 1], where=going_on[t])
        return largest


class Finding(Exception):  # noqa: N818  an internal signal; users get an InvarianceError
    """A violation at one step, which was `paid` and should have been paid `owed`; it becomes an `InvarianceError`."""

    def __init__(
        self, violated: Property, what: str, stream: Stream, step: Any, env: Any = 0, paid: Any = None, owed: Any = None
    ) -> None:
        super().__init__(what)
        self.violated, self.stream, self.step, self.environment = violated, stream, int(step), int(env)
        self.paid, self.owed = (None if x is None else float(x) for x in (paid, owed))


def refuse_where(
    bad: np.ndarray, violated: Property, what: str, stream: Stream, paid: np.ndarray, owed: Any, first: int = 0
) -> None:
    """Raise a `Finding` at the first (step, environment) that is `bad`; row 0 is step `first` of the stream."""
    for t, b in np.argwhere(bad)[:1]:
        raise Finding(violated, what, stream, first + t, b, paid[t, b], None if owed is None else owed[t, b])


class EpisodeIndex(NamedTuple):
    """The R valid rows of a stream, ordered by environment and then by step, and the E episodes they form."""

    step: np.ndarray  # (R,)
    environment: np.ndarray  # (R,)
    age: np.ndarray  # (R,) the steps since the start of the row's episode
    starts: np.ndarray  # (E,) the first of the R rows of each episode
    ends: np.ndarray  # (E,) the last one
    finished: np.ndarray  # (E,) whether that row ends the episode

    @property
    def longest(self) -> int:
        """The number of steps of the longest episode."""
        return int((self.age[self.ends] + 1).max(initial=0))


def episodes_of(stream: Stream) -> EpisodeIndex:
    """Group the valid rows of a stream into episodes."""
    environment, step = np.nonzero(stream.live.T)
    done = stream.dones[step, environment]
    first = np.ones(len(step), dtype=bool)
    first[1:] = done[:-1] | (environment[1:] != environment[:-1])
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(step))[: len(starts)] - 1
    age = np.arange(len(step)) - starts[np.cumsum(first) - 1] if len(step) else np.arange(0)
    return EpisodeIndex(step, environment, age, starts, ends, done[ends])


def one_episode(rewards: np.ndarray, name: str = "one episode") -> Stream:
    """Return one environment with one finished episode of rewards (N,)."""
    dones = np.zeros((len(rewards), 1), dtype=bool)
    dones[-1:] = True
    return Stream(name, np.asarray(rewards, dtype=np.float64)[:, None], dones)


def continuations(stream: Stream) -> list[Stream]:
    """Return ways to go on after a stream: every environment ends at another time, with other rewards."""
    B: int = stream.rewards.shape[1]
    b, size = np.arange(B), max(stream.size, 1e-30)
    result: list[Stream] = []
    for k, first, spread, wave in ((1, 1, 1, 1.0), (2, 6, 2, -3.0)):
        last = first + spread * ((b + k) % 3)
        t = np.arange(int(last.max()) + 1)[:, None]
        rewards = size * wave * (np.cos(2.3 * t + b + k) + 0.25)
        result.append(Stream("continuation", rewards, t == last))
    return result


def written(values: np.ndarray, most: int = 12) -> str:
    """Format the first few rewards."""
    shown = ", ".join(f"{x:.6g}" for x in values[:most])
    return f"[{shown}{', …' if len(values) > most else ''}]"
