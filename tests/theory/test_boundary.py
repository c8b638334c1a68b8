import itertools

import pytest

from payback import InvarianceError, theory
from payback.theory import check_boundary

GAMMA = 0.9


def walks(longest: int = 4):
    """All episodes of a walk on a line with two actions that may end after any number of steps."""
    for N in range(1, longest + 1):
        for actions in itertools.product((-1, 1), repeat=N):
            place, episode = 0, [0]
            for a in actions:
                place += a
                episode += [a, place]
            yield (*episode[:-1], (episode[-1], "end"))


def phi(state) -> float:
    return 0.0 if isinstance(state, tuple) else 1.0 + 0.3 * state


def test_a_potential_of_the_state_that_is_zero_at_the_end_passes() -> None:
    check_boundary(lambda e, t: phi(e[2 * t]), walks(), GAMMA)


def test_a_potential_of_history_and_time_passes_if_zero_at_the_end() -> None:
    check_boundary(lambda e, t: 0.0 if 2 * t == len(e) - 1 else t + 0.1 * sum(e[0 : 2 * t : 2]), walks(), GAMMA)


@pytest.mark.parametrize(
    "potential",
    [
        lambda e, t: 1.0,
        lambda e, t: float(t),
        lambda e, t: e[2 * t + 1] if 2 * t < len(e) - 1 else 0.0,
        lambda e, t: float(len(e)) if 2 * t < len(e) - 1 else 0.0,
    ],
    ids=["constant to the end", "time to the end", "of the action", "of the coming end"],
)
def test_others_are_caught(potential) -> None:
    with pytest.raises(InvarianceError, match="boundary_condition"):
        check_boundary(potential, walks(), GAMMA)


def test_the_potential_of_a_matching_passes() -> None:
    def potential(episode, t):
        rewards = [float(a) for a in episode[1::2]]
        return theory.potential_of(rewards, lambda t, i, N: float(t == min(i + 2, N - 1)), GAMMA)[t]

    check_boundary(potential, walks(), GAMMA)


def test_bad_input_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="no episodes"):
        check_boundary(lambda e, t: 0.0, [], GAMMA)
    with pytest.raises(ValueError, match="odd number"):
        check_boundary(lambda e, t: 0.0, [(0, 1)], GAMMA)
    with pytest.raises(ValueError, match="not finite"):
        check_boundary(lambda e, t: float("nan"), walks(), GAMMA)
