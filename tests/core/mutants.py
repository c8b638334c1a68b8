"""Shapers that are wrong in one way each. Most are mistakes found in public code or in the paper's print."""

from fractions import Fraction
from typing import Any

import numpy as np

import payback

from .cases import Matching, after, at_end, episodes
from .properties import GAMMA, Shaper, shaper_of


def by_matrix(matching: Matching, gamma: float = GAMMA, truncations: bool = True) -> Shaper:
    """(drawer) over whole episodes, with none of the checks that `match_episode` makes.

    `truncations=False` does not see that a truncated episode is over.
    """

    def shape(rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> np.ndarray:
        shaped = []
        for steps, _ in episodes(terminated | truncated):
            F = rewards[steps]
            n = len(F)
            N = n if truncations or terminated[steps][-1] else n + 10
            m = [[float(matching(t, i, N)) for i in range(n)] for t in range(n)]
            shaped += [F[t] - sum(gamma ** (i - t) * F[i] * m[t][i] for i in range(n)) for t in range(n)]
        return np.array(shaped)

    return shape


def wrong_power(shift: int) -> Shaper:
    """GRM, D = 2, with interest for `shift` steps too many at every repayment."""
    right = after(2)
    return by_matrix(lambda t, i, N: right(t, i, N) * (GAMMA**-shift if t > i else 1.0))


def never_settles(t: int, i: int, N: int) -> int:
    """Each loan falls due D = 2 steps later, and an episode's end is nothing special."""
    return int(t == i + 2)


def printed_off_by_one(t: int, i: int, N: int) -> int:
    """hyperparam_m as printed, D = 3: t' > N − D, so that F_{N−D} is never repaid."""
    return int(t - i == 3 or (t == N - 1 and i > N - 3))


def peeks_ahead(t: int, i: int, N: int) -> Fraction:
    """Half of each loan is taken back one step before it is paid out, half at the end."""
    early = Fraction(1, 2) if i > 0 else Fraction(0)
    return early * (t == i - 1) + (1 - early) * (t == N - 1)


def depends_on_the_end(t: int, i: int, N: int) -> Fraction:
    """m(t,i,N) = 1/(N−i): meets both of the paper's Conditions, and sums to zero."""
    return Fraction(t >= i, N - i)


def pays_the_last_reward(rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> np.ndarray:
    """PBIM whose last step is paid F_{N−1} beside the settlement: in one-step episodes it is a plain bonus."""
    shaped = by_matrix(at_end())(rewards, terminated, truncated)
    return shaped + np.where(terminated | truncated, rewards, 0.0)


def settles_everywhere_but_at_the_end(rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> np.ndarray:
    """PBIM with the end test inverted."""
    over = terminated | truncated
    right = by_matrix(at_end())(rewards, terminated, truncated)
    return np.where(over, rewards, right - rewards)


def centers_after_matching(rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> np.ndarray:
    """The match comes first, and the mean of what it paid is subtracted: `chain` refuses to build it."""
    matched = by_matrix(after(2))(rewards, terminated, truncated)
    return shaper_of(payback.center())(matched, terminated, truncated)


def clips_after_matching(rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> np.ndarray:
    return np.clip(by_matrix(at_end())(rewards, terminated, truncated), -1, 1)


def rereads_the_mean(rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> np.ndarray:
    """GRM, D = 2: pays F_t − F̄_t and takes back F_{t−D} − F̄_t, with the mean of the day of repayment."""
    mean = np.array([rewards[:t].mean() if t else 0.0 for t in range(len(rewards))])
    shaped = []
    for steps, _ in episodes(terminated | truncated):
        F, now, n = rewards[steps], mean[steps], steps.stop - steps.start
        m = [[after(2)(t, i, n) for i in range(n)] for t in range(n)]
        repaid = [sum(GAMMA ** (i - t) * (F[i] - now[t]) * m[t][i] for i in range(n)) for t in range(n)]
        shaped += [F[t] - now[t] - repaid[t] for t in range(n)]
    return np.array(shaped)


def forgets_the_end(rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> np.ndarray:
    """The debt of an episode is left to the next: it is never settled where the loan was made."""
    return shaper_of(payback.match_after(GAMMA, 3))(rewards, terminated & False, truncated & False)


class Mutant:
    """A wrong shaper, the checks that see it and the checks that cannot."""

    def __init__(self, shaper: Shaper, caught: set[str], unseen: set[str]):
        self.shaper, self.caught, self.unseen = shaper, caught, unseen


BLIND = {"later rewards", "coming end"}
MUTANTS: dict[str, Mutant] = {
    "γ one power short": Mutant(wrong_power(-1), {"zero sum", "optimal actions"}, BLIND),
    "γ one power over": Mutant(wrong_power(1), {"zero sum", "optimal actions"}, BLIND),
    "no settlement at any end": Mutant(by_matrix(never_settles), {"zero sum", "optimal actions"}, BLIND),
    "no settlement at truncation": Mutant(
        by_matrix(at_end(), truncations=False), {"zero sum", "optimal actions"}, BLIND
    ),
    "debt carried into the next episode": Mutant(forgets_the_end, {"zero sum", "optimal actions"}, BLIND),
    "the paper's printed off-by-one": Mutant(by_matrix(printed_off_by_one), {"zero sum", "optimal actions"}, BLIND),
    "the last reward paid": Mutant(pays_the_last_reward, {"zero sum", "optimal actions"}, BLIND),
    "end test inverted": Mutant(settles_everywhere_but_at_the_end, {"zero sum", "optimal actions"}, set()),
    "peek ahead": Mutant(by_matrix(peeks_ahead), {"later rewards"}, {"zero sum"}),
    "1/(N−i)": Mutant(by_matrix(depends_on_the_end), {"coming end", "optimal actions"}, {"zero sum", "later rewards"}),
    "centred after matching": Mutant(centers_after_matching, {"zero sum", "optimal actions"}, BLIND),
    "clipped after matching": Mutant(clips_after_matching, {"zero sum", "optimal actions"}, BLIND),
    "mean re-read at repayment": Mutant(rereads_the_mean, {"zero sum", "optimal actions"}, BLIND),
    "a second γ": Mutant(by_matrix(after(2), gamma=0.99), {"zero sum", "optimal actions"}, BLIND),
}
"""Caught and unseen, as they were found to be: which check is needed for what."""

WRONG_DELAY: dict[str, tuple[Any, Matching]] = {
    "one step late": (payback.match_after(GAMMA, 3), after(2)),
    "one step early": (payback.match_after(GAMMA, 1), after(2)),
    "at the end": (payback.match_at_end(GAMMA), after(2)),
}
"""Valid shapings, but not the one asked for: only the comparison with (drawer) can tell."""
