"""payback turns any intrinsic reward into one that cannot change the optimal policy.

Every bonus is a loan, repaid later in the same episode with interest.
"""

from importlib.metadata import version

from payback.auditing.audit import Audit, audit
from payback.check.boundary import check_boundary
from payback.check.causal import check_causal
from payback.check.matching import check_matching
from payback.check.transform import check_transform
from payback.core.center import center, merge_centers
from payback.core.chain import chain
from payback.core.episode import match_episode, potential_of, reward_of
from payback.core.errors import InterestWarning, LawBroken
from payback.core.felt import delay_for, felt_share, interest
from payback.core.matches import (
    match_after,
    match_at_end,
    match_evenly,
    match_from_ages,
    match_geometric,
    match_when,
)
from payback.core.recipes import grm, pbim
from payback.core.rollout import shape_rollout
from payback.core.scaling import clip, scale, scale_by_rms, stateless
from payback.core.state_io import load_state, save_state
from payback.core.transform import Match, RewardTransform, drop, owed

__version__ = version("payback")

__all__ = [
    "Audit",
    "InterestWarning",
    "LawBroken",
    "Match",
    "RewardTransform",
    "audit",
    "center",
    "chain",
    "check_boundary",
    "check_causal",
    "check_matching",
    "check_transform",
    "clip",
    "delay_for",
    "drop",
    "felt_share",
    "grm",
    "interest",
    "load_state",
    "match_after",
    "match_at_end",
    "match_episode",
    "match_evenly",
    "match_from_ages",
    "match_geometric",
    "match_when",
    "merge_centers",
    "owed",
    "pbim",
    "potential_of",
    "reward_of",
    "save_state",
    "scale",
    "scale_by_rms",
    "shape_rollout",
    "stateless",
]

_SUBPACKAGES = ("auditing", "bonuses", "check", "integrations", "mdp", "potentials")


def __dir__() -> list[str]:
    """List the public names and the public modules, nothing else."""
    return sorted([*__all__, *_SUBPACKAGES, "__version__"])
