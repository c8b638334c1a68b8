"""A law seen to be broken on one stream, before it is made small and told to the user."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from payback.check.stream import Stream

Law = Literal[
    "zero sum",
    "causality",
    "the law",
    "debt",
    "invalid rows",
    "purity",
    "rollout",
    "precision",
    "input",
    "shape",
    "finite",
]
"""What a shaper is held to; `LawBroken.law` of the error that users get."""


class Finding(Exception):  # noqa: N818  it is found, and only then an error
    """A law broken at one step of one environment; `counterexample.tell` turns it into a `LawBroken`."""

    def __init__(
        self,
        law: Law,
        what: str,
        stream: Stream,
        step: Any,
        environment: Any = 0,
        paid: Any = None,
        owed: Any = None,
    ) -> None:
        super().__init__(what)
        # NumPy's numbers come in, Python's go out.
        self.law: Law = law
        self.stream = stream
        """The stream it was seen on."""
        self.step, self.environment = int(step), int(environment)
        self.paid = None if paid is None else float(paid)
        """What was paid there."""
        self.owed = None if owed is None else float(owed)
        """What should have been paid there."""


def refuse_where(
    bad: np.ndarray, law: Law, what: str, stream: Stream, paid: np.ndarray, owed: np.ndarray | None, first: int = 0
) -> None:
    """Raise a `Finding` at the first (step, environment) that is `bad`; row 0 is step `first` of the stream."""
    places = np.argwhere(bad)
    if len(places):
        t, b = places[0]
        raise Finding(law, what, stream, first + t, b, paid[t, b], None if owed is None else owed[t, b])
