"""What GRM teaches under GAE(λ), THEORY's section 7, as an identity to rounding; and what breaks without each part.

    Â_t = Â^E_t + Σ_j (γλ)^j (1 − λ^K) G_{t+j} − Σ_{open i<t} λ^(τ_i−t) γ^(i−t) G_i

The sums run within the episode and the rollout; K is a loan's age at repayment, τ_i the step of it.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest

import payback
from payback_lab.learners.arena import advantage_side
from payback_lab.learners.ppo.update import advantages
from payback_lab.methods import parse_advantage_side

pytestmark = pytest.mark.slow

BEGIN, END = 40, 100
"""The rollout is a window of the stream, so that loans are open at both of its borders."""


class Stream(NamedTuple):
    """Loans G, what GRM makes of them, where episodes end, and when each loan is repaid."""

    G: np.ndarray
    shaped: np.ndarray
    done: np.ndarray
    due: np.ndarray


def stream(delay: int, gamma: float, ends: float, steps: int = 140, seed: int = 0) -> Stream:
    """Draw loans and ends, and shape the loans by the library's GRM."""
    rng = np.random.default_rng(seed)
    G, done = rng.normal(size=steps), rng.random(steps) < ends
    grm = payback.grm(gamma, delay, center=False)
    _, shaped = payback.shape_rollout(grm, grm.init(G[:1]), G[:, None], done[:, None])
    last = np.append(np.flatnonzero(done), 2 * steps + delay)
    due = np.minimum(np.arange(steps) + delay, last[np.searchsorted(last, np.arange(steps))])
    return Stream(G, np.asarray(shaped)[:, 0], done, due)


def gae(reward: np.ndarray, value: np.ndarray, done: np.ndarray, gamma: float, lam: float) -> np.ndarray:
    """GAE(λ) of a rollout with T rewards and T + 1 values, step by step."""
    found, later = np.zeros(len(reward)), 0.0
    for t in reversed(range(len(reward))):
        goes_on = not done[t]
        later = reward[t] + gamma * goes_on * value[t + 1] - value[t] + gamma * lam * goes_on * later
        found[t] = later
    return found


def last_step(s: Stream, t: int) -> int:
    return next((n for n in range(t, END) if s.done[n]), END - 1)


def signal(s: Stream, t: int, gamma: float, lam: float, *, fades: bool = True, border: float = 1.0) -> float:
    """The second term: this loan and later ones, each less its own repayment."""
    found = 0.0
    for n in range(t, last_step(s, t) + 1):
        age = s.due[n] - n if fades else s.due.max()
        share = 1 - lam**age if s.due[n] < END else border + (1 - border) * (1 - lam**age)
        found += (gamma * lam) ** (n - t) * share * s.G[n]
    return found


def repayments(s: Stream, t: int, gamma: float, lam: float, *, only_open: bool = True) -> float:
    """The third term: what was lent before t in this episode and is repaid from t on within the rollout."""
    first = max((n + 1 for n in range(t) if s.done[n]), default=0)
    loans = [i for i in range(first, t) if s.due[i] < END and (s.due[i] >= t or not only_open)]
    return sum(lam ** (s.due[i] - t) * gamma ** (i - t) * s.G[i] for i in loans)


def missed(s: Stream, gamma: float, lam: float, only_open: bool = True, **parts) -> float:
    """How far the identity is from GAE of R + F' with any critic of the task, at worst."""
    rng = np.random.default_rng(1)
    R, V = rng.normal(size=END - BEGIN), rng.normal(size=END - BEGIN + 1)
    shaped, done = s.shaped[BEGIN:END], s.done[BEGIN:END]
    gained = gae(R + shaped, V, done, gamma, lam) - gae(R, V, done, gamma, lam)
    told = [signal(s, t, gamma, lam, **parts) - repayments(s, t, gamma, lam, only_open=only_open)
            for t in range(BEGIN, END)]  # fmt: skip
    return float(np.abs(gained - told).max())


@pytest.mark.parametrize("lam", [0.0, 0.5, 0.95, 1.0])
@pytest.mark.parametrize("delay", [1, 5, 30])
@pytest.mark.parametrize("ends", [0.0, 0.03, 0.3])
def test_gae_of_grm_is_the_signal_less_the_repayment_of_open_loans(delay, ends, lam):
    assert missed(stream(delay, 0.95, ends), 0.95, lam) < 1e-12


@pytest.mark.parametrize(
    "wrong",
    [{"fades": False}, {"border": 0.0}, {"only_open": False}],
    ids=["1 − λ^D near an end", "1 − λ^K at the border", "loans that are repaid already"],
)
def test_without_any_part_of_it_the_identity_fails(wrong):
    assert missed(stream(5, 0.95, 0.03), 0.95, 0.9, **wrong) > 1e-3


