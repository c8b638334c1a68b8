"""The effective share of the bonus, η: how much of it is left in its own advantage estimate; and the interest.

Take GAE(λ), Â_t = Σ_k (γλ)^k δ_{t+k}, and a bonus F_t whose share m_k is repaid at age k: −γ⁻ᵏ m_k F_t at step t + k.
The critic sees the state but not the debt, so it does not predict the repayment of this one bonus, which adds to Â_t

    F_t − Σ_k (γλ)^k γ⁻ᵏ m_k F_t = η F_t,      η = 1 − Σ_k m_k λᵏ = 1 − E[λᴷ]     (effective share)

where K is the age at repayment, or at the episode's last step if that is sooner. γ cancels.
"""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from payback.core.transform import Match, RewardTransform, Schedule
from payback.core.validate import read_count, read_gamma, read_share

NEGLIGIBLE = 1e-16  # a repayment whose weight λᵏ in the advantage is below this changes no digit of η
MOST_STEPS = 100_000  # the most steps of a user-defined match to find its effective share
INTEREST_STEPS = 10_000  # the most steps of a user-defined match to find its interest


def felt_share(
    transform: RewardTransform,
    lam: float,
    *,
    n_steps: int | None = None,
    rollout: int | None = None,
    length: int | None = None,
) -> float:
    """Return η, the effective share of the bonus: what it adds to its own advantage, 0 nothing, 1 as a raw bonus.

        η = 1 − E[λᴷ · 1{K < n_steps} · max(0, 1 − K/rollout)]                              (effective share)

    `lam`: λ of GAE. With λ = 1 and no other limit the estimate reaches the episode's end, and η is 0.
    `n_steps`: the estimate bootstraps after n steps; the n-step return is `lam=1, n_steps=n`.
    `rollout`: rollouts of T steps bootstrap at their border; η is the average over the bonus's place in the rollout.
    `length`: episodes have this many steps, and the last one repays the rest; η is the average over the bonus's step.
    Without it, the episode lasts until the bonus is repaid.

    A chain has the η of its match, `match_when` with an event every W steps that of `match_evenly(gamma, W)`. A
    user-defined match is stepped in NumPy with one bonus of 1. A transform that repays nothing has η = 1.

    >>> import payback
    >>> round(felt_share(payback.grm(0.995, delay=30), 0.95), 2)
    0.79
    >>> round(felt_share(payback.grm(0.995, delay=30), 1.0, rollout=128), 2)
    0.23
    >>> felt_share(payback.match_at_end(0.99), 0.5, length=2), felt_share(payback.scale(1), 0.95)
    (0.25, 1.0)
    """
    lam = read_share("lam", lam)
    limits = {"n_steps": n_steps, "rollout": rollout, "length": length}
    given = {name: read_count(name, value, least=1) for name, value in limits.items() if value is not None}
    match = _match_in(transform)
    if match is None:
        return 1.0
    if lam == 1 and n_steps is None and rollout is None:
        return 0.0  # the last step repays the rest, and λᴷ = 1 whenever that is
    if not given:
        return 1 - _expected_power(match, lam)
    ages = min(given.values())
    age, schedule = np.arange(ages), _schedule(match, ages)
    later = schedule.shares[-1] * schedule.fade ** np.arange(1.0, max(0, ages - len(schedule.shares)) + 1)
    shares = np.concatenate((schedule.shares[:ages], later))
    if length is not None:
        # A loan made a steps before the last repays m_k at ages k < a and the rest at age a. Each a < length is equally
        # likely, so length − 1 − k of them leave m_k as it is, and one settles.
        left = 1 - np.concatenate(([0.0], np.cumsum(shares[:-1])))
        shares = (shares * (length - 1 - age) + left) / length
    in_time = 1.0 if rollout is None else np.maximum(0.0, 1 - age / rollout)  # the chance that no border comes first
    return float(1 - shares @ (lam**age * in_time))


def interest(transform: RewardTransform) -> float:
    """Return the largest γ⁻ᴷ, the factor by which a repayment exceeds its bonus; infinity without a bound.

    K is the last age at which the match repays while the episode goes on: D for `match_after`, W for `match_evenly`.
    Others have no bound unless γ = 1, nor has a user-defined match that has not repaid one bonus after 10,000 steps.

    >>> import payback
    >>> round(interest(payback.grm(0.995, delay=100)), 2), interest(payback.pbim(0.995))
    (1.65, inf)
    """
    match = _match_in(transform)
    if match is None:
        raise TypeError(f"{transform!r} repays nothing, so it has no interest; end the chain with a match")
    if match.gamma == 1:
        return 1.0
    last = _last_age(match)
    return math.inf if last is None else _interest_at(match.gamma, last)


