"""The felt share against brute force (the advantage with and without one loan), closed forms, and THEORY's figures."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import payback
from payback.core import felt

from .cases import quiet
from .test_match import halves

pytestmark = quiet

GAMMA = 0.9
LOAN = 2.5


# ------------------------------------------------------------------ brute force: what a loan adds to its own advantage


def advantage(rewards: np.ndarray, values: np.ndarray, at: int, stop: int, ended: bool, lam: float) -> float:
    """Â_at = Σ_k (γλ)^k δ: the deltas up to `stop`, where the estimate bootstraps unless the episode has ended."""
    total = 0.0
    for t in range(at, stop):
        after = 0.0 if ended and t == stop - 1 else values[t + 1]
        total += (GAMMA * lam) ** (t - at) * (rewards[t] + GAMMA * after - values[t])
    return total


def paid_for(transform: payback.RewardTransform, rewards: np.ndarray, length: int | None, every: int) -> np.ndarray:
    """Run `update` over one episode, which ends with step `length` − 1; an event is flagged every so many steps."""
    state, paid = transform.init(np.zeros(1)), []
    for t, reward in enumerate(rewards):
        done, event = np.array([t + 1 == length]), np.array([bool(every) and t % every == 0])
        state, shaped = transform.update(state, np.array([reward]), done, settle=event)
        paid.append(shaped[0])
    return np.array(paid)


def felt_by_brute_force(
    transform: payback.RewardTransform,
    lam: float,
    *,
    n_steps: int | None = None,
    rollout: int | None = None,
    length: int | None = None,
    horizon: int = 60,
    every: int = 0,
) -> float:
    """Average, over where it is made, of what a loan adds to its own advantage, over the loan; the critic is fixed."""
    steps, rng = length or horizon, np.random.default_rng(0)
    background, values = rng.normal(size=steps), rng.normal(size=steps + 1)
    without = paid_for(transform, background, length, every)
    shares = []
    for at in range(length or every or 1):
        more = background.copy()
        more[at] += LOAN
        with_loan = paid_for(transform, more, length, every)
        for border in [at + 1 + left for left in range(rollout)] if rollout else [steps]:
            stop = min(border, steps, at + n_steps if n_steps else steps)
            rest = at, stop, stop == length, lam
            shares.append((advantage(with_loan, values, *rest) - advantage(without, values, *rest)) / LOAN)
    return float(np.mean(shares))


def own_after(delay: int) -> payback.Match:
    """A match as a user may write it: its state is a plain array of the last loans."""

    def update(loans: Any, reward: Any, done: Any, valid: Any = None, settle: Any = None) -> tuple[Any, Any]:
        shaped = np.where(done, -owed(loans), reward - loans[-1] / GAMMA**delay)
        return np.where(done, 0, np.concatenate((reward[None], loans[:-1]))), shaped

    def owed(loans: Any) -> Any:
        return sum(loan / GAMMA ** (k + 1) for k, loan in enumerate(loans))

    def drop(loans: Any, where: Any) -> Any:
        return np.where(where, 0, loans)

    return payback.Match(lambda x: np.zeros((delay, len(x))), update, gamma=GAMMA, owed=owed, drop=drop)


def own_geometric(rate: float, dtype: Any = np.float64) -> payback.Match:
    def update(debt: Any, reward: Any, done: Any, valid: Any = None, settle: Any = None) -> tuple[Any, Any]:
        shaped = np.where(done, -debt, reward - (1 - rate) * debt).astype(dtype)
        return np.where(done, 0, (rate * debt + reward) / GAMMA).astype(dtype), shaped

    return payback.Match(np.zeros_like, update, gamma=GAMMA, owed=np.copy, drop=lambda debt, at: np.where(at, 0, debt))


OURS: dict[str, payback.RewardTransform] = {
    "at once": payback.match_after(GAMMA, 0),
    "after 1": payback.match_after(GAMMA, 1),
    "after 7": payback.match_after(GAMMA, 7),
    "evenly 5": payback.match_evenly(GAMMA, 5),
    "ages": payback.match_from_ages(GAMMA, [0.5, 0.0, 0.2, 0.3, 0.0]),
    "negative ages": payback.match_from_ages(GAMMA, [1.0, -0.5, 0.5]),
    "geometric": payback.match_geometric(GAMMA, 0.6),
    "geometric 0": payback.match_geometric(GAMMA, 0),
    "at end": payback.match_at_end(GAMMA),
    "when": payback.match_when(GAMMA),
    "grm": payback.grm(GAMMA, 4, center=False),
    "scaled": payback.chain(payback.match_after(GAMMA, 3), payback.chain(payback.scale(2), payback.scale(0.5))),
}
THEIRS: dict[str, payback.RewardTransform] = {
    "own halves": halves(),
    "own after 7": own_after(7),
    "own geometric": own_geometric(0.6),
    "own in a chain": payback.chain(payback.scale(2), own_after(3), payback.scale(0.5)),
}
MATCHES = OURS | THEIRS
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


def test_the_interest_of_the_tables():
    for delay, factor in {1: 1.01, 3: 1.02, 10: 1.05, 30: 1.16, 100: 1.65}.items():
        assert round(payback.interest(after(delay)), 2) == factor
    assert round(payback.interest(after(640))) == 25


# ------------------------------------------------------------------ interest, and which delay


def test_interest():
    for bounded, last in [("at once", 0), ("after 7", 7), ("evenly 5", 5), ("ages", 4), ("geometric 0", 1), ("grm", 4)]:
        assert payback.interest(OURS[bounded]) == pytest.approx(GAMMA**-last)
    for name in ("at end", "when", "geometric"):
        assert payback.interest(OURS[name]) == math.inf
    assert payback.interest(payback.match_at_end(1.0)) == payback.interest(payback.match_geometric(1.0, 0.5)) == 1
    assert payback.interest(payback.match_from_ages(GAMMA, [1 - 1e-12, 1e-12])) == pytest.approx(GAMMA**-2)
    assert payback.interest(payback.match_after(0.5, 2000)) == math.inf  # more than a float holds


def test_interest_of_ones_own():
    for name, last in {"own halves": 2, "own after 7": 7, "own in a chain": 3}.items():
        assert payback.interest(THEIRS[name]) == pytest.approx(GAMMA**-last)
    assert payback.interest(own_geometric(0.6)) == math.inf
    assert payback.interest(own_geometric(0.999)) == math.inf
    assert payback.interest(own_geometric(0.0, np.float32)) == pytest.approx(1 / GAMMA)
    assert payback.interest(own_geometric(0.6, np.float32)) == math.inf


def test_the_smallest_delay_that_is_felt_so_much():
    for lam in (0.0, 0.5, 0.8, 0.95, 0.99):
        for felt_at_least in (0.0, 0.05, 0.4, 0.8, 0.99):
            delay = payback.delay_for(0.9999, lam, felt_at_least)
            assert payback.felt_share(payback.match_after(0.9999, delay), lam) >= felt_at_least - 1e-12
            if delay:
                assert payback.felt_share(payback.match_after(0.9999, delay - 1), lam) < felt_at_least
    assert payback.delay_for(0.995, 0.95) == 32
    for delay in range(1, 60):  # a share that a delay has exactly asks for that delay, however it is rounded
        assert payback.delay_for(1.0, 0.95, payback.felt_share(after(delay), 0.95)) == delay


def test_the_bound_on_interest_is_met_exactly():
    assert payback.delay_for(0.9, 0.5, felt=1 - 0.5**7, interest=0.9**-7) == 7
    assert payback.delay_for(0.9, 0.99, felt=0.99, interest=math.inf) == 459
    with pytest.raises(ValueError, match=r"needs a delay of 7, whose .* more than 2.0\d*; up to 2.0\d* a delay of 6"):
        payback.delay_for(0.9, 0.5, felt=1 - 0.5**7, interest=0.9**-6.9)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: payback.delay_for(0.99, 0.99), "needs a delay of 161, whose interest at gamma = 0.99 is 5.04, more"),
        (lambda: payback.delay_for(0.99, 1.0), "at lam = 1 no delay is felt, because"),
        (lambda: payback.delay_for(0.99, 0.9, felt=1.0), "no delay is felt in full, because"),
        (lambda: payback.delay_for(0.5, 0.9999, felt=0.9), "is inf, more than 2; up to 2 a delay of 1 is possible"),
        (lambda: payback.delay_for(1.5, 0.9), r"gamma must lie in \(0, 1\], got 1.5"),
        (lambda: payback.delay_for(0.99, -0.1), r"lam must lie in \[0, 1\], got -0.1"),
        (lambda: payback.delay_for(0.99, 0.9, felt=2), r"felt must lie in \[0, 1\], got 2"),
        (lambda: payback.delay_for(0.99, 0.9, interest=0.5), "interest must be at least 1"),
        (lambda: payback.delay_for(0.99, 0.9, interest=math.nan), "interest must be at least 1"),
        (lambda: payback.felt_share(after(3), math.nan), r"lam must lie in \[0, 1\], got nan"),
        (lambda: payback.felt_share(after(3), True), r"lam must lie in \[0, 1\], got True"),
        (lambda: payback.felt_share(after(3), 0.9, rollout=0), "rollout must be a whole number of steps, at least 1"),
        (lambda: payback.felt_share(after(3), 0.9, n_steps=1.5), "n_steps must be a whole number of steps, at least 1"),
        (lambda: payback.felt_share(after(3), 0.9, length=-2), "length must be a whole number of steps, at least 1"),
        (lambda: payback.felt_share(3, 0.9), "3 is not a transform such as"),  # type: ignore[arg-type]
        (lambda: payback.interest(payback.scale(1)), "repays nothing, so there is no interest"),
    ],
)
def test_bad_input_gets_one_sentence(call: Callable[[], Any], sentence: str):
    with pytest.raises((TypeError, ValueError), match=sentence):
        call()


def test_one_that_never_repays_and_one_that_pays_nan():
    whole = own_after(3)
    never = payback.Match(whole.init, lambda s, r, *_: (s, r), gamma=GAMMA, owed=whole.owed, drop=whole.drop)
    assert payback.felt_share(never, 0.9) == 1
    with pytest.raises(ValueError, match="has not repaid a loan after 100,000 steps"):
        payback.felt_share(never, 0.99999)
    broken = payback.Match(whole.init, lambda s, r, *_: (s, r * np.nan), gamma=GAMMA, owed=whole.owed, drop=whole.drop)
    with pytest.raises(ValueError, match="paid nan after one loan of 1"):
        payback.felt_share(broken, 0.9)


def test_a_match_can_still_be_compared_and_hashed():
    match = payback.match_evenly(GAMMA, 3)
    assert hash(match) == hash(match)
    assert match == match
    assert match != payback.match_evenly(GAMMA, 3)


# ------------------------------------------------------------------ mutants: brute force must see each of them


def wrong_weights(change: Callable[[float, np.ndarray, int | None], Any]) -> Callable[..., np.ndarray]:
    return lambda lam, ages, rollout: change(lam, np.arange(ages), rollout) * np.ones(ages)


MUTANTS: dict[str, tuple[str, Any, dict[str, int]]] = {
    "γ does not cancel": ("_weights", wrong_weights(lambda lam, k, T: (GAMMA * lam) ** k), {}),
    "one power over": ("_weights", wrong_weights(lambda lam, k, T: lam ** (k + 1)), {}),
    "no border": ("_weights", wrong_weights(lambda lam, k, T: lam**k), {"rollout": 6}),
    "a border one step late": (
        "_weights",
        wrong_weights(lambda lam, k, T: lam**k * np.maximum(0, 1 - k / (T + 1))),
        {"rollout": 6},
    ),
    "the end is nothing special": ("_in_episodes", lambda shares, length: shares, {"length": 5}),
    "the last reward is paid": (
        "_in_episodes",
        lambda shares, length: np.where(np.arange(len(shares)) == 0, 0, shares),
        {"length": 5},
    ),
    "a loan at the first step only": (
        "_in_episodes",
        lambda shares, length: np.where(np.arange(len(shares)) == length - 1, 1 - shares[:-1].sum(), shares),
        {"length": 5},
    ),
    "one age missing": (
        "_first",
        lambda schedule, ages: np.pad(schedule.shares[: ages - 1], (0, ages))[:ages],
        {"n_steps": 2},
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_brute_force_sees_each_mutant(name: str, monkeypatch: pytest.MonkeyPatch):
    part, mutant, limits = MUTANTS[name]
    match = payback.match_evenly(GAMMA, 3)
    assert agree(match, 0.9, limits)
    monkeypatch.setattr(felt, part, mutant)
    assert not agree(match, 0.9, limits)
