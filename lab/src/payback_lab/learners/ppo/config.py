"""The hyper-parameters of the PPO learner, with the defaults of torch-ac and of the paper."""

from dataclasses import dataclass, fields

LEARNER_VERSION = 1
"""Increased only when results would change."""


@dataclass(frozen=True)
class PPO:
    """Hold every hyper-parameter."""

    gamma: float = 0.99
    """γ of the learner and of the shaping, because loans cancel only if they are equal."""
    alpha: float = 0.005
    """α of the bonus α/n(s)."""
    environments: int = 16
    """Parallel environments."""
    steps: int = 128
    """Steps of each environment per update."""
    epochs: int = 4
    """Passes over a rollout, an even number, because every second one is shifted by half a recurrence."""
    batch: int = 256
    """Samples per minibatch."""
    recurrence: int = 4
    """Steps of backpropagation through time."""
    learning_rate: float = 1e-3
    """Adam's step size."""
    adam_epsilon: float = 1e-8
    """Adam's ε."""
    gae_lambda: float = 0.95
    """λ of the generalised advantage estimate."""
    clip: float = 0.2
    """PPO's ε: how far probability ratio and value may move per update."""
    entropy_weight: float = 0.01
    """Weight of the entropy in the objective."""
    value_weight: float = 0.5
    """Weight of the value's error in the loss."""
    largest_norm: float = 0.5
    """Gradients are clipped to this norm."""

    def __post_init__(self) -> None:
        """Refuse values that cannot be trained with."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value > 0 and field.name != "gae_lambda":
                raise ValueError(f"{field.name} is {value}; it must be more than 0")
        if self.gamma > 1 or not 0 <= self.gae_lambda <= 1:
            raise ValueError(
                f"gamma is {self.gamma} and gae_lambda {self.gae_lambda}; neither may exceed 1, and λ not be below 0"
            )
        if self.recurrence % 2 or self.steps % self.recurrence or self.batch % self.recurrence:
            raise ValueError(
                f"recurrence is {self.recurrence}, which must be even and divide steps ({self.steps}) and batch "
                f"({self.batch})"
            )
        if self.epochs % 2:
            raise ValueError(f"epochs is {self.epochs}; every second one is shifted, so give an even number")
        if self.samples % self.batch:
            raise ValueError(f"batch is {self.batch}, which does not divide the {self.samples} samples of a rollout")

    @property
    def samples(self) -> int:
        """Return the steps of all environments in one update."""
        return self.environments * self.steps

    @property
    def sequences(self) -> int:
        """Return the number of sequences of `recurrence` steps in a rollout."""
        return self.samples // self.recurrence
