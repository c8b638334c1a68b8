"""`check_transform`: does shaping code repay every loan, on streams made to find where it does not?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from payback.check.all_streams import check_on_all_streams
from payback.check.black_box import check_function
from payback.check.plan import Effort, plan_for
from payback.check.tried import Tried
from payback.core.arrays import Array
from payback.core.errors import LawBroken
from payback.core.transform import Match, RewardTransform
from payback.core.validate import read_gamma

Shaper = RewardTransform | Callable[[Any], Any]


def check_transform(
    shaper: Shaper, gamma: float, *, example: Array | None = None, effort: Effort = "normal", seed: int = 0
) -> Tried:
    """Raise `LawBroken` unless the shaping repays every loan exactly, on streams made to find where it does not.

        Σ_t γ^t F'_t = 0 in every finished episode                               (zero sum)
        F'_t depends on nothing after t, nor on when the episode ends            (causality)
        Σ_{n≥t} γ^(n−t) F'_n = −Debt_t for every way to go on from step t        (the law)

    `shaper` is a `RewardTransform`, or a function that takes one episode's rewards (N,) and returns what is
    paid instead, (N,). The function must not remember earlier episodes.

    A transform is also held to: environments that keep the law whatever the others do, invalid rows, events, blocks
    that equal stepping, updates that are pure and share no array with the caller, arrays that are strided or read-only,
    flags that are integers (or refused), float32 that stays near float64, and a match's `owed` and `drop`.
    Not seen: *when* a loan is repaid (compare with `match_episode` for that), and what goes wrong only beyond what is
    tried. Returned is how much that was; docs/guarantee.md lists the limits.

    `example` is any array of the library, dtype and device to try it in (NumPy float64, float32 and float16 when it is
    left out). The streams are counted, not timed: the same call tries the same streams on every machine. `effort` is
    "quick" (a second or two for a NumPy transform), "normal" (within ten) or "thorough" (minutes). JAX compiles
    every new shape, so fewer shapes are tried with it.
    The error shows the smallest counter-example found, and holds it: `rewards`, `step`, `paid`, `owed`, `law`.

    >>> import payback
    >>> check_transform(payback.grm(0.99, delay=3), gamma=0.99, effort="quick")
    Tried(streams=..., steps=..., episodes=..., longest_episode=4000, ...)
    >>> check_transform(payback.scale(0.1), gamma=0.99)
    Traceback (most recent call last):
    payback.LawBroken: zero sum: an episode of 1 steps sums to 0.1, not 0 ...
    """
    gamma, plan = read_gamma(gamma), plan_for(effort)
    if isinstance(shaper, RewardTransform):
        _refuse_other_gamma(shaper, gamma)
        return check_on_all_streams(shaper, gamma, example, plan, seed)
    if callable(shaper):
        return check_function(shaper, gamma, plan, seed)
    raise TypeError(
        f"check_transform takes a RewardTransform or a function of one episode's rewards, got {type(shaper).__name__}"
    )


def _refuse_other_gamma(transform: RewardTransform, gamma: float) -> None:
    if isinstance(transform, Match) and not np.isclose(transform.gamma, gamma, rtol=1e-12, atol=0):
        raise LawBroken(
            f"wrong gamma: the transform repays at the interest of γ = {transform.gamma}, the learner discounts "
            f"with {gamma}; build it with the learner's",
            law="gamma",
        )
