"""The errors and warnings of payback, beyond Python's own."""

from __future__ import annotations

import numpy as np


class InvarianceError(ValueError):
    """A matching or shaped rewards would change the optimal policy; the message shows where.

    >>> import payback
    >>> try:
    ...     payback.check_transform(payback.scale(1), gamma=0.9)
    ... except InvarianceError as broken:
    ...     print(broken.violated, broken.step, len(broken.rewards))
    zero sum 0 1

    `violated`: the property: "zero sum", "causality", "policy invariance", "invalid rows", "purity", "rollout" …
    `rewards`: the smallest counter-example found, (N,) rewards of one episode or (T, B) of a stream. `step`: where.
    `paid`, `owed`: the reward paid at that step, and the one that should have been.
    """

    def __init__(
        self,
        message: str,
        *,
        violated: str | None = None,
        rewards: np.ndarray | None = None,
        step: int | None = None,
        paid: float | None = None,
        owed: float | None = None,
    ) -> None:
        super().__init__(message)
        self.violated, self.rewards, self.step, self.paid, self.owed = violated, rewards, step, paid, owed


class InterestWarning(UserWarning):
    """The interest γ⁻ᵏ of long episodes may overflow the dtype.

    >>> import payback
    >>> issubclass(payback.InterestWarning, UserWarning)
    True
    """


class ShapingWarning(UserWarning):
    """An environment or a training loop puts the guarantee at risk; the message says what to do.

    >>> import payback
    >>> issubclass(payback.ShapingWarning, UserWarning)
    True
    """


# Tracebacks name them as users import them.
InvarianceError.__module__ = InterestWarning.__module__ = ShapingWarning.__module__ = "payback"
