"""The choices of the arena: the learner's, and what it is trained on."""

from dataclasses import dataclass
from typing import Any

from payback_lab.environments.minigrid.tasks import Payment
from payback_lab.experiments.arena.setting import Setting
from payback_lab.learners.arena.config import ArenaPPO

METHODS = ("none", "im", "pies", "phased", "pbim", "grm-10", "grm-30", "adops", "adopes", "eipo", "hepo")
"""Every method, in the order of tables."""
ADV, TWO = "grm-adv-300-0.99", "two-critics-0.99"
"""The advantage-side form with the longest reach of the single-seed leads, and its rival with the same horizon."""
ADVANTAGE_SIDE = (ADV, f"{ADV}-back", TWO, f"{TWO}-back")
ADDED = (*ADVANTAGE_SIDE, "im-centred")
"""The methods that were added to the finished study: they are tuned and run as the others, and change none of its
choices."""
FADING = ("pies", "phased", "adopes")
"""The methods that have a ζ."""
SETTINGS = ("DoorKey-11x11_a0.02_g0.995",)
"""Where named methods are run if no setting is named: the grid where no bonus fails and the raw one ends far from the
optimum. What is run if nothing is named is in `study.py`."""
STEPS = {"DoorKey-8x8": 2_500_608}
"""Tasks that are trained for another length than the rest unless --steps says otherwise: that on which α is chosen."""


@dataclass(frozen=True)
class ArenaConfig(ArenaPPO):
    """Hold every choice of a run but its method and seed."""

    task: str = "DoorKey-11x11"
    """The MiniGrid task."""
    max_steps: int | None = None
    """Time limit of an episode; none for the task's own."""
    payment: Payment = "one"
    """Reward of success: 1, as the paper has it, or MiniGrid's 1 − 0.9·t/limit."""
    bonus: str = "counts"
    """What F is: "counts" of the simulator's state, "views", "rnd" and others of `learners/arena/bonus.py`."""


def config_of(setting: Setting, steps: int | None) -> ArenaConfig:
    """Return the config of a setting; without `steps`, training takes the task's own length, in whole updates.

    >>> config_of(Setting("Empty-5x5", 0.01, schedule=(0.1, 0.2)), steps=2048).fade_end
    0.2
    """
    rollout = setting.rollout or ArenaConfig.steps
    if steps is None:
        update = ArenaConfig.environments * rollout
        steps = -(-STEPS.get(setting.task, ArenaConfig.total_steps) // update) * update
    changes: dict[str, Any] = {"total_steps": steps, "steps": rollout}
    if setting.schedule is not None:
        start, end = setting.schedule
        changes |= {"fade_start": start, "fade_end": end, "adopes_start": start, "adopes_end": end}
    return ArenaConfig(
        task=setting.task,
        alpha=setting.alpha,
        gamma=setting.gamma,
        max_steps=setting.max_steps,
        bonus=setting.bonus,
        **changes,
    )
