"""The advantage-side methods against plain loops, what they are at the end of training, and bad ids."""

import jax.numpy as jnp
import numpy as np
import pytest

from payback_lab.learners.arena import advantage_side
from payback_lab.learners.arena.config import ArenaPPO
from payback_lab.learners.arena.estimates import estimated
from payback_lab.learners.arena.named import method_of
from payback_lab.learners.arena.rollout import Collected
from payback_lab.learners.arena.schedule import shrink
from payback_lab.methods import parse_advantage_side, parse_method

from .test_arena_estimates import CONFIG, B, T, equal, loops, rollout, targets

pytestmark = pytest.mark.slow

LAM = 0.7


def ages_by_loop(done: np.ndarray, delay: int) -> np.ndarray:
    found = np.zeros(done.shape, int)
    for t, b in np.ndindex(done.shape):
        ends = np.flatnonzero(done[t:, b])
        found[t, b] = min(delay, ends[0]) if len(ends) else delay
    return found


def intrinsic_by_loop(made: Collected, f: np.ndarray, critic: bool) -> np.ndarray:
    """A^I step by step, from the last to the first."""
    done, g = np.asarray(made.events.done), CONFIG.gamma * LAM
    value = np.concatenate([np.asarray(made.seen.value)[:, -1], np.asarray(made.last_value)[-1][None]])
    found = np.zeros((T, B))
    for b in range(B):
        later = 0.0
        for t in reversed(range(T)):
            goes_on = not done[t, b]
            if critic:
                delta = f[t, b] + g * goes_on * value[t + 1, b] - value[t, b]
                later = delta + g * CONFIG.gae_lambda * goes_on * later
            else:
                later = f[t, b] + g * goes_on * later
            found[t, b] = later
    return found


def check(name: str, zeta: float = 0.0) -> None:
    """Compare a method's estimates with the loops above."""
    form = parse_advantage_side(name)
    made = rollout(1 + form.critic)
    bonus, done = np.asarray(made.events.shaped), np.asarray(made.events.done).astype(bool)
    factor = 1.0
    if form.delay is not None:
        age = ages_by_loop(done, form.delay) if "flat" not in name else form.delay
        factor = 1 - LAM**age
    f = factor * bonus
    task, novelty = loops(made, made.reward, 0), intrinsic_by_loop(made, f, form.critic)
    found = method_of(name, CONFIG).estimates((), jnp.asarray(zeta), made)
    equal(found.paid, f)
    equal(found.advantage[0], task + (1 - zeta) * novelty)
    own = (task, novelty) if form.critic else (task,)
    for ours, theirs in zip(found.target, targets(made, *own), strict=True):
        equal(ours, theirs)


NAMES = [
    f"grm-adv-{delay}-{LAM}{ending}{back}"
    for delay in (1, 3, 300)
    for ending in ("", "-flat", "-lone", "-flat-lone")
    for back in ("", "-back")
] + [f"two-critics-{LAM}{ending}" for ending in ("", "-centred", "-back", "-centred-back")]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("zeta", [0.0, 0.75])
def test_estimates_equal_plain_loops(name, zeta):
    check(name, zeta)


right_ages, right_discounts, right_estimated = advantage_side.ages, advantage_side.Discounts, advantage_side.estimated
right_estimates = advantage_side.Estimates
LONE, CRITIC, TWO, FLAT = (
    f"grm-adv-3-{LAM}-lone",
    f"grm-adv-3-{LAM}-back",
    f"two-critics-{LAM}",
    f"grm-adv-3-{LAM}-flat",
)
MUTANTS = {
    "an end repays a step late": (LONE, "ages", lambda done, delay: jnp.maximum(right_ages(done, delay), 1)),
    "no end is seen": (LONE, "ages", lambda done, delay: delay),
    "the border counts as an end": (LONE, "ages", lambda done, delay: right_ages(done.at[-1].set(1), delay)),
    "the bonus is discounted with gamma": (LONE, "Discounts", lambda gamma, lam: right_discounts(CONFIG.gamma, lam)),
    "the bonus does not fade": (LONE, "signal", lambda form, bonus, done: bonus),
    "the bonus crosses ends": (LONE, "alive_after", lambda collected, first=False: jnp.ones((T + 1, B))),
    "V_I has the task's discount": (CRITIC, "Discounts", lambda gamma, lam: right_discounts(CONFIG.gamma, lam)),
    "GAE of the bonus has λ_I": (CRITIC, "Discounts", lambda gamma, lam: right_discounts(gamma, LAM)),
    "the critics are swapped": (CRITIC, "INTRINSIC", 0),
    "V_I learns the task's return": (
        CRITIC,
        "Estimates",
        lambda advantage, target, counts, paid: right_estimates(advantage, (target[0], target[0]), counts, paid),
    ),
    "the raw bonus is repaid": (TWO, "signal", lambda form, bonus, done: (1 - form.lam**3) * bonus),
    "it fades all the same": (FLAT, "signal", lambda form, bonus, done: (1 - form.lam ** right_ages(done, 3)) * bonus),
    "the task's advantage is of the shaped reward": (
        CRITIC,
        "estimated",
        lambda config, made, reward, critic: right_estimated(
            config, made, reward if critic else made.seen.reward, critic
        ),
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(mutant, monkeypatch):
    name, *change = MUTANTS[mutant]
    monkeypatch.setattr(advantage_side, *change)
    with pytest.raises(AssertionError):
        check(name, zeta=0.25)


def test_taken_back_ends_at_exactly_zero():
    method = method_of("two-critics-0.9-back", CONFIG)
    made = rollout(2)
    at = [float(method.zeta(jnp.asarray(share))) for share in (0.0, 5 / 8, 0.8, 7 / 8, 1.0)]
    assert at[:2] == [0.0, 0.0]
    assert 0 < at[2] < 1
    assert at[3:] == [1.0, 1.0]
    found = method.estimates((), method.zeta(jnp.asarray(7 / 8)), made)
    np.testing.assert_array_equal(found.advantage[0], estimated(CONFIG, made, made.reward, 0))
    assert float(shrink(7 / 8 - 1e-4, 5 / 8, 7 / 8, 1e-3)) == pytest.approx(1e-3, rel=0.01)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("grm-adv-0-0.9", "at least 1 step"),
        ("grm-adv-30-1.5", "between 0 and 1"),
        ("two-critics--0.5", "between 0 and 1"),
        ("grm-adv-30", "grm-adv-300-0.99"),
        ("two-critics-0.9-lone", "two-critics-0.99"),
        ("two-critics-1", "γλ_I = 1"),
    ],
)
def test_bad_ids_get_one_sentence(name, words):
    with pytest.raises(ValueError, match=words):
        method_of(name, ArenaPPO(gamma=1.0))


def test_lambda_one_is_allowed_without_a_second_critic():
    assert parse_method("grm-adv-30-1-lone").number == 30
    assert method_of("grm-adv-30-1-lone", ArenaPPO(gamma=1.0)).heads.values == 1
