"""(a) Stepping is the same as (drawer) over whole episodes, for every matching."""

import numpy as np
import pytest
from hypothesis import given, settings

import payback

from .cases import (
    Match,
    Stream,
    assert_close,
    by_definition,
    calm,
    gammas,
    match_of,
    matches,
    quiet,
    step_through,
    streams,
)

pytestmark = quiet


def assert_streams_as_defined(match: Match, stream: Stream, gamma: float) -> None:
    transform = match.make(gamma)
    state, shaped = step_through(transform, stream)
    expected, owed = by_definition(match, stream, gamma)
    assert_close(shaped, expected, what="shaped")
    assert_close(payback.owed(transform, state), owed, what="owed")


@given(match=matches(), stream=streams(), gamma=gammas)
@settings(calm, max_examples=150)
def test_streaming_is_drawer(match: Match, stream: Stream, gamma: float):
    assert_streams_as_defined(match, stream, gamma)


EDGES = [
    *[pytest.param(N, match_of("after", D), id=f"after-N{N}-D{D}") for N in (1, 2, 3, 6) for D in range(N + 3)],
    *[pytest.param(N, match_of("evenly", W), id=f"evenly-N{N}-W{W}") for N in (1, 2, 6) for W in (1, 2, 5, 6, 9)],
    *[pytest.param(N, match_of("geometric", r), id=f"geometric-N{N}-{r}") for N in (1, 2, 6) for r in (0, 0.5)],
    *[pytest.param(N, match_of("at_end"), id=f"at_end-N{N}") for N in (1, 2, 6)],
    *[pytest.param(N, match_of("when"), id=f"when-N{N}") for N in (1, 2, 6)],
]


@pytest.mark.parametrize(("N", "match"), EDGES)
@pytest.mark.parametrize("gamma", [0.9, 1.0])
def test_each_length_and_delay(N: int, match: Match, gamma: float):
    """Two episodes of N steps, one after the other: N = 1, D = 0, D = N−1, D ≥ N among them."""
    rng = np.random.default_rng(N)
    rewards = rng.normal(size=(2 * N, 1))
    dones = np.zeros((2 * N, 1), bool)
    dones[[N - 1, 2 * N - 1]] = True
    events = rng.random((2 * N, 1)) < 0.4
    assert_streams_as_defined(match, Stream(rewards, dones, None, events), gamma)


def test_match_after_beyond_the_episode_is_match_at_end():
    rng = np.random.default_rng(1)
    dones = np.zeros((9, 1), bool)
    dones[-1] = True
    stream = Stream(rng.normal(size=(9, 1)), dones)
    whole = step_through(payback.match_at_end(0.9), stream)[1]
    for delay in (8, 9, 50):
        assert_close(step_through(payback.match_after(0.9, delay), stream)[1], whole)
    assert np.abs(step_through(payback.match_after(0.9, 7), stream)[1] - whole).max() > 1e-3


def test_delay_zero_pays_nothing():
    stream = Stream(np.ones((4, 2)), np.array([[0, 1], [0, 0], [1, 0], [0, 0]], dtype=bool))
    state, shaped = step_through(payback.match_after(0.9, 0), stream)
    assert not shaped.any()
    assert not payback.owed(payback.match_after(0.9, 0), state).any()


def test_the_smallest_shares_agree():
    """`match_evenly(γ, 1)`, `match_geometric(γ, 0)` and `match_after(γ, 1)` are one matching."""
    rng = np.random.default_rng(2)
    stream = Stream(rng.normal(size=(20, 3)), rng.random((20, 3)) < 0.2)
    after = step_through(payback.match_after(0.9, 1), stream)[1]
    assert_close(step_through(payback.match_evenly(0.9, 1), stream)[1], after)
    assert_close(step_through(payback.match_geometric(0.9, 0), stream)[1], after)


def test_an_event_at_the_last_step_changes_nothing():
    """All is repaid there anyway, and the last reward is lent and repaid at once."""
    rewards, dones = np.array([[2.0], [3.0], [5.0]]), np.array([[0], [0], [1]], dtype=bool)
    match = payback.match_when(0.5)
    without = step_through(match, Stream(rewards, dones))[1]
    assert_close(step_through(match, Stream(rewards, dones, None, dones))[1], without)
    assert_close(without[:, 0], [2.0, 3.0, -14.0])


def test_an_event_in_a_row_that_is_no_transition_repays_nothing():
    match, event = payback.match_when(0.5), np.array([True])
    state, _ = match.update(match.init(np.zeros(1)), np.ones(1), ~event)
    later, shaped = match.update(state, np.ones(1), ~event, ~event, event)
    assert shaped.tolist() == [0.0]
    assert payback.owed(match, later).tolist() == payback.owed(match, state).tolist() == [2.0]


def test_the_other_matches_pass_events_by():
    stream = Stream(np.ones((6, 1)), np.zeros((6, 1), bool), None, np.ones((6, 1), bool))
    for match in (payback.match_at_end(0.9), payback.match_after(0.9, 2), payback.match_geometric(0.9, 0.5)):
        assert_close(step_through(match, stream)[1], step_through(match, stream._replace(settle=None))[1])
