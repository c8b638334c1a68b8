"""What the paper prints about long cliff walking (`sec:lw`, `fig:returnlarge_test`)."""

from collections.abc import Mapping

MOVES, RETURN = 52, 49
"""The shortest path as printed; the grid that the paper describes has one of 51 moves that returns 50."""
BEST = ("none", "grm-1", "grm-1-raw", "grm-10", "pbim")
"""The schemes whose final reward hovers around 48."""
HOVERS = 48.0
"""What it hovers around."""
PAPER: Mapping[str, Mapping[str, str]] = {"greedy_return": dict.fromkeys(BEST, f"≈ {HOVERS:g}")}
"""Summary key → scheme → figure as printed."""
