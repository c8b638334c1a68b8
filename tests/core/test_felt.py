"""The felt share against brute force, closed forms, and the figures of THEORY's tables; mutants are seen."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import payback
from payback.core import felt

from .cases import quiet
from .one_loan import GAMMA, MATCHES, felt_by_brute_force, own_after

pytestmark = quiet

LIMITS: list[dict[str, int]] = [
    {},
    {"n_steps": 1},
    {"n_steps": 4},
    {"rollout": 1},
    {"rollout": 6},
    {"rollout": 40},
    {"length": 1},
    {"length": 5},
    {"length": 30},
    {"n_steps": 4, "rollout": 6},
    {"rollout": 6, "length": 9},
    {"n_steps": 3, "length": 9},
    {"n_steps": 3, "rollout": 5, "length": 9},
]


def agree(transform: payback.RewardTransform, lam: float, limits: dict[str, int]) -> bool:
    # Without an end λᵏ must have faded within the horizon, for matches that wait longer.
    horizon = 60 if limits or lam < 0.6 else 400
    brute = felt_by_brute_force(transform, lam, horizon=horizon, **limits)
    return math.isclose(payback.felt_share(transform, lam, **limits), brute, abs_tol=1e-9)


@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize("name", MATCHES)
def test_it_is_what_one_loan_adds_to_its_advantage(name: str, limits: dict[str, int]):
    for lam in (0.0, 0.5, 0.9, 1.0):
        if lam == 1 and not {"n_steps", "rollout", "length"} & set(limits) and name in ("at end", "when"):
            continue  # nothing is repaid before the end: test_monte_carlo_feels_nothing
        assert agree(MATCHES[name], lam, limits), (lam, payback.felt_share(MATCHES[name], lam, **limits))


def test_events_are_felt_as_an_even_window():
    """With an event every W steps the age at repayment is 1 … W, each as often."""
    for lam in (0.5, 0.9):
        brute = felt_by_brute_force(payback.match_when(GAMMA), lam, every=5)
        assert brute == pytest.approx(payback.felt_share(payback.match_evenly(GAMMA, 5), lam), abs=1e-9)


def test_centring_changes_the_loan_and_not_the_share_of_it():
    for lam in (0.5, 0.95):
        centred, plain = payback.grm(GAMMA, 7), payback.match_after(GAMMA, 7)
        assert payback.felt_share(centred, lam) == payback.felt_share(plain, lam)
        # What is left out: the loan moves the later mean by 1/count of itself.
        state = centred.init(np.zeros(1))
        many = np.random.default_rng(1).normal(size=(20_000, 1))
        state, _ = payback.shape_rollout(centred, state, many, np.arange(20_000)[:, None] == 19_999)
        warm = payback.RewardTransform(lambda example, state=state: state, centred.update)
        assert felt_by_brute_force(warm, lam) == pytest.approx(payback.felt_share(centred, lam), abs=1e-3)


# ------------------------------------------------------------------ closed forms, and the figures of THEORY's section 5


@pytest.mark.parametrize("lam", [0.0, 0.3, 0.95, 0.999])
def test_closed_forms(lam: float):
    def share(match: payback.RewardTransform, **limits: int) -> float:
        return payback.felt_share(match, lam, **limits)

    for gamma in (0.9, 0.995, 1.0):
        assert share(payback.match_after(gamma, 12)) == pytest.approx(1 - lam**12, abs=1e-12)
        even = 1 - lam * (1 - lam**12) / (12 * (1 - lam))
        assert share(payback.match_evenly(gamma, 12)) == pytest.approx(even, abs=1e-12)
        for rate in (0.0, 0.4, 0.99):
            expected = (1 - lam) / (1 - rate * lam)
            assert share(payback.match_geometric(gamma, rate)) == pytest.approx(expected, abs=1e-12)
        assert share(payback.match_at_end(gamma)) == share(payback.match_when(gamma)) == 1
        assert share(payback.scale(3)) == share(payback.center()) == 1
        rollout = 1 - lam**12 * (1 - 12 / 128)
        assert share(payback.match_after(gamma, 12), rollout=128) == pytest.approx(rollout, abs=1e-12)
        assert share(payback.match_after(gamma, 12), length=12) == share(payback.match_at_end(gamma), length=12)


def test_a_long_memory_is_closed_too():
    assert payback.felt_share(payback.match_geometric(1.0, 1 - 1e-9), 1 - 1e-9) == pytest.approx(0.5)
    assert payback.felt_share(payback.match_after(0.999, 100_000), 0.99999) == pytest.approx(1 - 0.99999**100_000)


@pytest.mark.parametrize("name", MATCHES)
def test_monte_carlo_feels_nothing(name: str):
    assert payback.felt_share(MATCHES[name], 1.0) == 0
    assert payback.felt_share(MATCHES[name], 1.0, length=20) == 0


def after(delay: int) -> payback.Match:
    return payback.match_after(0.995, delay)


THEORY: list[tuple[payback.RewardTransform, float, dict[str, int], float]] = [
    *((after(delay), 0.95, {}, eta) for delay, eta in {0: 0, 1: 0.05, 3: 0.14, 10: 0.40, 30: 0.79, 100: 0.99}.items()),
    *((after(delay), 0.8, {}, eta) for delay, eta in {3: 0.49, 10: 0.89}.items()),
    *((after(delay), 0.99, {}, eta) for delay, eta in {10: 0.10, 100: 0.63}.items()),
    (payback.match_evenly(0.995, 10), 0.95, {}, 0.24),
    (payback.match_geometric(0.995, 0.9), 0.95, {}, 0.34),
    (payback.match_at_end(0.995), 0.95, {}, 1),
    *((after(delay), 1.0, {"rollout": 128}, eta) for delay, eta in {10: 0.08, 30: 0.23, 100: 0.78, 128: 1}.items()),
    (after(300), 1.0, {"rollout": 128}, 1),
    (after(100), 0.99, {"rollout": 128}, 0.92),
]


def test_the_figures_of_the_tables():
    for transform, lam, limits, eta in THEORY:
        found = payback.felt_share(transform, lam, **limits)
        assert round(found, 2) == eta, (transform, lam, limits, found)


def test_n_step_returns():
    """1 − Σ_{k<n} m_k."""
    match = payback.match_from_ages(0.9, [0.5, 0.3, 0.2])
    assert [round(payback.felt_share(match, 1.0, n_steps=n), 9) for n in (1, 2, 3, 4, 9)] == [1, 0.5, 0.2, 0, 0]


def test_one_that_never_repays_and_one_that_pays_nan():
    whole = own_after(3)
    never = payback.Match(whole.init, lambda s, r, *_: (s, r), gamma=GAMMA, owed=whole.owed, drop=whole.drop)
    assert payback.felt_share(never, 0.9) == 1
    with pytest.raises(ValueError, match="has not repaid a bonus after 100,000 steps"):
        payback.felt_share(never, 0.99999)
    broken = payback.Match(whole.init, lambda s, r, *_: (s, r * np.nan), gamma=GAMMA, owed=whole.owed, drop=whole.drop)
    with pytest.raises(ValueError, match="paid nan after one bonus"):
        payback.felt_share(broken, 0.9)


# ------------------------------------------------------------------ mutants: brute force must see each of them


IN_EPISODES = "(shares * (length - 1 - age) + left) / length"
MUTANTS: dict[str, tuple[str, str, dict[str, int]]] = {
    "γ does not cancel": ("lam**age", "(match.gamma * lam) ** age", {"n_steps": 6}),
    "one power over": ("lam**age", "lam ** (age + 1)", {"n_steps": 6}),
    "no border": ("np.maximum(0.0, 1 - age / rollout)", "1.0", {"rollout": 6}),
    "a border one step late": ("age / rollout", "age / (rollout + 1)", {"rollout": 6}),
    "the end is nothing special": (IN_EPISODES, "shares", {"length": 5}),
    "the last reward is paid": (IN_EPISODES, "np.where(age == 0, 0, shares)", {"length": 5}),
    "a loan at the first step only": (
        IN_EPISODES,
        "np.where(age == length - 1, 1 - shares[:-1].sum(), shares)",
        {"length": 5},
    ),
    "one age missing": (
        "shares = np.concatenate((",
        "shares = (1 - age / (ages - 1)) * np.concatenate((",
        {"n_steps": 2},
    ),
    "γ does not cancel, unlimited": ("weights = lam **", "weights = (match.gamma * lam) **", {}),
    "one power over, unlimited": ("weights = lam **", "weights = lam * lam **", {}),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_brute_force_sees_each_mutant(name: str, monkeypatch: pytest.MonkeyPatch):
    right, wrong, limits = MUTANTS[name]
    match = payback.match_evenly(GAMMA, 3)
    assert agree(match, 0.9, limits)
    source = Path(felt.__file__).read_text()
    assert source.count(right) == 1
    mutant: dict[str, Any] = {"__name__": "mutant"}
    exec(source.replace(right, wrong), mutant)
    monkeypatch.setattr(payback, "felt_share", mutant["felt_share"])
    assert not agree(match, 0.9, limits)
