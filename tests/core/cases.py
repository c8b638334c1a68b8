"""What the tests of the core share: the matchings as exact functions, the definition to hold code against, streams."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

import payback
from payback import theory

# Neither a deadline nor a rate by the clock, which a busy machine misses.
calm = settings(deadline=None, max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
quiet = pytest.mark.filterwarnings("ignore::payback.InterestWarning")

Matching = Callable[[int, int, int], Any]

# ------------------------------------------------------------------ the five matchings, as m(t, i, N), exact


def at_end() -> Matching:
    return lambda t, i, N: int(t == N - 1)


def after(delay: int) -> Matching:
    return lambda t, i, N: int(t == min(i + delay, N - 1))


def evenly(window: int) -> Matching:
    def m(t: int, i: int, N: int) -> Fraction:
        if i == N - 1 or t <= i:
            return Fraction(t == i == N - 1)
        repaid_before = Fraction(min(t - 1 - i, window), window)
        return 1 - repaid_before if t == N - 1 else Fraction(t - i <= window, window)

    return m


def from_ages(shares: tuple[float, ...]) -> Matching:
    def m(t: int, i: int, N: int) -> float:
        if i == N - 1 or t <= i:
            return float(t == i == N - 1)
        before = t - 1 - i
        return sum(shares[before:]) if t == N - 1 else shares[before] if before < len(shares) else 0.0

    return m


def geometric(rate: float) -> Matching:
    rate = Fraction(rate)

    def m(t: int, i: int, N: int) -> Fraction:
        if i == N - 1 or t <= i:
            return Fraction(t == i == N - 1)
        left = rate ** (t - i - 1)
        return left if t == N - 1 else (1 - rate) * left

    return m


def when(events: np.ndarray) -> Matching:
    """Repay at the first flagged step after the loan, or at the last; `events` are one episode's flags."""

    def m(t: int, i: int, N: int) -> int:
        flagged = [j for j in range(i + 1, N - 1) if j < len(events) and events[j]]
        return int(t == (flagged[0] if flagged else N - 1))

    return m


class Row(NamedTuple):
    """A shaping of payback's and its matching, which `match_when` has with no event flagged."""

    transform: payback.Match
    matching: Matching
    centered: bool = False


GAMMA = 0.75
MATCHINGS = {
    "match_at_end": Row(payback.match_at_end(GAMMA), at_end()),
    "match_when": Row(payback.match_when(GAMMA), at_end()),
    "match_after-0": Row(payback.match_after(GAMMA, 0), after(0)),
    "match_after-1": Row(payback.match_after(GAMMA, 1), after(1)),
    "match_after-2": Row(payback.match_after(GAMMA, 2), after(2)),
    "match_after-50": Row(payback.match_after(GAMMA, 50), after(50)),
    "match_evenly": Row(payback.match_evenly(GAMMA, 3), evenly(3)),
    "match_from_ages": Row(payback.match_from_ages(GAMMA, (0.5, 0, 0.5)), from_ages((0.5, 0, 0.5))),
    "match_geometric": Row(payback.match_geometric(GAMMA, 0.5), geometric(0.5)),
    "pbim": Row(payback.pbim(GAMMA), at_end(), centered=True),
    "grm-1": Row(payback.grm(GAMMA, 1), after(1), centered=True),
    "grm-3": Row(payback.grm(GAMMA, 3), after(3), centered=True),
}
"""A new matching is one row here: it is compared with its definition, checked, saved, pickled and copied."""
TRANSFORMS: dict[str, payback.RewardTransform] = {
    **{name: row.transform for name, row in MATCHINGS.items()},
    "fading": payback.chain(payback.clip(-1, 1), payback.center(9), payback.match_after(GAMMA, 2), payback.scale(3)),
    "grm, raw": payback.grm(GAMMA, 3, center=False),
    "center": payback.center(),
    "scale": payback.scale(2),
    "clip": payback.clip(-1, 1),
    "rms": payback.scale_by_rms(50),
}


class Match(NamedTuple):
    """A streaming match and what it must be equal to."""

    make: Callable[[float], payback.RewardTransform]
    matching: Callable[[np.ndarray], Matching]
    """From one episode's event flags, which only `match_when` reads."""


def match_of(name: str, parameter: Any = None) -> Match:
    make = getattr(payback, f"match_{name}")
    if name == "at_end":
        return Match(make, lambda events: at_end())
    if name == "when":
        return Match(make, when)
    matching = {"after": after, "evenly": evenly, "geometric": geometric}[name]
    return Match(lambda gamma: make(gamma, parameter), lambda events: matching(parameter))


# ------------------------------------------------------------------ (drawer), for streams of many episodes


