"""What payback raises and warns of, beyond Python's own errors."""

from __future__ import annotations

import numpy as np


class LawBroken(AssertionError, ValueError):  # noqa: N818  it says what happened
    """A matching, or rewards shaped by it, would change the optimal policy. The message shows where.

    >>> import payback
    >>> try:
    ...     payback.check_transform(payback.scale(1), gamma=0.9)
    ... except LawBroken as broken:
    ...     print(broken.law, broken.step, len(broken.rewards))
    zero sum 0 1
    """

    def __init__(
        self,
        message: str,
        *,
        law: str | None = None,
        rewards: np.ndarray | None = None,
        step: int | None = None,
        paid: float | None = None,
        owed: float | None = None,
    ) -> None:
        super().__init__(message)
        self.law = law
        """Which law: "zero sum", "causality", "the law", "invalid rows", "purity", "rollout", "precision" …"""
        self.rewards = rewards
        """The smallest counter-example found: (N,) rewards of one episode, or (T, B) of a stream."""
        self.step = step
        """The step at which the law is seen to be broken."""
        self.paid = paid
        """What was paid there."""
        self.owed = owed
        """What should have been paid there."""


class InterestWarning(UserWarning):
    """The interest γ⁻ᵏ of long episodes comes near what the dtype can hold.

    >>> import warnings, numpy as np, payback
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     state = payback.match_at_end(0.9).init(np.zeros(1, np.float32))
    >>> caught[0].category.__name__
    'InterestWarning'
    """


# Tracebacks name them as users import them.
LawBroken.__module__ = InterestWarning.__module__ = "payback"
