"""The tables of the arena's page: which α, which tasks, every task, every pair of methods, the limit, and RND."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from payback_lab.experiments.arena.chosen import ALPHAS, CANDIDATES, FIRST, chosen_tasks, tuning_shares
from payback_lab.experiments.arena.config import METHODS
from payback_lab.experiments.arena.fewest import FEWEST, LIMITS
from payback_lab.experiments.arena.finished import SEEDS, Figures
from payback_lab.experiments.arena.measures import is_solved, over_fewest, scores, shares, solved_steps
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.experiments.arena.study import DELAYS, RND_METHODS, SWEPT, SWEPT_LIMITS
from payback_lab.over_tasks import false_alarms
from payback_lab.report.charts.arena import name_of
from payback_lab.report.markdown import rows
from payback_lab.statistics import mean_estimate

MEASURED = (
    "seeds",
    "episodes solved",
    "task solved",
    "solved in training from, M steps",
    "length over the fewest",
    "score",
)
CONSTRAINED = ("eipo", "hepo")
NONE_YET = "No run of this part is in it yet."
EXPLAINED = (
    ("no bonus, raw bonus", "leaves F out; adds F"),
    ("PIES, our reading of Behboudian 2022", "adds F with a weight that falls to 0 during training"),
    ("phased-in repayment, ours", "goes over from the raw bonus to GRM with D = 30 during training"),
    ("PBIM, GRM (Forbes 2024)", "lends F, which is repaid at the last step, or D steps later"),
    ("ADOPS (Forbes 2025)", "changes F only where it would change which action is preferred, judged by two critics"),
    ("ADOPES (Forbes 2025)", "goes over from the raw bonus to ADOPS during training"),
    ("EIPO (Chen 2022)", "a policy for reward and F must be as good at the task as a second one for the reward alone"),
    ("HEPO (Lee 2024)", "a policy for reward and F must be as good at the task as a second one for F alone"),
)


def explained() -> str:
    """Say in a line each what the methods do with the bonus."""
    return rows(("method", "what it does with the bonus F"), EXPLAINED)


def made(results: StudyResults) -> str:
    """Say how many runs of each part are in."""
    lines = []
    for part in results.parts:
        waits = "" if part.runs is not None else "; which they are depends on the parts before"
        lines.append((part.title, f"{part.made(results.finished)} of {part.size}{waits}"))
    return rows(("part", "runs that are in"), lines)


def alphas(results: StudyResults) -> str:
    """Write every method's mean share solved over training with each α, and the one that is taken."""
    lines = []
    for method in METHODS:
        found = tuning_shares(results.finished, method)
        if not found:
            continue
        chosen = results.alpha(method)
        cells = [f"{found[a]:.3f}" if a in found else "–" for a in ALPHAS]
        cells = [f"**{cell}**" if a == chosen else cell for a, cell in zip(ALPHAS, cells, strict=True)]
        taken = f"{chosen:g}" if chosen is not None else "open"
        if method == "none":  # its run is kept under some α, which does not matter to it
            cells, taken = ["–"] * len(ALPHAS), f"has no α: {next(iter(found.values())):.3f}"
        lines.append((name_of(method), *cells, taken))
    return rows(("method", *(f"α = {a:g}" for a in ALPHAS), "taken"), lines) if lines else NONE_YET


def screening(results: StudyResults) -> str:
    """Write what the screening found of each candidate, and which were chosen."""
    if not results.screening:
        return NONE_YET
    four = chosen_tasks(results.finished) or ()
    lines = [
        (
            one.task,
            f"{LIMITS[one.task]:,}",
            f"{FEWEST[one.task]:.1f}",
            *(f"{one.found[m]:.2f}" for m in ("none", "im")),
            *(f"{one.near[m]:.2f}" for m in ("none", "im")),
            f"{one.tells:.2f}",
            "fixed beforehand" if one.task in FIRST else "yes" if one.task in four else "no" if four else "open",
        )
        for one in results.screening
    ]
    columns = ("task", "limit", "fewest steps", "f, no bonus", "f, raw", "q, no bonus", "q, raw", "T", "chosen")
    return "\n\n".join((rows(columns, lines), _choice(results, four)))