class Stream(NamedTuple):
    """(T, B) rewards and flags."""

    rewards: np.ndarray
    dones: np.ndarray
    valid: np.ndarray | None = None
    settle: np.ndarray | None = None

    def row(self, t: int) -> tuple[Any, ...]:
        return tuple(None if block is None else block[t] for block in self)

    def rows(self, first: int, last: int) -> "Stream":
        return Stream(*(None if block is None else block[first:last] for block in self))


def episodes(dones: np.ndarray) -> Iterator[tuple[slice, bool]]:
    """Yield the steps of each episode in one column of ends, and whether it is finished."""
    start = 0
    for end in np.flatnonzero(dones):
        yield slice(start, end + 1), True
        start = end + 1
    if start < len(dones):
        yield slice(start, len(dones)), False


def by_definition(match: Match, stream: Stream, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the shaped rewards and the debt at the end, from (drawer) over each whole episode.

    An unfinished episode is given one more step, its last: what was paid before it cannot depend on that, and
    that step pays minus the debt.
    """
    T, B = stream.rewards.shape
    shaped, owed = np.zeros((T, B)), np.zeros(B)
    settle = np.zeros((T, B), bool) if stream.settle is None else stream.settle
    for b in range(B):
        lived = np.arange(T) if stream.valid is None else np.flatnonzero(stream.valid[:, b])
        for steps, finished in episodes(stream.dones[lived, b]):
            at = lived[steps]
            rewards = stream.rewards[at, b] if finished else np.append(stream.rewards[at, b], 0.0)
            whole = theory.match_episode(rewards, match.matching(settle[at, b]), gamma)
            shaped[at, b] = whole[: len(at)]
            if not finished:
                owed[b] = -whole[-1]
    return shaped, owed


def step_through(transform: payback.RewardTransform, stream: Stream, state: Any = None) -> tuple[Any, np.ndarray]:
    """Run `update` row after row on NumPy."""
    if state is None:
        state = transform.init(np.zeros_like(stream.rewards[0]))
    shaped = []
    for t in range(len(stream.rewards)):
        state, row = transform.update(state, *stream.row(t))
        shaped.append(row)
    return state, np.array(shaped).reshape(stream.rewards.shape)


def assert_close(actual: Any, expected: Any, tolerance: float = 1e-10, what: str = "") -> None:
    """Hold two arrays together within `tolerance` of the largest number expected."""
    expected, actual = np.asarray(expected, dtype=np.float64), np.asarray(actual, dtype=np.float64)
    assert actual.shape == expected.shape, what
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale, err_msg=what)


# ------------------------------------------------------------------ random streams


def random_stream(seed: int, T: int, B: int, ends: float = 0.1, dtype: Any = np.float64, **flags: bool) -> Stream:
    """Draw rewards with ends anywhere; `valid=True`, `settle=True` draw those flags too."""
    rng = np.random.default_rng(seed)
    rewards = rng.normal(0.3, 1.0, (T, B)).astype(dtype)
    dones = rng.random((T, B)) < ends
    valid = rng.random((T, B)) < 0.85 if flags.get("valid") else None
    settle = rng.random((T, B)) < 0.15 if flags.get("settle") else None
    return Stream(rewards, dones if valid is None else dones & valid, valid, settle)


gammas = st.one_of(st.sampled_from([1.0, 0.99, 0.5]), st.floats(0.3, 1.0))
eighths = st.integers(-64, 64).map(lambda n: n / 8)
"""Rewards that shrink to something a person can add up."""


@st.composite
def streams(draw: st.DrawFn, most: int = 14, valid: bool = True, settle: bool = True) -> Stream:
    """Draw a short stream with everything in it: ends and events anywhere, invalid rows."""
    T, B = draw(st.integers(1, most)), draw(st.integers(1, 2))

    def block(elements: st.SearchStrategy, dtype: Any) -> np.ndarray:
        return np.array(draw(st.lists(elements, min_size=T * B, max_size=T * B)), dtype=dtype).reshape(T, B)

    rewards = block(eighths, np.float64)
    dones = block(st.sampled_from([False, False, True]), bool)
    lived = block(st.sampled_from([True, True, False]), bool) if valid and draw(st.booleans()) else None
    events = block(st.booleans(), bool) if settle and draw(st.booleans()) else None
    return Stream(rewards, dones if lived is None else dones & lived, lived, events)


@st.composite
def matches(draw: st.DrawFn, longest: int = 16) -> Match:
    """Draw one of the five matchings with its parameter: D = 0, D ≥ N and all between."""
    name = draw(st.sampled_from(["at_end", "after", "evenly", "geometric", "when"]))
    parameter = {
        "after": st.integers(0, longest),
        "evenly": st.integers(1, longest),
        "geometric": st.sampled_from([0.0, 0.125, 0.5, 0.9]),
    }.get(name, st.none())
    return match_of(name, draw(parameter))
