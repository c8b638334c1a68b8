"""The cells of `center-cliff`; all else is as `QLearning` has it, whose mean is a recent one."""

from payback_lab.experiments.cliff.config import ABLATIONS as CLIFF_ABLATIONS

BASELINE = "none"
"""Its final return is what convergence is measured by."""
SCHEMES = ("pbim", "grm-10", "grm-30")
CUMULATIVE = "cumulative-mean"
ABLATIONS = {CUMULATIVE: CLIFF_ABLATIONS[CUMULATIVE]}