def _choice(results: StudyResults, four: Sequence[str]) -> str:
    if not four:
        left = len(CANDIDATES) - len(results.screening)
        return f"The third and fourth task are open: {left} of {len(CANDIDATES)} candidates are not finished."
    note = "" if four[2] in CANDIDATES else (
        f" {four[2]} is the third, because no candidate that is not yet chosen has a time limit above 1,000 steps and "
        "finds its goal."
    )  # fmt: skip
    return f"The four tasks: {', '.join(four)}.{note}"


def task_table(results: StudyResults, task: str) -> str:
    """Write every method on one task."""
    lines = [
        (name_of(method), alpha_said(results, method), *measured(task, own))
        for method in METHODS
        if (own := results.runs(task, method))
    ]
    return rows(("method", "α", *MEASURED), lines) if lines else NONE_YET


def limit_table(results: StudyResults) -> str:
    """Write every D at every time limit."""
    lines = [
        (f"{limit:,}", name_of(method), alpha_said(results, method), *measured(SWEPT, own))
        for limit in SWEPT_LIMITS
        for method in DELAYS
        if (own := results.limited(limit, method))
    ]
    return rows(("limit", "method", "α", *MEASURED), lines) if lines else NONE_YET


def rnd_table(results: StudyResults) -> str:
    """Write the methods with RND on two tasks."""
    lines = [
        (task, name_of(method), alpha_said(results, method), *measured(task, own))
        for task in FIRST
        for method in RND_METHODS
        if (own := results.runs(task, method, bonus="rnd"))
    ]
    return rows(("task", "method", "α", *MEASURED), lines) if lines else NONE_YET


def multipliers(results: StudyResults) -> str:
    """Write the multipliers of EIPO and HEPO at the end of training, seed by seed."""
    lines = []
    for task in results.tasks:
        by_seed = [[f"{run['final_multiplier']:.2f}" for run in results.runs(task, m)] for m in CONSTRAINED]
        if any(by_seed):
            lines.append((task, *(", ".join(own) or "–" for own in by_seed)))
    return rows(("task", *(f"{name_of(m)}, by seed" for m in CONSTRAINED)), lines) if lines else NONE_YET


def caution(results: StudyResults) -> str:
    """Say how often such intervals tell two methods apart that are alike, with the seeds there are."""
    together = false_alarms([len(own) for own in results.scores("none")])
    alone = false_alarms([SEEDS])
    return (
        "An interval from few seeds is too narrow: of two methods with the same distribution of scores it would tell "
        f"one from the other in about {together:.0%} of such studies over all these tasks together, and in about "
        f"{alone:.0%} on one task with {SEEDS} seeds (simulated). The probability of improvement is of ranks: it says "
        "which is higher, not by how much."
    )


def pairs(results: StudyResults) -> str:
    """Write the probability of improvement of every pair of methods, that with the higher interquartile mean first."""
    lines = []
    for pair in combinations(results.overall, 2):
        chance = results.improvement(*pair)
        lines.append((*map(name_of, pair), chance.said(".2f"), _sure(chance.low, chance.high)))
    return rows(("method", "over", "probability of improvement", "better"), lines)


def measured(task: str, runs: Sequence[Figures]) -> tuple[str, ...]:
    """Write the measures of one cell: the mean over seeds and its interval."""
    late = sum(run["solved_step"] is None for run in runs)
    never = f" ({late} never)" if late else ""
    return (
        f"{len(runs)}",
        _mean(shares(runs) * 100, 0, "%"),
        "too few seeds" if len(runs) < SEEDS else "yes" if is_solved(runs) else "no",
        f"{_mean(solved_steps(runs) / 1e6, 2)}{never}",
        _mean(over_fewest(task, runs), 1, "×"),
        _mean(scores(task, runs), 2),
    )


def alpha_said(results: StudyResults, method: str) -> str:
    """Say a method's α; training without a bonus has none."""
    return f"{results.alpha(method):g}" if method != "none" else "–"


def _mean(values: np.ndarray, digits: int, unit: str = "") -> str:
    if len(values) < 2:
        return f"{values[0]:.{digits}f}{unit}"
    return mean_estimate(values).said(f".{digits}f", unit)


def _sure(low: float, high: float) -> str:
    return "yes" if low > 0.5 else "worse" if high < 0.5 else "not told"
