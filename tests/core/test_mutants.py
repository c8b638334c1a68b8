"""(e) Every check accepts the real code and rejects the mutants it is there for."""

import pytest

from .cases import MATCHINGS, after, quiet
from .mutants import MUTANTS, WRONG_DELAY, Mutant, by_matrix, centers_after_matching, rereads_the_mean
from .properties import CHECKS, Shaper, check_drawer, shaper_of

pytestmark = quiet


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", MATCHINGS)
def test_the_real_code_is_accepted(name: str, check: str):
    CHECKS[check](shaper_of(MATCHINGS[name][0]))


@pytest.mark.parametrize("name", MATCHINGS)
def test_the_real_code_is_drawer(name: str):
    transform, matching, centered = MATCHINGS[name]
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
