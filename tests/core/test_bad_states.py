"""States that belong elsewhere, and interest that the dtype cannot hold."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import payback

from .cases import Stream, quiet, step_through
from .libraries import LIBRARIES
from .refusals import MATCHES, NO, Unchanged, midway, refuses

# ------------------------------------------------------------------ a state from another transform

OWN = {
    "match_at_end": "AtEndState",
    "match_when": "WhenState",
    "match_after": "AgesState",
    "match_evenly": "AgesState",
    "match_geometric": "GeometricState",
}
STRANGERS = [(name, other) for name in OWN for other in OWN if OWN[name] != OWN[other]]


@quiet
@pytest.mark.parametrize(("name", "other"), STRANGERS)
def test_a_state_from_another_match(name: str, other: str):
    match = MATCHES[name]
    sentence = f"{name} was given a state of type {OWN[other]}, not its own {OWN[name]}"
    with Unchanged(midway(MATCHES[other])) as state:
        for use in (
            lambda: match.update(state, np.ones(3), NO),
            lambda: payback.shape_rollout(match, state, np.ones((2, 3)), np.zeros((2, 3), bool)),
        ):
            with refuses(TypeError, sentence, "use the state that this transform's init or update returned"):
                use()
        for use in (lambda: payback.owed(match, state), lambda: payback.drop(match, state, ~NO)):
            with refuses(TypeError, sentence):
                use()


@quiet
def test_a_state_for_another_delay():
    match, state = payback.match_after(0.9, 5), midway(MATCHES["match_after"])
    for use in (
        lambda: match.update(state, np.ones(3), NO),
        lambda: payback.owed(match, state),
        lambda: payback.shape_rollout(match, state, np.ones((2, 3)), np.zeros((2, 3), bool)),
    ):
        with refuses(ValueError, "the state holds loans of the last 3 steps, this transform repays over 5"):
            use()


@quiet
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_state_of_another_gamma_or_of_other_shares(name: str, tmp_path: Path):
    """Also by `load_state(like=…)`, which is where JAX's are compared: a look at a value would break `jit`."""
    array = LIBRARIES[name].array
    zeros, no = array(np.zeros(3)), array(NO)
    for ours, other, what in (
        (payback.match_after(0.9, 2), payback.match_after(0.99, 2), "γ = 0.99, not 0.9"),
        (payback.match_at_end(0.9), payback.match_at_end(0.99), "γ = 0.99, not 0.9"),
        (payback.match_geometric(0.9, 0.5), payback.match_geometric(0.9, 0.4), "other ages or shares"),
        (payback.match_evenly(0.9, 2), payback.match_after(0.9, 2), "other ages or shares"),
        (payback.match_from_ages(0.9, [0.5, 0.5]), payback.match_from_ages(0.9, [0.25, 0.75]), "other ages or shares"),
    ):
        state = other.init(zeros)
        if name != "jax":
            with refuses(ValueError, f"was given the state of a match with {what}"):
                ours.update(state, zeros, no)
            with refuses(ValueError, f"was given the state of a match with {what}"):
                payback.owed(ours, state)
        payback.save_state(tmp_path / "state", state)
        with refuses(ValueError, "holds the state of another transform: its terms (γ and the shares) are"):
            payback.load_state(tmp_path / "state", like=ours.init(zeros))


@quiet
def test_a_state_of_another_chain():
    pbim, grm = payback.pbim(0.9), payback.grm(0.9, 3)
    with refuses(TypeError, "match_at_end was given a state of type AgesState"):
        pbim.update(midway(grm), np.ones(3), NO)
    for stranger in (midway(MATCHES["match_at_end"]), (), midway(grm)[:1], None):
        for use in (
            lambda s=stranger: grm.update(s, np.ones(3), NO),
            lambda s=stranger: payback.owed(grm, s),
            lambda s=stranger: payback.shape_rollout(grm, s, np.ones((1, 3)), np.zeros((1, 3), bool)),
        ):
            with refuses(TypeError, "chain of 2 transforms was given a state of another transform", "use the state"):
                use()
    with refuses(TypeError, "center was given a state of type AgesState, not its own CenterState"):
        payback.center().update(midway(grm)[1], np.ones(3), NO)
    with refuses(TypeError, "scale keeps no state but was given a AgesState; pass ()"):
        payback.scale(2).update(midway(grm)[1], np.ones(3), NO)


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize(
    "make",
    [payback.center, payback.scale_by_rms, lambda horizon: payback.grm(0.9, 2, center=payback.center(horizon))],
    ids=["center", "scale_by_rms", "grm"],
)
def test_a_state_of_another_horizon(name: str, make: Any, tmp_path: Path):
    """Also by `load_state(like=…)`, because under another horizon the mean would stay wrong without a word."""
    array = LIBRARIES[name].array
    zeros, no = array(np.zeros(3)), array(NO)
    for ours, other in ((make(20), make(None)), (make(None), make(20)), (make(20), make(21))):
        state = other.init(zeros)
        if name != "jax":
            with refuses(ValueError, "was given the state of a mean with another horizon"):
                ours.update(state, zeros, no)
        payback.save_state(tmp_path / "state", state)
        with refuses(ValueError, "holds the state of another transform: its mean has another horizon", "load it with"):
            payback.load_state(tmp_path / "state", like=ours.init(zeros))
        payback.load_state(tmp_path / "state", like=other.init(zeros))


