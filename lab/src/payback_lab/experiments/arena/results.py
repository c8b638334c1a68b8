"""The arena's study as far as it is finished: which runs count where, and every method's scores on every task."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from payback_lab.experiments.arena.chosen import FIRST, Screened, cell_of, chosen_alpha, chosen_tasks, screened
from payback_lab.experiments.arena.config import ADDED, METHODS
from payback_lab.experiments.arena.finished import SEEDS, Figures, Finished, finished_runs, first_seeds, seeds_of
from payback_lab.experiments.arena.measures import scores
from payback_lab.experiments.arena.study import Part, limited, parts_of
from payback_lab.over_tasks import Estimate, interquartile_mean, probability_of_improvement


@dataclass(frozen=True)
class StudyResults:
    """Hold the finished runs and read them as the study's parts; a method's runs are those at its own α."""

    finished: Finished

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Return the parts of the study."""
        return parts_of(self.finished)

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Return the four tasks; before the screening has chosen, the two that were fixed."""
        return chosen_tasks(self.finished) or FIRST

    @cached_property
    def screening(self) -> list[Screened]:
        """Return what the screening found, the tasks that separate methods most first."""
        return sorted(screened(self.finished), key=lambda one: -one.separation)

    @property
    def count(self) -> int:
        """Return how many runs are finished."""
        return sum(map(len, self.finished.values()))

    def alpha(self, method: str) -> float | None:
        """Return a method's α, None while it has not been chosen."""
        return chosen_alpha(self.finished, method)

    def runs(self, task: str, method: str, bonus: str = "counts") -> list[Figures]:
        """Return a method's runs on a task."""
        alpha = self.alpha(method)
        return [] if alpha is None else seeds_of(self.finished, cell_of(task, alpha, bonus=bonus), method)

    def limited(self, limit: int, method: str) -> list[Figures]:
        """Return the runs of the sweep of the time limit: three seeds, also where the task's own limit has more."""
        alpha = self.alpha(method)
        return [] if alpha is None else first_seeds(self.finished, limited(alpha, limit), method)

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """Return the tasks on which every method has a finished run: over these, methods are compared."""
        return tuple(task for task in self.tasks if all(self.runs(task, method) for method in METHODS))

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Return the methods that are compared: the study's, and those added that have three seeds on every task."""
        there = [m for m in ADDED if all(len(self.runs(task, m)) >= SEEDS for task in self.compared)]
        return (*METHODS, *(there if self.compared else ()))

    def scores(self, method: str, tasks: Sequence[str] | None = None, bonus: str = "counts") -> list[np.ndarray]:
        """Return a method's scores, task by task."""
        return [scores(task, self.runs(task, method, bonus)) for task in (self.compared if tasks is None else tasks)]

    @cached_property
    def overall(self) -> dict[str, Estimate]:
        """Return every method's interquartile mean score over the compared tasks, the best first; {} before any."""
        if not self.compared:
            return {}
        found = {method: interquartile_mean(self.scores(method)) for method in self.methods}
        return dict(sorted(found.items(), key=lambda entry: -entry[1].value))

    def improvement(self, one: str, other: str, tasks: Sequence[str] | None = None, bonus: str = "counts") -> Estimate:
        """Return the probability that a seed of one method scores higher than one of another."""
        return probability_of_improvement(self.scores(one, tasks, bonus), self.scores(other, tasks, bonus))

    def seeds(self, tasks: Sequence[str] | None = None) -> tuple[int, int]:
        """Return the smallest and the largest number of seeds of a method on the compared tasks."""
        counts = [len(own) for method in METHODS for own in self.scores(method, tasks)]
        return (min(counts), max(counts)) if counts else (0, 0)

    def enough(self, tasks: Sequence[str] | None = None) -> bool:
        """Say whether every method has the seeds that a comparison on these tasks needs."""
        return self.seeds(tasks)[0] >= SEEDS


def study_results(runs: Iterable[Figures]) -> StudyResults:
    """Read the runs of a summary."""
    return StudyResults(finished_runs(runs))
