import re
from fractions import Fraction

import numpy as np
import pytest

from payback import InvarianceError
from payback.theory import check_matching


def printed_hyperparam_m(delay: int):
    """(hyperparam_m) as printed: t' > N − D, where t' ≥ N − D is right."""

    def m(t: int, i: int, N: int) -> float:
        if t == i + delay and t < N - 1:
            return 1.0
        return float(t == N - 1 and i > N - delay)

    return m


def delayed(delay: int):
    return lambda t, i, N: float(t == min(i + delay, N - 1))


@pytest.mark.parametrize("delay", [1, 2, 3, 7, 30])
def test_right_delays_pass_and_the_printed_one_does_not(delay: int) -> None:
    check_matching(delayed(delay))
    with pytest.raises(InvarianceError, match="column") as caught:
        check_matching(printed_hyperparam_m(delay))
    assert "Condition1" in str(caught.value)


def test_first_column_and_row_are_named() -> None:
    with pytest.raises(InvarianceError, match=re.escape("column 1 adds up to 0.5")):
        check_matching(np.array([[0.0, 0, 0], [0, 0, 0], [1, 0.5, 1]]))
    with pytest.raises(InvarianceError, match=r"row 0 repays 1\.0 of the loan of step 1"):
        check_matching(np.array([[0.0, 1.0], [1, 0]]))


def test_a_matching_that_sees_the_end_coming_is_caught() -> None:
    with pytest.raises(InvarianceError, match="depends on the coming end"):
        check_matching(lambda t, i, N: 1 / (N - i) if t >= i else 0.0)
    with pytest.raises(InvarianceError, match="depends on the coming end"):
        check_matching(lambda t, i, N: float(t == max(i, N - 2)) if i < N - 1 else float(t == i))


def test_fractions_are_exact() -> None:
    third = Fraction(1, 3)
    check_matching(
        lambda t, i, N: (
            third
            if i < t < min(i + 3, N - 1)
            else Fraction(0)
            if t != min(i + 3, N - 1)
            else 1 - third * max(0, t - i - 1)
        )
    )
    with pytest.raises(InvarianceError):
        check_matching(lambda t, i, N: Fraction(t == N - 1) * (1 - Fraction(1, 10**30)))


@pytest.mark.parametrize(
    ("matching", "lengths", "message"),
    [(delayed(1), [], "no lengths"), (delayed(1), [0], "at least 1"), (np.zeros((2, 3)), [1], r"\(N, N\)")],
)
def test_bad_input_gets_a_sentence(matching, lengths, message) -> None:
    with pytest.raises(ValueError, match=message):
        check_matching(matching, lengths)
