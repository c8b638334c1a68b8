from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import payback
from payback import InvarianceError
from payback.check.plan import Effort
from payback.check.shaper import check_transform

from .debt_faults import DEBTS
from .environment_faults import ENVIRONMENTS
from .faulty_functions import FUNCTIONS
from .flag_faults import FLAGS
from .planting import GAMMA, each, plain
from .purity_faults import PURITY
from .repayment_faults import REPAYMENT, wrong_gamma
from .right_shapers import RIGHT
from .rollout_faults import ROLLOUTS

OURS = {
    "pbim": payback.pbim(GAMMA),
    "pbim raw": payback.pbim(GAMMA, center=False),
    "grm 1": payback.grm(GAMMA, 1),
    "grm 10": payback.grm(GAMMA, 10),
    "grm 10 raw": payback.grm(GAMMA, 10, center=False),
    "grm 0": payback.grm(GAMMA, 0),
    "grm with a horizon": payback.grm(GAMMA, 10, center=payback.center(100)),
    "evenly": payback.match_evenly(GAMMA, 7),
    "geometric": payback.match_geometric(GAMMA, 0.9),
    "when": payback.match_when(GAMMA),
    "chain": payback.chain(payback.clip(-1, 1), payback.center(), payback.match_after(GAMMA, 60), payback.scale(0.1)),
    "plain loop": each(plain(3)),
}


ALIKE = ("pbim raw", "grm 0", "grm 1", "grm 10", "grm 10 raw", "grm with a horizon", "geometric")
"""Those of which another one, here, at another γ or in the tests of the report, takes the same path."""


def slow(value: Any, is_slow: object) -> Any:
    """A parameter that `make test` may leave out."""
    return pytest.param(value, marks=[pytest.mark.slow] if is_slow else [])


@pytest.mark.parametrize("name", [slow(name, name in ALIKE) for name in OURS])
def test_correct_shapers_pass(name: str) -> None:
    check_transform(OURS[name], GAMMA, effort="quick")


@pytest.mark.parametrize(
    "shaper",
    [
        slow(shaper, j != min(k, 2))
        for k, g in enumerate((0.5, 0.9, 0.999, 1.0))
        for j, shaper in enumerate((payback.pbim(g), payback.grm(g, 20), payback.match_geometric(g, 0.4)))
    ],
    ids=str,
)
def test_correct_shapers_pass_at_every_gamma(shaper: payback.Match) -> None:
    check_transform(shaper, shaper.gamma, effort="quick")


LATE = "a very late age"
"""Its faults show after 33,000 steps; `make test` has a clock of 8 bits for them."""


def planted(*tables: dict[str, dict[str, Any]]) -> list[Any]:
    """All planted faults; those after the first of their mechanism are slow."""
    return [
        pytest.param(shaper, id=f"{mechanism}: {name}", marks=[pytest.mark.slow] if k or mechanism == LATE else [])
        for table in tables
        for mechanism, faults in table.items()
        for k, (name, shaper) in enumerate(faults.items())
    ]


def violation(shaper: Any) -> InvarianceError:
    """The violation that is found at the lowest effort that finds one; "normal" tries what "quick" tries, and more."""
    for effort in ("quick", "normal"):
        try:
            check_transform(shaper, GAMMA, effort=effort)
        except InvarianceError as broken:
            return broken
    pytest.fail("not detected at normal effort")


@pytest.mark.parametrize("shaper", planted(REPAYMENT, ENVIRONMENTS, FLAGS, PURITY, ROLLOUTS, DEBTS))
def test_every_planted_fault_is_caught_with_an_example(shaper: payback.RewardTransform) -> None:
    found = violation(shaper)
    assert found.violated is not None
    if found.violated in ("zero sum", "invalid rows"):
        assert found.step is not None
        assert found.owed is not None
        assert found.paid != found.owed


@pytest.mark.parametrize("shaper", planted(FUNCTIONS))
def test_every_faulty_function_is_caught(shaper: Callable[[np.ndarray], np.ndarray]) -> None:
    assert violation(shaper).violated is not None


@pytest.mark.parametrize("name", RIGHT)
def test_other_correct_shapers_pass(name: str) -> None:
    check_transform(RIGHT[name], GAMMA, effort="quick")


@pytest.mark.parametrize("delay", [slow(0, True), slow(1, True), 4, 10**6])
def test_correct_functions_pass(delay: int) -> None:
    def shape(rewards: np.ndarray) -> np.ndarray:
        match = payback.match_at_end(GAMMA) if delay > 10**5 else payback.match_after(GAMMA, delay)
        dones = np.arange(len(rewards))[:, None] == len(rewards) - 1
        return payback.shape_rollout(match, match.init(rewards[:1]), rewards[:, None], dones)[1][:, 0]

    check_transform(shape, GAMMA, effort="quick")


