"""What docs/predictions.md says of Stable-Baselines3 before the runs, decided from the committed runs."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from payback_lab.experiments.arena.finished import Figures, Finished, seeds_of
from payback_lab.experiments.arena.measures import solved_steps
from payback_lab.experiments.hosts.experiment import FEW, NORMALISED, SEEDS, TASKS, Choices, alphas, middle
from payback_lab.experiments.hosts.setting import COUNTS, EPISODIC, LIFETIME, Setting
from payback_lab.experiments.studies.verdicts import Judged, decided
from payback_lab.over_tasks import probability_of_improvement
from payback_lab.statistics import Estimate

Pair = tuple[str, str]
"""Task and bonus."""


class HostRuns:
    """Hold the committed runs, and read the cells of the comparison from them."""

    def __init__(self, chosen: Choices, finished: Finished) -> None:
        self.chosen, self.finished = chosen, finished

    @property
    def methods(self) -> tuple[str | None, ...]:
        """Return no bonus, the raw bonus, GRM and the advantage-side form; None for one that is not chosen yet."""
        return "none", "im", self.chosen.grm, self.chosen.form

    @property
    def made(self) -> int:
        """Return how many runs are there."""
        return sum(map(len, self.finished.values()))

    @property
    def pairs(self) -> list[Pair]:
        """Return every task with every bonus that is known."""
        return [(task, bonus) for task in TASKS for bonus in self.chosen.bonuses]

    def alpha(self, task: str, bonus: str, method: str | None) -> float | None:
        """Return the α that a method has; None for a raw bonus that is not tuned yet."""
        return self.chosen.alphas.get((task, bonus)) if method == "im" else middle(task)

    def cell(self, task: str, bonus: str, method: str | None) -> list[Figures]:
        """Return a cell's five seeds, as far as they are there; [] for one that is not decided."""
        alpha = self.alpha(task, bonus, method)
        if method is None or alpha is None:
            return []
        return self._seeds(Setting(task, alpha, COUNTS if method == "none" else bonus), method, SEEDS)

    def complete(self, cells: Iterable[tuple[str, str, str | None]]) -> bool:
        """Say whether all five seeds of these cells are there."""
        return all(len(self.cell(*cell)) == SEEDS for cell in cells)

    def at_alpha(self, method: str | None, alpha: float, *, normalised: bool) -> list[Figures]:
        """Return the three seeds that ask what the normalisation of advantages does."""
        return self._seeds(Setting(NORMALISED, alpha, COUNTS, normalised), method, FEW) if method else []

    def ready(self, bonus: str) -> list[Figures]:
        """Return the first three seeds of GRM with a ready bonus at its default α."""
        method = self.chosen.grm
        return self._seeds(Setting(NORMALISED, middle(NORMALISED), bonus), method, FEW) if method else []

    def _seeds(self, setting: Setting, method: str, seeds: int) -> list[Figures]:
        return [run for run in seeds_of(self.finished, setting.name, method) if run_seed(run) < seeds]


def run_seed(run: Figures) -> int:
    """Return the seed in a run's id.

    >>> run_seed({"id": "hosts/DoorKey-8x8_a0.02_episodic-count/im/seed10"})
    10
    """
    return int(run["id"].rpartition("seed")[2])


def is_solved(runs: Sequence[Figures]) -> np.ndarray:
    """Return which seeds solve the task."""
    return np.array([run["solved_step"] is not None for run in runs])


def solved(runs: Sequence[Figures]) -> int:
    """Return how many seeds solve the task."""
    return int(is_solved(runs).sum())


def first_goals(runs: Sequence[Figures]) -> np.ndarray:
    """Return each seed's first step with a solved episode; one without counts with all of its steps."""
    steps = [run["trained_steps"] if run["first_goal_step"] is None else run["first_goal_step"] for run in runs]
    return np.array(steps, dtype=np.float64)


def final_lengths(runs: Sequence[Figures]) -> np.ndarray:
    """Return each seed's mean length of the final agent's episodes."""
    return np.array([run["sampled_length"] for run in runs], dtype=np.float64)


def of_hosts(runs: HostRuns) -> list[Judged]:
    """Judge the predictions of "In Stable-Baselines3"."""
    return [*_of_normalisation(runs), *_of_reliability(runs), *_of_form(runs), *_of_none(runs), _of_ready(runs)]


def alpha_matters(runs: HostRuns, *, normalised: bool) -> Estimate | None:
    """Return the probability that the first solved episode comes sooner at the largest α than at the smallest.

    Over the raw bonus and the advantage-side form; None while a seed is missing.
    """
    small, *_, large = alphas(NORMALISED)
    methods = ("im", runs.chosen.form)
    ones = [runs.at_alpha(method, large, normalised=normalised) for method in methods]
    others = [runs.at_alpha(method, small, normalised=normalised) for method in methods]
    if any(len(own) < FEW for own in (*ones, *others)):
        return None
    return probability_of_improvement([-first_goals(own) for own in ones], [-first_goals(own) for own in others])


