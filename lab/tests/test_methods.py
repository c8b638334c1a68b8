"""The schemes are transforms of the core; what repays, keeps the law."""

import numpy as np
import pytest

import payback
from payback_lab.methods import OTHERS, RIVALS, SCHEMES, TITLES, title, transform_of

pytestmark = pytest.mark.filterwarnings("ignore::payback.InterestWarning")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", OTHERS)
def test_what_repays_keeps_the_law(scheme: str):
    transform = transform_of(scheme, 0.995)
    assert transform is not None
    assert transform.gamma == 0.995
    payback.check_transform(transform, 0.995, effort="quick")


@pytest.mark.parametrize("scheme", ["im", "im-centred"])
def test_im_does_not_repay(scheme: str):
    transform = transform_of(scheme, 0.99)
    assert transform is not None
    with pytest.raises(payback.InvarianceError):
        payback.check_transform(transform, 0.99, effort="quick")


def paid(scheme: str, rewards: list[float], settle: list[int] | None = None) -> np.ndarray:
    """Shape one episode with γ = 1/2, without F̄, so that the numbers can be followed by hand."""
    transform = transform_of(scheme, 0.5, mean=payback.scale(1))
    assert transform is not None
    column = np.array(rewards)[:, None]
    done = np.arange(len(rewards))[:, None] == len(rewards) - 1
    flags = None if settle is None else np.array(settle, bool)[:, None]
    _, shaped = payback.shape_rollout(transform, transform.init(column[0]), column, done, settle=flags)
    return shaped[:, 0]


@pytest.mark.parametrize(
    ("scheme", "shaped"),
    [
        # A loan of 1 at the first step; after k steps it has grown to 2^k.
        ("grm-1", [1, -2, 0, 0, 0]),
        ("grm-3", [1, 0, 0, -8, 0]),
        ("grm-30", [1, 0, 0, 0, -16]),
        ("grm-100", [1, 0, 0, 0, -16]),
        ("pbim", [1, 0, 0, 0, -16]),
        # A tenth is due at each step, and seven tenths at the last.
        ("even-10", [1, -0.2, -0.4, -0.8, -0.7 * 16]),
        ("geometric-0.9", [1, -0.1 * 2, -0.09 * 4, -0.081 * 8, -(0.9**3) * 16]),
        ("when", [1, 0, 0, 0, -16]),
    ],
)
def test_each_scheme_repays_when_its_name_says(scheme: str, shaped: list[float]):
    np.testing.assert_allclose(paid(scheme, [1, 0, 0, 0, 0]), shaped)


def test_when_repays_at_the_event():
    """All that was lent before it; what the step itself pays is a new loan."""
    np.testing.assert_allclose(paid("when", [1, 0, 3, 0, 0], settle=[0, 0, 1, 0, 0]), [1, 0, 3 - 4, 0, -3 * 4])
    np.testing.assert_allclose(paid("grm-3", [1, 0, 0, 0, 0], settle=[0, 1, 0, 0, 0]), [1, 0, 0, -8, 0])


@pytest.mark.parametrize("scheme", OTHERS)
def test_the_others_are_of_the_reward_less_its_mean(scheme: str):
    transform = transform_of(scheme, 0.99)
    assert transform is not None
    state, going_on = transform.init(np.zeros(1)), np.zeros(1, bool)
    state, shaped = transform.update(state, np.array([4.0]), ~going_on)
    assert shaped == 0  # an episode of one step: what is lent is repaid at once
    _, shaped = transform.update(state, np.array([9.0]), going_on)
    assert shaped == 9 - 4


def test_every_scheme_has_a_title_and_none_is_twice():
    assert list(TITLES) == [*SCHEMES, *OTHERS, "im-centred", *RIVALS]
    assert len(set(TITLES.values())) == len(TITLES) == 21


def test_another_name_is_refused_with_those_there_are():
    for name in ("grm", "grm-0", "grm-07", "grm-1.5", "even", "geometric-1", "geometric-0.90", "none-raw", "", "GRM-1"):
        with pytest.raises(ValueError, match=r"no scheme .*: choose among none, im, .*, when, or another number"):
            transform_of(name, 0.99)


def test_any_delay_window_and_rate_may_be_named():
    np.testing.assert_allclose(paid("grm-2", [1, 0, 0, 0, 0]), [1, 0, -4, 0, 0])
    np.testing.assert_allclose(paid("even-2", [1, 0, 0, 0, 0]), [1, -1, -2, 0, 0])
    np.testing.assert_allclose(paid("geometric-0.25", [1, 0, 0, 0, 0])[:2], [1, -1.5])
    assert [title(name) for name in ("grm-2", "even-2-raw")] == ["GRM D = 2", "evenly over 2, not normalised"]
