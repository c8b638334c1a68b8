"""payback turns any intrinsic reward into one that cannot change the optimal policy.

Every bonus is a loan, repaid later in the same episode with interest.
"""

from importlib.metadata import version

from payback import theory as theory
from payback.advantage import grm_adv, taken_back
from payback.auditing.audit import Audit, audit, audit_file
from payback.auditing.record import Recorder
from payback.check.causal import check_causal
from payback.check.shaper import check_transform
from payback.core.center import center, merge_centers
from payback.core.errors import InterestWarning, InvarianceError, ShapingWarning
from payback.core.felt import delay_for, felt_share, interest
from payback.core.matches import (
    grm,
    match_after,
    match_at_end,
    match_evenly,
    match_from_ages,
    match_geometric,
    match_when,
    pbim,
)
from payback.core.rollout import shape_rollout
from payback.core.scaling import (
    clip,
    scale,
    scale_by_return_std,
    scale_by_rms,
    scale_by_schedule,
    scale_by_std,
    stateless,
)
from payback.core.state import load_state, save_state
from payback.core.transform import Match, RewardTransform, chain, drop, owed

__version__ = version("payback")

__all__ = [
    "Audit",
    "InterestWarning",
    "InvarianceError",
    "Match",
    "Recorder",
    "RewardTransform",
    "ShapingWarning",
    "audit",
    "audit_file",
    "center",
    "chain",
    "check_causal",
    "check_transform",
    "clip",
    "delay_for",
    "drop",
    "felt_share",
    "grm",
    "grm_adv",
    "interest",
    "load_state",
    "match_after",
    "match_at_end",
    "match_evenly",
    "match_from_ages",
    "match_geometric",
    "match_when",
    "merge_centers",
    "owed",
    "pbim",
    "save_state",
    "scale",
    "scale_by_return_std",
    "scale_by_rms",
    "scale_by_schedule",
    "scale_by_std",
    "shape_rollout",
    "stateless",
    "taken_back",
]


def __dir__() -> list[str]:
    """List the public names and the public modules, nothing else."""
    return sorted([*__all__, "auditing", "bonuses", "check", "integrations", "mdp", "theory", "__version__"])