def test_a_horizon_is_the_same_in_a_narrower_dtype(tmp_path: Path):
    """NumPy's float64 and JAX's float32 hold 1 − 1/20 differently; a Torch module may be cast to bfloat16."""
    subtract = payback.center(20)
    payback.save_state(tmp_path / "state", subtract.init(np.zeros(3)))
    loaded = payback.load_state(tmp_path / "state", like=subtract.init(LIBRARIES["jax"].array(np.zeros(3, np.float32))))
    assert float(loaded.fade) == pytest.approx(0.95)
    state = subtract.init(torch.zeros(3))
    narrow = state._replace(fade=state.fade.bfloat16())
    after, shaped = subtract.update(narrow, torch.ones(3), torch.zeros(3, dtype=torch.bool))
    assert shaped.tolist() == [1.0] * 3  # nothing is subtracted from the first
    assert after.fade.dtype == torch.bfloat16


def test_reading_a_debt_that_is_not_there():
    for use in (lambda: payback.owed(payback.scale(2), ()), lambda: payback.drop(payback.scale(2), (), NO)):
        with refuses(TypeError, "scale(2) has no debt, because it contains no match"):
            use()


# ------------------------------------------------------------------ interest that overflows


@pytest.mark.parametrize("make", [payback.match_after, payback.match_evenly, payback.grm])
def test_a_delay_whose_interest_overflows_is_refused(make: Any):
    """γ⁻ᴰ ≤ 3.4e38 at γ = ½ means D ≤ 127: said before anything is shaped, and true to the step."""
    sentence = ("overflows float32 at γ = 0.5 after 127 steps, and 128 are asked for", "use at most 127, or", "float64")
    with refuses(ValueError, *sentence):
        make(0.5, 128).init(np.zeros(2, np.float32))
    make(0.5, 127).init(np.zeros(2, np.float32))
    make(0.5, 128).init(np.zeros(2))
    with refuses(ValueError, "overflows float64 at γ = 0.5 after 1023 steps"):
        make(0.5, 1024).init(np.zeros(2))


@pytest.mark.parametrize("make", [payback.match_at_end, payback.match_when, payback.pbim])
@pytest.mark.parametrize(("dtype", "longest"), [(np.float32, 128), (np.float64, 1024)])
def test_an_end_that_may_overflow_is_warned_of(make: Any, dtype: Any, longest: int):
    """At γ = ½ an episode of 128 steps (float32) or 1024 (float64) is the last that can be settled: 2¹²⁷, 2¹⁰²³."""
    with pytest.warns(payback.InterestWarning) as caught:
        make(0.5).init(np.zeros(1, dtype))
    sentence = str(caught[0].message)
    assert f"at γ = 0.5 the interest γ⁻ᵏ overflows {np.dtype(dtype)} in episodes longer than" in sentence
    assert ("use rewards in float64" in sentence) == (dtype == np.float32)
    assert "repay sooner, with grm and a delay" in sentence
    said = int(re.search(r"longer than ([\d,]+) steps", sentence)[1].replace(",", ""))  # type: ignore[index]
    assert longest - 1 <= said <= longest


def test_no_warning_where_it_is_out_of_reach(recwarn: pytest.WarningsRecorder):
    payback.match_at_end(0.999).init(np.zeros(1, np.float32))
    payback.match_at_end(0.99).init(np.zeros(1))
    payback.match_at_end(1).init(np.zeros(1, np.float32))
    assert not recwarn.list


@quiet
@pytest.mark.parametrize("whole", [False, True], ids=["stepping", "rollout"])
def test_the_longest_episode_is_settled(whole: bool):
    match, rewards, dones = payback.match_at_end(0.5), np.zeros((128, 1), np.float32), np.zeros((128, 1), bool)
    rewards[0], dones[-1] = 1, True
    begin = match.init(rewards[0])
    run = payback.shape_rollout(match, begin, rewards, dones) if whole else step_through(match, Stream(rewards, dones))
    assert run[1][-1, 0] == pytest.approx(-(2.0**127), rel=1e-5)


@quiet
@pytest.mark.parametrize("make", [payback.match_at_end, payback.match_when])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_settlement_that_overflows_is_refused(make: Any, library: str):
    match, array = make(0.5), LIBRARIES[library].array
    rewards = np.zeros((140, 2), np.float32)
    rewards[0, 1] = 1
    dones = np.zeros((140, 2), bool)
    dones[139] = True
    sentence = ("the settlement of", "environment 1 overflows", "float32", "γ = 0.5", "127 steps", "float64", "grm")
    begin = match.init(array(rewards[0]))
    with Unchanged(begin) as state, refuses(OverflowError, *sentence):
        payback.shape_rollout(match, state, array(rewards), array(dones))
    for t in range(139):
        begin, _ = match.update(begin, array(rewards[t]), array(dones[t]))
    with Unchanged(begin) as state, refuses(OverflowError, *sentence):
        match.update(state, array(rewards[139]), array(dones[139]))
