"""The figures that may predict how soon a scheme learns: the effective share of the bonus, and the noise beside it.

    η    = 1 − Σ_k m_k λᵏ                            the effective share
    η_T  = 1 − Σ_k m_k λᵏ max(0, 1 − k/T)            with rollouts of T steps that bootstrap
    σ²   = Σ_{a≥1} (Σ_{k≥a} m_k γ⁻ᵏ c^(k−a))²        variance of Â_t from the repayment of earlier loans, c = γλ
    R    = c⁵η / √(η²/(1 − c²) + σ²)                 beside all noise, because later loans are noise for this action too

docs/predictions.md fixed these before the runs; docs/which-delay.md derives them.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

import payback
from payback_lab.learners.ppo.config import PPO
from payback_lab.methods import is_raw, transform_of

BACK = 5
"""Steps before the novelty at which the action is taken; fitted to earlier runs and fixed since."""
AGES = 4000
"""Ages at which a repayment is looked for: no matching of the study repays later."""


class Felt(NamedTuple):
    """Hold the candidates, each larger where learning should be sooner."""

    share: float
    in_rollouts: float
    beside_repayments: float
    five_steps_back: float
    beside_all_noise: float


NAMES: Mapping[str, str] = MappingProxyType(
    {
        "share": "η",
        "in_rollouts": "η_T",
        "beside_repayments": "η/σ",
        "five_steps_back": "c⁵η/σ",
        "beside_all_noise": "R",
    }
)
"""How the candidates are written."""


@cache
def felt(scheme: str, gamma: float, lam: float, rollout: int = PPO().steps) -> Felt:
    """Return the candidates of a scheme that repays what it pays, or of `none`, whose share is 0.

    >>> [round(x, 3) for x in felt("grm-30", 0.995, 0.95)]
    [0.785, 0.836, 0.224, 0.169, 0.14]
    """
    transform = transform_of(scheme, gamma)
    if transform is None:
        return Felt(0.0, 0.0, 0.0, 0.0, 0.0)
    share, discount = payback.felt_share(transform, lam), gamma * lam
    noise = repayment_noise(shares(scheme, gamma), gamma, discount)
    ratio, back = share / noise, discount**BACK
    later = share**2 / (1 - discount**2)
    return Felt(
        share,
        payback.felt_share(transform, lam, rollout=rollout),
        ratio,
        back * ratio,
        back * share / float(np.sqrt(later + noise**2)),
    )


def shares(scheme: str, gamma: float) -> np.ndarray:
    """Return m_k, the share of a loan that a scheme repays at age k, by paying it one loan of 1, (AGES,).

    >>> shares("grm-2", 0.9)[:4].round(12)
    array([0., 0., 1., 0.])
    """
    if not isinstance(transform_of(scheme, gamma), payback.Match):
        raise ValueError(f"{scheme} repays nothing.")
    transform = transform_of(scheme if is_raw(scheme) else f"{scheme}-raw", gamma)
    assert transform is not None
    loan, going_on = np.zeros((AGES, 1)), np.zeros((AGES, 1), dtype=bool)
    loan[0] = 1.0
    _, paid = payback.shape_rollout(transform, transform.init(loan[0]), loan, going_on)
    return (loan - paid)[:, 0] * gamma ** np.arange(AGES)


def repayment_noise(repaid: np.ndarray, gamma: float, discount: float) -> float:
    """Return σ: the standard deviation of Â_t from the repayment of earlier loans of variance 1.

    >>> noise = repayment_noise(np.array([0.0, 0.0, 0.0, 1.0]), 0.995, 0.995 * 0.95)
    >>> c = 0.995 * 0.95
    >>> bool(np.isclose(noise**2, 0.995**-6 * (1 - c**6) / (1 - c**2)))
    True
    """
    grown = repaid[1:] * gamma ** -np.arange(1.0, len(repaid))
    # What is left to charge at age a of all that is repaid from then on, from the last age back to the first.
    left, total = 0.0, 0.0
    for amount in grown[::-1]:
        left = amount + discount * left
        total += left**2
    return float(np.sqrt(total))