@pytest.mark.parametrize("delay", [1, 5, 30])
@pytest.mark.parametrize("ends", [0.0, 0.03, 0.3])
def test_grm_adv_alone_is_the_signal(delay, ends):
    """λ_I = λ and no second critic: A^I is the second term, but for loans that are due beyond the border."""
    gamma, lam = 0.95, 0.9
    s = stream(delay, gamma, ends)
    lone = parse_advantage_side(f"grm-adv-{delay}-{lam}-lone")
    done = jnp.asarray(s.done[BEGIN:END, None])
    f = advantage_side.signal(lone, jnp.asarray(s.G[BEGIN:END, None]), done)
    alive = jnp.concatenate([jnp.ones((1, 1)), 1.0 - done])
    found = advantages(advantage_side.Discounts(gamma * lam, 1.0), f, jnp.zeros_like(alive), alive)
    # K_t is D where the rollout shows no end, whatever comes beyond it.
    shown = s._replace(due=np.where(s.due < END, s.due, np.arange(len(s.G)) + delay))
    told = [signal(shown, t, gamma, lam, border=0.0) for t in range(BEGIN, END)]
    np.testing.assert_allclose(np.asarray(found)[:, 0], told, atol=2e-5)


@pytest.mark.parametrize(("delay", "lam"), [(5, 0.9), (20, 0.95)])
def test_repayments_of_independent_loans_are_noise_of_variance_sigma_squared(delay, lam):
    """Var Â = η²/(1 − c²) + σ² with σ² = γ^(−2D)(1 − c^(2D))/(1 − c²), term by term."""
    gamma, c = 0.97, 0.97 * lam
    s = stream(delay, gamma, ends=0.0, steps=200_000)
    eta, zero = 1 - lam**delay, np.zeros(len(s.G) + 1)
    whole, own = (gae(reward, zero, s.done, c, 1.0) for reward in (s.shaped, eta * s.G))
    inner, sigma2 = slice(200, -200), gamma ** (-2 * delay) * (1 - c ** (2 * delay)) / (1 - c**2)
    assert own[inner].var() == pytest.approx(eta**2 / (1 - c**2), rel=0.02)
    assert (whole - own)[inner].var() == pytest.approx(sigma2, rel=0.02)
    assert whole[inner].var() == pytest.approx(eta**2 / (1 - c**2) + sigma2, rel=0.02)


def debts(s: Stream, gamma: float) -> np.ndarray:
    """What is owed before each step of the rollout and after its last one."""
    found = []
    for t in range(BEGIN, END + 1):
        first = max((n + 1 for n in range(t) if s.done[n]), default=0)
        found.append(sum(gamma ** (i - t) * s.G[i] for i in range(first, t) if s.due[i] >= t))
    return np.array(found)


@pytest.mark.parametrize("ends", [0.0, 0.03, 0.3])
def test_the_charge_of_a_critic_that_expects_a_debt(ends):
    """V = −d adds d_t − (1 − λ)γ Σ_{k≥1} (γλ)^(k−1) d_{t+k}: what is left after d_t is the critic's charge."""
    gamma, lam = 0.9, 0.8
    s = stream(5, gamma, ends)
    done, d = s.done[BEGIN:END], np.random.default_rng(2).random(END - BEGIN + 1)
    found = gae(np.zeros(END - BEGIN), -d, done, gamma, lam)
    for t in range(END - BEGIN):
        last = last_step(s, t + BEGIN) - BEGIN
        steps = range(1, last - t + 1)
        charge = (1 - lam) * gamma * sum((gamma * lam) ** (k - 1) * d[t + k] for k in steps)
        if not done[last]:  # at the border the bootstrapped debt is charged whole
            charge += (gamma * lam) ** (last - t) * gamma * d[last + 1]
        assert found[t] == pytest.approx(d[t] - charge, abs=1e-12)


@pytest.mark.parametrize("delay", [1, 5, 30])
@pytest.mark.parametrize("ends", [0.0, 0.03])
def test_a_critic_that_sees_the_debt_leaves_nothing_of_the_bonus(delay, ends):
    """With V = −Debt the charge takes the signal back: shaped learning is learning without a bonus."""
    gamma, lam = 0.95, 0.9
    s = stream(delay, gamma, ends)
    found = gae(s.shaped[BEGIN:END], -debts(s, gamma), s.done[BEGIN:END], gamma, lam)
    assert np.abs(found).max() < 1e-12