def test_what_answers_in_float32_is_held_to_float32() -> None:
    match = payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        return match.update(state, reward.astype(np.float32), done, valid, settle)

    narrow = payback.RewardTransform(lambda example: match.init(example.astype(np.float32)), update)
    check_transform(narrow, GAMMA, effort="quick")


def test_a_function_that_answers_in_torch_float32_is_held_to_float32() -> None:
    torch, match = pytest.importorskip("torch"), payback.match_after(GAMMA, 3)

    def shape(rewards: np.ndarray):
        dones = torch.arange(len(rewards))[:, None] == len(rewards) - 1
        column = torch.asarray(rewards[:, None], dtype=torch.float32)
        return payback.shape_rollout(match, match.init(column[0]), column, dones)[1][:, 0]

    check_transform(shape, GAMMA, effort="quick")


def test_the_cause_is_named() -> None:
    for mechanism, fault, cause in [
        ("the interest or its discount is wrong", "wrong gamma", "γ = 0.99"),
        ("nothing is settled", "no repayment at the end", "unpaid end"),
        ("clipped after the match", "clipped after matching", "clipped"),
        ("changed after the match", "standardised after matching", "changed after"),
    ]:
        with pytest.raises(InvarianceError, match=f"it looks like: .*{cause}"):
            check_transform(REPAYMENT[mechanism][fault], GAMMA)


@pytest.mark.slow
def test_a_quadratic_function_is_asked_for_no_episode_that_takes_minutes() -> None:
    def shape(rewards: np.ndarray) -> np.ndarray:
        nonlocal work
        work += len(rewards) ** 2
        return payback.shape_rollout(match, match.init(rewards[:1]), rewards[:, None], _ends(rewards))[1][:, 0]

    match, work = payback.match_after(GAMMA, 2), 0
    assert check_transform(shape, GAMMA).longest_episode == 1000
    assert work < 20e6


def _ends(rewards: np.ndarray) -> np.ndarray:
    return np.arange(len(rewards))[:, None] == len(rewards) - 1


def test_the_counter_example_is_small() -> None:
    with pytest.raises(InvarianceError) as caught:
        check_transform(wrong_gamma(0.99), GAMMA)
    found = caught.value
    assert found.rewards is not None
    assert found.rewards.shape == (2, 1)
    assert found.violated == "zero sum"
    assert found.step == 1
    assert found.paid == pytest.approx(-1 / 0.99)
    assert found.owed == pytest.approx(-1 / GAMMA)
    assert "■" in str(found)


def test_the_counter_example_of_a_rare_fault_is_cut_down() -> None:
    with pytest.raises(InvarianceError) as caught:
        check_transform(REPAYMENT["a state that is not reset later on"]["state leaks from long episodes only"], GAMMA)
    assert caught.value.rewards is not None
    assert caught.value.rewards.size <= 450


@pytest.mark.slow
def test_what_goes_wrong_late_in_a_long_episode_is_named_by_its_step() -> None:
    with pytest.raises(InvarianceError, match="ending at step 9999 pays") as caught:
        check_transform(REPAYMENT["a count over all of training"]["forgets every 10000 steps"], GAMMA)
    assert caught.value.step == 9999


def test_a_centre_that_counts_the_reward_itself_passes() -> None:
    """F̄ may be any causal number: what is lent is G = F − F̄, and that is repaid."""
    match = payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        live = np.ones(len(reward), dtype=bool) if valid is None else valid
        inner, total, count = state
        total, count = total + reward[live].sum(), count + live.sum()
        inner, shaped = match.update(inner, reward - (total / max(count, 1)).astype(reward.dtype), done, valid, settle)
        return (inner, total, count), shaped

    init = lambda example: (match.init(example), np.zeros((), example.dtype), 0)  # noqa: E731
    check_transform(payback.RewardTransform(init, update), GAMMA, effort="quick")


def test_a_transform_of_another_gamma_is_refused_by_name() -> None:
    with pytest.raises(InvarianceError, match="wrong gamma"):
        check_transform(payback.grm(0.99, 3), gamma=0.995)


class StepWise:
    """Shapes one reward after the other, as many loops do."""

    def step(self, reward: float, done: bool) -> float:
        return 0.0 if done else reward


