"""Which runs of an experiment are asked for, what is left out being as the experiment has it."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from payback_lab.user_error import UserError

Cell = TypeVar("Cell", bound=Hashable)
"""What is run with several seeds."""


@dataclass(frozen=True)
class Asked:
    """Name the runs that are asked for; what is () or None is as the experiment has it."""

    schemes: tuple[str, ...] = ()
    seeds: int | None = None
    """How many, counted from `first_seed`."""
    settings: tuple[str, ...] = ()
    steps: int | None = None
    """A shorter training; None for the whole of it."""
    ablation: str | None = None
    first_seed: int = 0

    def seed_by_seed(self, cells: Mapping[Cell, int]) -> list[tuple[int, Cell]]:
        """List one seed of every cell after the other, so that whatever is stopped is balanced.

        `cells` says how many seeds each has unless told otherwise.

        >>> Asked(first_seed=5).seed_by_seed({"im": 2, "none": 1})
        [(5, 'im'), (5, 'none'), (6, 'im')]
        """
        counts = {cell: self.seeds or usual for cell, usual in cells.items()}
        most = max(counts.values(), default=0)
        return [(self.first_seed + n, cell) for n in range(most) for cell, count in counts.items() if n < count]

    def refuse_part_of(self, what: str, length: int) -> None:
        """Refuse a length of training that is no whole number of updates, or rollouts, of so many steps.

        >>> Asked(steps=5000).refuse_part_of("update", 2048)
        Traceback (most recent call last):
        payback_lab.user_error.UserError: --steps 5,000 is not a whole number of updates of 2,048 steps: give 4,096 ...
        """
        if self.steps is not None and self.steps % length:
            below = self.steps // length * length
            near = f"{below:,} or {below + length:,}" if below else f"{length:,}"
            raise UserError(
                f"--steps {self.steps:,} is not a whole number of {what}s of {length:,} steps: give {near}."
            )
