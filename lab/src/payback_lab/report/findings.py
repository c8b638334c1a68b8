"""The three findings that `payback-lab reproduce` prints: sentences written by hand, over the numbers of the runs.

lab/tests/report/test_quoted_figures.py checks the sentences against the committed results.
"""

from collections.abc import Callable
from dataclasses import dataclass

from payback_lab.experiments.cliff.measures import CONVERGED
from payback_lab.experiments.doorkey.measures import MIDDLE
from payback_lab.experiments.reach import setting
from payback_lab.methods import title
from payback_lab.report.cards import figure_of_claims, group_of, mean_of, runs_of
from payback_lab.report.summary import Summary


@dataclass(frozen=True)
class Finding:
    """Hold one finding."""

    experiment: str
    sentence: str
    measure: str
    """What the numbers are."""
    schemes: tuple[str, ...]
    value: Callable[[Summary, str], str]
    """(summary, scheme) → its number, "–" where there is none."""

    @property
    def header(self) -> tuple[str, ...]:
        """Return the header of its table."""
        names = {"none": "no bonus", "im": "raw bonus"}
        return (self.measure, *(names.get(scheme, title(scheme)) for scheme in self.schemes))


def _converged(summary: Summary, scheme: str) -> str:
    figure = figure_of_claims(summary, CONVERGED.label, scheme)
    return f"{figure.mean:,.0f}" if figure else "–"


def _mean(name: str, key: str, form: str) -> Callable[[Summary, str], str]:
    def value(summary: Summary, scheme: str) -> str:
        found = mean_of(runs_of(group_of(summary, name), scheme), key)
        return "–" if found is None else f"{found:{form}}"

    return value


FINDINGS = (
    Finding(
        "cliff",
        "A useless bonus delays Q-learning on the cliff; repaid by GRM it does not.",
        "episodes until convergence",
        ("none", "im", "grm-10"),
        _converged,
    ),
    Finding(
        "doorkey",
        "On DoorKey 8×8 the raw bonus makes agents take long paths; GRM does not.",
        "steps per episode (shortest path: 16.8)",
        ("none", "im", "grm-10"),
        _mean(MIDDLE, "sampled_length", ".0f"),
    ),
    Finding(
        "reach",
        "On DoorKey 11×11, where exploration is needed, GRM solves the task.",
        "episodes solved",
        ("none", "im", "grm-30"),
        _mean(setting(11), "sampled_solved", ".0%"),
    ),
)
