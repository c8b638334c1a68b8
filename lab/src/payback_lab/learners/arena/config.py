"""The hyper-parameters of the arena's learner: those of the paper's PPO, and what the methods add."""

from dataclasses import dataclass, fields

from payback_lab.learners.ppo.config import PPO

ARENA_VERSION = 1
"""Increased only when results of the arena would change."""


@dataclass(frozen=True)
class ArenaPPO(PPO):
    """Hold every hyper-parameter; each method reads those that are its own."""

    total_steps: int = 5_001_216
    """Steps of all environments together, whichever policy acts: the first whole number of updates beyond 5 million."""
    fade_start: float = 0.25
    """Share of training at which ζ of `pies` and `phased` begins to rise from 0."""
    fade_end: float = 0.625
    """Share of training from which on that ζ is 1."""
    adopes_start: float = 0.0
    """The same of ADOPES."""
    adopes_end: float = 0.5
    """The same of ADOPES: half of training, as its authors have it."""
    adops_epsilon: float = 1e-7
    """ε of ADOPS: by how much an action that is worse for the task stays worse."""
    eipo_multiplier: float = 0.5
    """EIPO's first α."""
    eipo_rate: float = 0.005
    """Step size of EIPO's α."""
    eipo_clip: float = 0.05
    """The gradient of EIPO's α is clipped to ± this."""
    hepo_weight: float = 1.0
    """HEPO's λ: the weight of the bonus while its multiplier is 0."""
    hepo_rate: float = 0.01
    """Adam's step size for HEPO's multiplier."""

    def __post_init__(self) -> None:
        """Refuse values that cannot be trained with."""
        PPO(**{field.name: getattr(self, field.name) for field in fields(PPO)})
        for name in ("total_steps", "eipo_multiplier", "eipo_rate", "eipo_clip", "hepo_weight", "hepo_rate"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be more than 0")
        if not self.adops_epsilon >= 0:
            raise ValueError(f"adops_epsilon is {self.adops_epsilon}; it must not be below 0")
        if self.total_steps % self.samples:
            raise ValueError(f"total_steps is {self.total_steps}, no whole number of updates of {self.samples} steps")
        refuse_schedule(self.fade_start, self.fade_end)
        refuse_schedule(self.adopes_start, self.adopes_end)


def refuse_schedule(start: float, end: float) -> None:
    """Refuse a schedule of ζ that does not lie within the training, or ends before it begins.

    >>> refuse_schedule(0.25, 1.5)
    Traceback (most recent call last):
    ValueError: ζ rises from 0.25 to 1.5 of the training; give two shares between 0 and 1, the first not the larger
    """
    if not 0 <= start <= end <= 1:
        raise ValueError(
            f"ζ rises from {start:g} to {end:g} of the training; give two shares between 0 and 1, the first not the "
            "larger"
        )