def test_what_is_no_shaper_is_refused() -> None:
    with pytest.raises(TypeError, match="RewardTransform or a function"):
        check_transform(3, GAMMA)  # pyright: ignore
    with pytest.raises(TypeError, match="class StepWise"):
        check_transform(StepWise, GAMMA)  # pyright: ignore
    with pytest.raises(TypeError, match="StepWise: write a function"):
        check_transform(StepWise(), GAMMA)  # pyright: ignore
    with pytest.raises(TypeError, match=r"\(reward, done\)"):
        check_transform(StepWise().step, GAMMA)
    with pytest.raises(ValueError, match="gamma must lie"):
        check_transform(payback.scale(1), 1.5)


@pytest.mark.parametrize(
    ("library", "dtype", "shaping"),
    [
        ("torch", "float32", payback.grm(GAMMA, 3)),
        pytest.param("torch", "float64", payback.pbim(GAMMA), marks=pytest.mark.slow),
        ("jax", "float32", payback.match_after(GAMMA, 3)),
        pytest.param("jax", "float32", payback.grm(GAMMA, 3), marks=pytest.mark.slow),
        pytest.param("jax", "float32", payback.pbim(GAMMA), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_other_array_libraries(library: str, dtype: str, shaping: payback.RewardTransform) -> None:
    xp = pytest.importorskip("jax.numpy" if library == "jax" else library)
    example = xp.zeros(1, dtype=getattr(xp, dtype))
    report = check_transform(shaping, GAMMA, example=example, effort="quick")
    assert (report.libraries, report.dtypes) == ((library,), (dtype,))
    with pytest.raises(InvarianceError):
        check_transform(payback.chain(payback.center(), payback.scale(2)), GAMMA, example=example)


def test_an_error_in_the_shaping_is_shown_with_its_stream() -> None:
    def update(state, reward, done, valid=None, settle=None):
        if done.any():
            raise IndexError("pop from an empty deque")
        return state, reward

    with pytest.raises(InvarianceError, match="IndexError"):
        check_transform(payback.RewardTransform(lambda example: (), update), GAMMA)


def test_the_same_call_tries_the_same_streams() -> None:
    def seen_rewards() -> tuple[list[float], object]:
        seen: list[float] = []
        match = payback.match_after(GAMMA, 3)

        def update(state, reward, done, valid=None, settle=None):
            seen.append(float(reward.sum()))
            return match.update(state, reward, done, valid, settle)

        return seen, check_transform(payback.RewardTransform(match.init, update), GAMMA, effort="quick")

    one, other = seen_rewards(), seen_rewards()
    assert one[1] == other[1]
    assert np.array_equal(one[0], other[0], equal_nan=True)


def test_the_report_says_what_was_checked() -> None:
    report = check_transform(payback.grm(GAMMA, 2), GAMMA, effort="quick")
    assert {"zero sum", "policy invariance", "debt"} <= set(report.properties)
    assert report.longest_episode == 3000
    assert (report.libraries, report.dtypes) == (("numpy",), ("float64", "float32", "float16"))
    assert report.refused == ()
    assert not report.pays_nothing
    assert report.seconds > 0
    assert f"{report.streams} streams" in str(report)
    with pytest.raises(ValueError, match="'quick', 'normal', 'thorough'"):
        check_transform(payback.grm(GAMMA, 2), GAMMA, effort="forever")  # pyright: ignore


def test_the_report_says_that_a_delay_of_0_pays_nothing() -> None:
    assert "no effect" in str(check_transform(payback.grm(GAMMA, 0), GAMMA, effort="quick"))
    assert check_transform(np.zeros_like, GAMMA, effort="quick").pays_nothing


def test_inputs_that_are_refused_are_reported() -> None:
    match = payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        if done.dtype != bool or reward.dtype == np.float16:
            raise TypeError("booleans and float32 or float64, please")
        return match.update(state, reward, done, valid, settle)

    report = check_transform(payback.RewardTransform(match.init, update), GAMMA, effort="quick")
    assert report.refused == ("float16", "uint8 flags", "int64 flags", "float32 flags")


@pytest.mark.parametrize(
    ("effort", "least", "most"),
    [("quick", 20_000, 50_000), pytest.param("normal", 50_000, 100_000, marks=pytest.mark.slow)],
)
def test_each_effort_takes_a_bounded_number_of_steps(effort: Effort, least: int, most: int) -> None:
    """Counted, because seconds say little on a shared machine."""
    match, calls = payback.match_after(GAMMA, 3), 0

    def update(state, reward, done, valid=None, settle=None):
        nonlocal calls
        calls += 1
        return match.update(state, reward, done, valid, settle)

    check_transform(payback.RewardTransform(match.init, update), GAMMA, effort=effort)
    assert least < calls < most
