import jax.numpy as jnp
import numpy as np
import pytest
import torch

import payback
from payback import LawBroken
from payback.check.transform import check_transform

from .block_faults import BLOCKS
from .conditional_faults import LISTED
from .debt_faults import DEBTS
from .environment_faults import ENVIRONMENTS
from .faults import FAULTS, wrong_gamma
from .faulty_functions import BLACK_BOXES
from .flag_faults import FLAGS
from .further_faults import FURTHER
from .loan_faults import LOANS
from .planting import GAMMA, each, plain
from .rare_faults import RARE
from .right_shapers import RIGHT

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
    "chain": payback.chain(payback.clip(-1, 1), payback.center(), payback.match_after(GAMMA, 300), payback.scale(0.1)),
    "plain loop": each(plain(3)),
}


@pytest.mark.parametrize("name", OURS)
def test_what_keeps_the_law_passes(name: str) -> None:
    check_transform(OURS[name], GAMMA, effort="quick")


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.999, 1.0])
def test_what_keeps_the_law_passes_at_every_gamma(gamma: float) -> None:
    for shaper in (payback.pbim(gamma), payback.grm(gamma, 20), payback.match_geometric(gamma, 0.4)):
        check_transform(shaper, gamma, effort="quick")


PLANTED = FAULTS | RARE | LISTED | FURTHER | LOANS | ENVIRONMENTS | FLAGS | BLOCKS | DEBTS


@pytest.mark.parametrize("name", PLANTED)
def test_every_planted_fault_is_caught_with_a_small_example(name: str) -> None:
    with pytest.raises(LawBroken) as caught:
        check_transform(PLANTED[name], GAMMA)
    found = caught.value
    assert found.law is not None
    if found.law in ("zero sum", "invalid rows"):
        assert found.step is not None
        assert found.owed is not None
        assert found.paid != found.owed


@pytest.mark.parametrize("name", BLACK_BOXES)
def test_every_faulty_function_is_caught(name: str) -> None:
    with pytest.raises(LawBroken):
        check_transform(BLACK_BOXES[name], GAMMA)


@pytest.mark.parametrize("name", RIGHT)
def test_other_right_shapers_pass(name: str) -> None:
    check_transform(RIGHT[name], GAMMA, effort="quick")


@pytest.mark.parametrize("delay", [0, 1, 4, 10**6])
def test_functions_that_keep_the_law_pass(delay: int) -> None:
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

    def shape(rewards: np.ndarray):
        dones = torch.arange(len(rewards))[:, None] == len(rewards) - 1
        column = torch.asarray(rewards[:, None], dtype=torch.float32)
        return payback.shape_rollout(match, match.init(column[0]), column, dones)[1][:, 0]

    check_transform(shape, GAMMA, effort="quick")


def test_the_cause_is_named() -> None:
    for fault, cause in [
        ("wrong gamma", "γ = 0.99"),
        ("no repayment at the end", "unpaid end"),
        ("clipped after matching", "clipped"),
        ("standardised after matching", "changed after"),
    ]:
        with pytest.raises(LawBroken, match=f"it looks like: .*{cause}"):
            check_transform(FAULTS[fault], GAMMA)


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
    with pytest.raises(LawBroken) as caught:
        check_transform(wrong_gamma(0.99), GAMMA)
    found = caught.value
    assert found.rewards is not None
    assert found.rewards.shape == (2, 1)
    assert found.law == "zero sum"
    assert found.step == 1
    assert found.paid == pytest.approx(-1 / 0.99)
    assert found.owed == pytest.approx(-1 / GAMMA)
    assert "■" in str(found)


def test_the_counter_example_of_a_rare_fault_is_cut_down() -> None:
    with pytest.raises(LawBroken) as caught:
        check_transform(FAULTS["state leaks from long episodes only"], GAMMA)
    assert caught.value.rewards is not None
    assert caught.value.rewards.size <= 450


def test_what_goes_wrong_late_in_a_long_episode_is_named_by_its_step() -> None:
    with pytest.raises(LawBroken, match="ending at step 9999 pays") as caught:
        check_transform(RARE["forgets every 10000 steps"], GAMMA)
    assert caught.value.step == 9999


def test_a_centre_that_counts_the_reward_itself_keeps_the_law() -> None:
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
    with pytest.raises(LawBroken, match="wrong gamma"):
        check_transform(payback.grm(0.99, 3), gamma=0.995)


def test_what_is_no_shaper_is_refused() -> None:
    with pytest.raises(TypeError, match="RewardTransform or a function"):
        check_transform(3, GAMMA)  # pyright: ignore
    with pytest.raises(ValueError, match="gamma must lie"):
        check_transform(payback.scale(1), 1.5)


@pytest.mark.parametrize(
    ("example", "shaping"),
    [
        (torch.zeros(1), payback.grm(GAMMA, 3)),
        (torch.zeros(1, dtype=torch.float64), payback.pbim(GAMMA)),
        (jnp.zeros(1), payback.grm(GAMMA, 3)),
        (jnp.zeros(1), payback.pbim(GAMMA)),
    ],
    ids=str,
)
def test_torch_and_jax_transforms(example, shaping) -> None:
    check_transform(shaping, GAMMA, example=example, effort="quick")
    with pytest.raises(LawBroken):
        check_transform(payback.chain(payback.center(), payback.scale(2)), GAMMA, example=example)


def test_an_error_in_the_shaping_is_shown_with_its_stream() -> None:
    def update(state, reward, done, valid=None, settle=None):
        if done.any():
            raise IndexError("pop from an empty deque")
        return state, reward

    with pytest.raises(LawBroken, match="IndexError"):
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


def test_it_says_how_much_it_tried() -> None:
    tried = check_transform(payback.grm(GAMMA, 2), GAMMA, effort="quick")
    assert tried.longest_episode == 4000
    assert tried.dtypes == ("float64", "float32", "float16")
    assert tried.refused == ()
    assert "streams of" in str(tried)
    with pytest.raises(ValueError, match="'quick', 'normal', 'thorough'"):
        check_transform(payback.grm(GAMMA, 2), GAMMA, effort="forever")  # pyright: ignore


def test_what_is_refused_with_an_error_is_told() -> None:
    match = payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        if done.dtype != bool or reward.dtype == np.float16:
            raise TypeError("booleans and float32 or float64, please")
        return match.update(state, reward, done, valid, settle)

    tried = check_transform(payback.RewardTransform(match.init, update), GAMMA, effort="quick")
    assert tried.refused == ("float16", "uint8 flags", "int64 flags", "float32 flags")


def test_normal_effort_takes_a_bounded_number_of_steps() -> None:
    """Counted, because seconds say little on a shared machine; `match_after` takes about 5 s of CPU, `grm` about 8."""
    calls = 0
    match = payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        nonlocal calls
        calls += 1
        return match.update(state, reward, done, valid, settle)

    check_transform(payback.RewardTransform(match.init, update), GAMMA)
    assert 50_000 < calls < 700_000
