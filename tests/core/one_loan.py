"""What one loan adds to its own advantage, by brute force: GAE of a stream with and without it, for a fixed critic."""

from typing import Any

import numpy as np

import payback

from .test_match import halves

GAMMA = 0.9
LOAN = 2.5


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
