"""What the tests of bad input share: the matches, a state with something in it, and how a refusal is expected."""

import copy
import re
from typing import Any

import numpy as np
import pytest

import payback

from .cases import random_stream, step_through
from .libraries import leaves

MATCHES = {
    "match_at_end": payback.match_at_end(0.9),
    "match_after": payback.match_after(0.9, 3),
    "match_evenly": payback.match_evenly(0.9, 3),
    "match_geometric": payback.match_geometric(0.9, 0.5),
    "match_when": payback.match_when(0.9),
}
each_match = pytest.mark.parametrize("name", MATCHES)


def refuses(error: type[Exception], *words: str) -> Any:
    """Expect one sentence with all of these words, in this order."""
    return pytest.raises(error, match="(?s)" + ".*".join(re.escape(word) for word in words))


def midway(transform: payback.RewardTransform, B: int = 3, example: Any = None) -> Any:
    """Return a state with something in it."""
    if example is not None:
        return transform.init(example)
    return step_through(transform, random_stream(0, 4, B, ends=0.0))[0]


class Unchanged:
    """Hold a state, and see that whatever goes wrong inside leaves every bit of it."""

    def __init__(self, state: Any):
        self.state = state

    def __enter__(self) -> Any:
        self.before = copy.deepcopy(self.state)
        return self.state

    def __exit__(self, *error: Any) -> None:
        for new, old in zip(leaves(self.state), leaves(self.before), strict=True):
            np.testing.assert_array_equal(np.asarray(new), np.asarray(old))


NO = np.zeros(3, bool)
