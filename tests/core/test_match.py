"""A match of one's own, written as a user would write it, works wherever ours do; what is missing is refused."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import payback

from .cases import assert_close, random_stream, step_through

GAMMA = 0.9


class Halves(NamedTuple):
    """What a user keeps: the loans of the last two steps."""

    newest: Any
    older: Any


def halves(gamma: float = GAMMA) -> payback.Match:
    """Take half of each reward back one step later, half two steps later."""

    def init(example: Any) -> Halves:
        return Halves(np.zeros(len(example)), np.zeros(len(example)))

    def update(state: Halves, reward: Any, done: Any, valid: Any = None, settle: Any = None) -> tuple[Halves, Any]:
        due = state.newest / 2 / gamma + state.older / 2 / gamma**2
        shaped = np.where(done, -owed(state), reward - due)
        after = Halves(np.where(done, 0, reward), np.where(done, 0, state.newest))
        if valid is not None:
            shaped = np.where(valid, shaped, 0)
            after = Halves(*(np.where(valid, new, old) for new, old in zip(after, state, strict=True)))
        return after, shaped

    def owed(state: Halves) -> Any:
        return state.newest / gamma + state.older / 2 / gamma**2

    def drop(state: Halves, where: Any) -> Halves:
        return Halves(*(np.where(where, 0, loans) for loans in state))

    return payback.Match(init, update, gamma=gamma, owed=owed, drop=drop, falls_due_alone=True)


@pytest.mark.slow
def test_it_is_match_evenly():
    stream = random_stream(0, 60, 4, valid=True)
    expected = step_through(payback.match_evenly(GAMMA, 2), stream)[1]
    assert_close(step_through(halves(), stream)[1], expected)
    assert_close(payback.shape_rollout(halves(), halves().init(np.zeros(4)), *stream)[1], expected)
    payback.check_transform(halves(), GAMMA, effort="quick")


def test_in_a_chain_it_is_a_match():
    ours = payback.chain(payback.center(), halves(), payback.scale(3))
    theirs = payback.chain(payback.center(), payback.match_evenly(GAMMA, 2), payback.scale(3))
    assert isinstance(ours, payback.Match)
    assert (ours.gamma, ours.falls_due_alone) == (GAMMA, True)
    stream = random_stream(1, 40, 3)
    state, shaped = step_through(ours, stream)
    other, expected = step_through(theirs, stream)
    assert_close(shaped, expected)
    assert_close(payback.owed(ours, state), payback.owed(theirs, other))
    for again in (lambda: payback.chain(halves(), halves()), lambda: payback.chain(halves(), payback.clip(0, 1))):
        with pytest.raises(ValueError, match=r"both matches|not a constant scale"):
            again()


def test_through_a_reset_a_save_and_a_load(tmp_path: Path):
    shaping = payback.chain(payback.center(), halves())
    state, _ = step_through(shaping, random_stream(2, 9, 3, ends=0.0))
    where = np.array([True, False, True])
    state, dropped = payback.drop(shaping, state, where)
    assert (dropped != 0).tolist() == where.tolist()
    assert ((payback.owed(shaping, state) == 0) == where).all()
    payback.save_state(tmp_path / "state.npz", state)
    loaded = payback.load_state(tmp_path / "state.npz", like=shaping.init(np.zeros(3)))
    assert type(loaded[1]) is Halves
    rest = random_stream(3, 9, 3)
    assert_close(step_through(shaping, rest, loaded)[1], step_through(shaping, rest, state)[1])


@pytest.mark.parametrize("left_out", ["gamma", "owed", "drop"])
def test_what_a_match_must_have_cannot_be_left_out(left_out: str):
    whole = halves()
    given = {name: getattr(whole, name) for name in ("gamma", "owed", "drop") if name != left_out}
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{left_out}'"):
        payback.Match(whole.init, whole.update, **given)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"gamma": 1.5}, r"gamma must lie in \(0, 1\], got 1.5"),
        ({"owed": None}, "Match: owed must be a function, got None"),
        ({"drop": 3}, "Match: drop must be a function, got 3"),
    ],
)
def test_what_a_match_has_must_be_of_use(change: dict[str, Any], sentence: str):
    whole = halves()
    given = {name: getattr(whole, name) for name in ("gamma", "owed", "drop")} | change
    with pytest.raises((TypeError, ValueError), match=sentence):
        payback.Match(whole.init, whole.update, **given)


def test_a_transform_reads_as_the_call_that_made_it():
    calls = [
        "grm(gamma=0.99, delay=10)",
        "grm(gamma=0.99, delay=10, center=False)",
        "pbim(gamma=0.9, center=center(horizon=1000))",
        "match_at_end(gamma=0.9)",
        "match_when(gamma=0.9)",
        "match_after(gamma=0.9, delay=3)",
        "match_evenly(gamma=0.9, window=3)",
        "match_from_ages(gamma=0.9, shares=[0.5, 0.5])",
        "match_geometric(gamma=0.9, rate=0.5)",
        "chain(clip(0, 1), scale_by_rms(), scale_by_rms(horizon=9), scale(2.5), match_at_end(gamma=1.0))",
    ]
    for call in calls:
        made = eval(call, {name: getattr(payback, name) for name in payback.__all__})
        assert repr(made) == call


def test_numbers_of_numpy_read_as_numbers():
    assert repr(payback.grm(np.float64(0.99), np.int64(10))) == "grm(gamma=0.99, delay=10)"
    assert repr(payback.pbim(np.float64(0.9), center=payback.center(np.int64(9)))) == (
        "pbim(gamma=0.9, center=center(horizon=9))"
    )
    assert repr(payback.chain(payback.scale(np.float64(0.5)), payback.clip(np.int64(0), 1))) == (
        "chain(scale(0.5), clip(0, 1))"
    )
    assert repr(payback.match_from_ages(0.9, np.array([0.25, 0.75]))) == (
        "match_from_ages(gamma=0.9, shares=[0.25, 0.75])"
    )
