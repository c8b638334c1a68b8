"""(e) Every check accepts the real code and rejects the mutants it is there for."""

import pytest

import payback

from .cases import after, at_end, evenly, geometric, quiet
from .mutants import MUTANTS, WRONG_DELAY, Mutant, by_matrix, centers_after_matching, rereads_the_mean
from .properties import CHECKS, GAMMA, Shaper, check_drawer, shaper_of

pytestmark = quiet

REAL = {
    "match_at_end": (payback.match_at_end(GAMMA), at_end(), False),
    "match_after-0": (payback.match_after(GAMMA, 0), after(0), False),
    "match_after-1": (payback.match_after(GAMMA, 1), after(1), False),
    "match_after-2": (payback.match_after(GAMMA, 2), after(2), False),
    "match_after-50": (payback.match_after(GAMMA, 50), after(50), False),
    "match_evenly": (payback.match_evenly(GAMMA, 3), evenly(3), False),
    "match_geometric": (payback.match_geometric(GAMMA, 0.5), geometric(0.5), False),
    "match_when": (payback.match_when(GAMMA), at_end(), False),  # with no event flagged
    "pbim": (payback.pbim(GAMMA), at_end(), True),
    "grm-1": (payback.grm(GAMMA, 1), after(1), True),
    "grm-3": (payback.grm(GAMMA, 3), after(3), True),
}


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", REAL)
def test_the_real_code_is_accepted(name: str, check: str):
    CHECKS[check](shaper_of(REAL[name][0]))


@pytest.mark.parametrize("name", REAL)
def test_the_real_code_is_drawer(name: str):
    transform, matching, centered = REAL[name]
    check_drawer(shaper_of(transform), matching, centered)


@pytest.mark.parametrize("name", MUTANTS)
def test_each_mutant_is_caught_by_the_checks_that_are_there_for_it(name: str):
    mutant: Mutant = MUTANTS[name]
    assert mutant.caught
    for check in mutant.caught:
        with pytest.raises(AssertionError):
            CHECKS[check](mutant.shaper)
    for check in mutant.unseen:
        CHECKS[check](mutant.shaper)


def test_every_check_is_needed():
    """Without any one of the first three, some mutant would pass for the real thing."""
    plain = {"zero sum", "later rewards", "coming end"}
    for check in plain:
        assert any(mutant.caught & plain == {check} for mutant in MUTANTS.values())


@pytest.mark.parametrize("name", WRONG_DELAY)
def test_a_wrong_delay_is_caught_by_the_definition_alone(name: str):
    transform, asked_for = WRONG_DELAY[name]
    shaper = shaper_of(transform)
    for check in CHECKS.values():
        check(shaper)
    with pytest.raises(AssertionError):
        check_drawer(shaper, asked_for, centered=False)


@pytest.mark.parametrize("shaper", [rereads_the_mean, centers_after_matching, by_matrix(after(2))])
def test_wrong_centring_is_not_the_drawer_of_what_was_paid(shaper: Shaper):
    with pytest.raises(AssertionError):
        check_drawer(shaper, after(2), centered=True)