def _of_normalisation(runs: HostRuns) -> list[Judged]:
    judged = []
    for normalised, text in (
        (True, "With normalisation the first solved episode does not depend on α within a factor of 16."),
        (False, "Without normalisation it does."),
    ):
        chance = alpha_matters(runs, normalised=normalised)
        if chance is None:
            judged.append(decided(text, False))
            continue
        same = chance.low <= 0.5 <= chance.high
        measured = f"sooner at the largest α with probability {chance.format('.2f')}"
        judged.append(decided(text, True, same == normalised, measured))
    return judged


def _of_reliability(runs: HostRuns) -> list[Judged]:
    raw = {task: runs.cell(task, COUNTS, "im") for task in TASKS}
    judged = [
        decided(
            "The raw bonus at its best α solves all three tasks with counts.",
            runs.complete((task, COUNTS, "im") for task in TASKS),
            all(2 * solved(own) > len(own) for own in raw.values()),
            "; ".join(f"{task} {solved(own)} of {len(own)}" for task, own in raw.items()),
        )
    ]
    for text, method, reliable in (
        ("GRM is not reliable on DoorKey-8x8.", runs.chosen.grm, False),
        ("The advantage-side form is reliable on DoorKey-8x8.", runs.chosen.form, True),
    ):
        own = runs.cell(NORMALISED, COUNTS, method)
        enough = runs.complete([(NORMALISED, COUNTS, method)])
        judged.append(decided(text, enough, (solved(own) == SEEDS) == reliable, f"{solved(own)} of {len(own)} seeds"))
    return judged


def lower(
    runs: HostRuns, one: str | None, other: str | None, measure: Callable[[Sequence[Figures]], np.ndarray]
) -> Estimate | None:
    """Return the probability that a seed of one method measures lower than one of another, over tasks and bonuses.

    None while a seed is missing.
    """
    if runs.chosen.bonus is None or not runs.complete((*pair, m) for pair in runs.pairs for m in (one, other)):
        return None
    sides = [[-measure(runs.cell(*pair, method)) for pair in runs.pairs] for method in (one, other)]
    return probability_of_improvement(*sides)


def _of_form(runs: HostRuns) -> list[Judged]:
    sooner = lower(runs, runs.chosen.form, "im", solved_steps)
    shorter = lower(runs, runs.chosen.form, "im", final_lengths)
    texts = (
        "The advantage-side form is not better than the tuned raw bonus.",
        "The final agent of the advantage-side form takes fewer steps than that of the tuned raw bonus.",
    )
    if sooner is None or shorter is None:
        return [decided(text, False) for text in texts]
    return [
        decided(texts[0], True, sooner.low <= 0.5, f"sooner with probability {sooner.format('.2f')}"),
        decided(texts[1], True, shorter.low > 0.5, f"shorter with probability {shorter.format('.2f')}"),
    ]


def _of_none(runs: HostRuns) -> list[Judged]:
    own = {task: runs.cell(task, COUNTS, "none") for task in TASKS}
    others = [task for task in TASKS if task != NORMALISED]
    return [
        decided(
            "No bonus solves DoorKey-8x8 in some seeds.",
            runs.complete([(NORMALISED, COUNTS, "none")]),
            0 < solved(own[NORMALISED]) < SEEDS,
            f"{solved(own[NORMALISED])} of {len(own[NORMALISED])} seeds",
        ),
        decided(
            "No bonus solves KeyCorridorS3R3 and MountainCar in no seed.",
            runs.complete((task, COUNTS, "none") for task in others),
            not any(solved(own[task]) for task in others),
            "; ".join(f"{task} {solved(own[task])} of {len(own[task])}" for task in others),
        ),
    ]


def _of_ready(runs: HostRuns) -> Judged:
    share = {}
    for kind in (EPISODIC, LIFETIME):
        own = [runs.ready(bonus) for bonus in kind]
        share[kind] = sum(map(solved, own)) / (FEW * len(kind)) if all(len(r) == FEW for r in own) else None
    episodic, lifetime = share[EPISODIC], share[LIFETIME]
    text = "At the default α a larger share of seeds solves DoorKey-8x8 with episodic bonuses than with lifetime ones."
    if episodic is None or lifetime is None:
        return decided(text, False)
    return decided(text, True, episodic > lifetime, f"{episodic:.0%} against {lifetime:.0%}")
