"""The methods of the arena by name."""

from payback_lab.learners.arena.adops import adops_method
from payback_lab.learners.arena.advantage_side import advantage_side_method
from payback_lab.learners.arena.config import ArenaPPO
from payback_lab.learners.arena.eipo import eipo_method
from payback_lab.learners.arena.hepo import hepo_method
from payback_lab.learners.arena.method import Method
from payback_lab.learners.arena.shaping import shaping_method
from payback_lab.methods import parse_method

OWN = {
    "adops": adops_method,
    "adopes": adops_method,
    "eipo": eipo_method,
    "hepo": hepo_method,
    "grm-adv": advantage_side_method,
    "two-critics": advantage_side_method,
}
"""The methods that are more than what one policy and one critic are paid."""


def method_of(name: str, config: ArenaPPO) -> Method:
    """Return the method of a name; one that does not exist raises a ValueError that lists those that do.

    >>> method_of("eipo", ArenaPPO()).heads
    Heads(policies=2, values=3)
    """
    return OWN.get(parse_method(name).kind, shaping_method)(name, config)
