"""payback turns any intrinsic reward into one that cannot change the optimal policy.

Every bonus is a loan, repaid later in the same episode with interest.
"""

from payback.audit import Audit, audit
from payback.center import center, merge_centers
from payback.check import check_boundary, check_causal, check_transform
from payback.episode import match_episode, potential_of, reward_of
from payback.inputs import InterestWarning
from payback.match import match_after, match_at_end, match_evenly, match_geometric, match_when
from payback.matching import LawBroken, check_matching
from payback.recipes import grm, pbim
from payback.rollout import shape_rollout
from payback.saving import load_state, save_state
from payback.transform import RewardTransform, chain, clip, drop, owed, scale

__version__ = "0.1.0"

__all__ = [
    "Audit",
    "InterestWarning",
    "LawBroken",
    "RewardTransform",
    "audit",
    "center",
    "chain",
    "check_boundary",
    "check_causal",
    "check_matching",
    "check_transform",
    "clip",
    "drop",
    "grm",
    "load_state",
    "match_after",
    "match_at_end",
    "match_episode",
    "match_evenly",
    "match_geometric",
    "match_when",
    "merge_centers",
    "owed",
    "pbim",
    "potential_of",
    "reward_of",
    "save_state",
    "scale",
    "shape_rollout",
]
