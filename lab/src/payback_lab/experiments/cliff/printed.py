"""What the paper prints about cliff walking (`fig:cw`, `small_cliffwalker_test`)."""

from collections.abc import Mapping

MOVES, RETURN = 13, 88
"""The shortest path."""
AT_OPTIMUM = ("none", "grm-1", "grm-1-raw")
"""The schemes that reach it consistently."""
CONVERGED: Mapping[str, float] = {"none": 500, "im": 4000}
"""Around which episode the paper sees these converge."""
PAPER: Mapping[str, Mapping[str, str]] = {
    "greedy_return": dict.fromkeys(AT_OPTIMUM, f"{RETURN}"),
    "greedy_length": dict.fromkeys(AT_OPTIMUM, f"{MOVES}"),
}
"""Summary key → scheme → figure as printed."""