def delay_for(gamma: float, lam: float, felt: float = 0.8, interest: float = 2.0) -> int:
    """Return the smallest delay D of `grm` or `match_after` with an effective share of `felt` under GAE(λ).

        D = ⌈log(1 − felt) / log λ⌉,     refused where γ⁻ᴰ > interest

    Assumes episodes and rollouts longer than D; see `felt_share` for shorter ones.

    >>> delay_for(gamma=0.995, lam=0.95)
    32
    >>> delay_for(gamma=0.99, lam=0.99)
    Traceback (most recent call last):
    ValueError: at lam = 0.99 felt = 0.8 needs a delay of 161, whose interest at gamma = 0.99 is 5.04, above 2; ...
    """
    gamma, lam, felt = read_gamma(gamma), read_share("lam", lam), read_share("felt", felt)
    if not isinstance(interest, Real) or isinstance(interest, bool) or not interest >= 1:
        raise ValueError(f"interest must be at least 1, the factor of a repayment to its bonus, got {interest!r}")
    if felt == 0:
        return 0
    if lam == 1:
        raise ValueError("at lam = 1 the estimate sees every repayment, so the effective share is always 0; lower lam")
    if felt == 1 and lam > 0:
        raise ValueError(f"at lam = {lam:g} no delay has an effective share of 1, because λᴰ is never 0; lower felt")
    delay = 1 if lam == 0 else max(1, math.ceil(math.log1p(-felt) / math.log(lam)))
    if delay > 1 and 1 - lam ** (delay - 1) >= felt - 1e-12:  # whichever way the logarithms were rounded
        delay -= 1
    factor = _interest_at(gamma, delay)
    if factor <= interest * (1 + 1e-12):
        return delay
    most = math.floor(math.log(interest) / -math.log(gamma) + 1e-12)
    needs = f"felt = {felt:g} needs a delay of {delay:,}, whose interest at gamma = {gamma:g} is {factor:.3g}"
    lower = f"a delay of {most:,} stays below with felt = {1 - lam**most:.3g}. Lower felt or lam, or raise interest"
    raise ValueError(f"at lam = {lam:g} {needs}, above {interest:g}; {lower}")


def _interest_at(gamma: float, age: int) -> float:
    exponent = -age * math.log(gamma)
    return math.exp(exponent) if exponent < 709 else math.inf


def _match_in(transform: RewardTransform) -> Match | None:
    """Return the match of a transform: itself, or the member of a chain; None without one."""
    if not isinstance(transform, RewardTransform):
        raise TypeError(f"{transform!r} is not a transform such as payback.grm(0.99, delay=10)")
    if not isinstance(transform, Match):
        return None
    return next((found for part in transform._parts if (found := _match_in(part))), transform)


def _expected_power(match: Match, lam: float) -> float:
    """E[λᴷ] for λ < 1 and an episode that does not end."""
    ages = min(MOST_STEPS, 1 + math.ceil(math.log(NEGLIGIBLE) / math.log(lam)) if lam else 2)
    shares, fade = _schedule(match, ages)
    weights = lam ** np.arange(len(shares))
    if match._schedule() is None and weights[-1] * abs(1 - shares.sum()) > 1e-9:
        weighs = f"which still weighs in the advantage at lam = {lam:g}; pass length= or rollout="
        raise ValueError(f"{match!r} has not repaid a bonus after {len(shares):,} steps, {weighs}")
    tail = shares[-1] * weights[-1] * fade * lam / (1 - fade * lam)
    return float(shares @ weights + tail)


def _schedule(match: Match, ages: int) -> Schedule:
    """Return a match's schedule; a user-defined one is stepped over `ages` steps with one bonus of 1."""
    own = match._schedule()
    if own is not None:
        return own
    state, loan, nothing, no_end = match.init(np.zeros(1)), np.ones(1), np.zeros(1), np.zeros(1, dtype=bool)
    paid, shaped = np.zeros(ages), nothing
    with np.errstate(over="ignore"):  # a debt that is never due may overflow; payments are checked below
        for age in range(ages):
            state, shaped = match.update(state, nothing if age else loan, no_end)
            paid[age] = np.asarray(shaped).item()
    shares = -paid * match.gamma ** np.arange(ages)
    shares[0] += 1
    if not np.isfinite(shares).all():
        bad = paid[~np.isfinite(shares)][0]
        raise ValueError(f"{match!r} paid {bad} after one bonus of 1; run payback.check_transform on it")
    return Schedule(shares.astype(np.result_type(np.asarray(shaped).dtype, np.float32)))


def _last_age(match: Match) -> int | None:
    """Return the last age at which a loan is repaid while the episode goes on; None without one."""
    ages = min(INTEREST_STEPS, math.floor(150 * math.log(10) / -math.log(match.gamma)))
    shares, fade = _schedule(match, ages)
    own = match._schedule() is not None
    eps = float(np.finfo(shares.dtype).eps)
    repaid = np.flatnonzero(np.abs(shares) > (0 if own else math.sqrt(eps)))
    if fade > 0 or not repaid.size:
        return None
    last = int(repaid[-1])
    # A user-defined match has a last age if nothing but rounding follows its last share.
    ends = own or (abs(1 - shares.sum()) < math.sqrt(eps) and np.abs(shares[last + 1 :]).max(initial=0.0) <= 64 * eps)
    return last if ends else None
