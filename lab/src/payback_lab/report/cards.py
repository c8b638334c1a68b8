"""The first screen of the report: for each experiment a question, a finding, a small table and a picture.

Questions and findings are written by hand. A finding is about the committed results, and
lab/tests/report/test_quoted_figures.py checks it against them; the tables and pictures are of the runs that are shown.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from payback_lab.claims.claim import Figure
from payback_lab.experiments.arena.chosen import FIRST, cell_of
from payback_lab.experiments.arena.claims import setting_title
from payback_lab.experiments.arena.measures import is_solved
from payback_lab.experiments.arena.results import StudyResults, study_results
from payback_lab.experiments.cliff.measures import CONVERGED, FIRST_ARRIVAL
from payback_lab.experiments.delay.felt import NAMES
from payback_lab.experiments.delay.ordering import learns, middle
from payback_lab.experiments.doorkey.measures import MIDDLE
from payback_lab.experiments.reach import METHODS, row, setting
from payback_lab.methods import is_raw, title
from payback_lab.report import reach, which_delay
from payback_lab.report.charts import arena as arena_charts
from payback_lab.report.charts.collection import Drawing
from payback_lab.report.charts.curves import LABELS, first_column, picture_chart, picture_rows
from payback_lab.report.doorkey_tables import format_reached
from payback_lab.report.dots import Panel, panel_of_group
from payback_lab.report.summary import Group, Summary


@dataclass(frozen=True)
class Numbers:
    """Hold the small table of a card; `rows` may be ()."""

    caption: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Card:
    """Describe how an experiment is shown on the first screen."""

    question: str
    """What it asks, as one sentence."""
    finding: str
    """What the committed results show."""
    numbers: Callable[[Summary], Numbers]
    picture: Callable[[Summary], Drawing | Panel | None]
    charts: Callable[[Summary], Sequence[Drawing]] = lambda summary: ()
    """Charts of the experiment as a whole, drawn before its curves."""
    shown: int = 3
    """Settings whose curves stand open."""


def card_of(experiment: str) -> Card:
    """Return an experiment's card."""
    return CARDS.get(experiment, replace(PLAIN, shown=0) if experiment in FOLDED else PLAIN)


# What the cards read off a summary


def group_of(summary: Summary, name: str | None = None) -> Group | None:
    """Return the group of a setting, not of an ablation."""
    return next((g for g in summary.groups if g.ablation is None and g.setting == name), None)


def plain_groups(summary: Summary) -> list[Group]:
    """Return the groups that are not of an ablation."""
    return [group for group in summary.groups if group.ablation is None]


def runs_of(group: Group | None, *schemes: str) -> list[dict[str, Any]]:
    """Return the runs of some schemes in a group."""
    return [run for run in group.runs if run["scheme"] in schemes] if group else []


def mean_of(runs: Sequence[dict[str, Any]], key: str) -> float | None:
    """Return the mean of a figure over the runs that have it."""
    there = [run[key] for run in runs if run.get(key) is not None]
    return sum(there) / len(there) if there else None


def count_of(runs: Sequence[dict[str, Any]], key: str) -> str:
    """Count the runs that have a figure which is not False.

    >>> count_of([{"settled_step": 5}, {"settled_step": None}], "settled_step")
    '1 of 2'
    """
    return f"{sum(run.get(key) not in (None, False) for run in runs)} of {len(runs)}" if runs else "–"


def figure_of_claims(summary: Summary, measure: str, scheme: str) -> Figure | None:
    """Return what the claims about the experiment itself measured of a scheme."""
    figures = (figure for claim in summary.claims if claim.ablation is None for figure in claim.figures)
    return next((f for f in figures if (f.measure, f.scheme) == (measure, scheme)), None)


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else f"{value:{form}}"


def _claimed(summary: Summary, measure: str, scheme: str) -> str:
    figure = figure_of_claims(summary, measure, scheme)
    return _number(figure.mean if figure else None, ",.0f")


def _seeds(group: Group | None, schemes: Sequence[str]) -> str:
    counts = sorted({len(runs) for scheme in schemes if (runs := runs_of(group, scheme))})
    return f"{' to '.join(map(str, {counts[0]: 0, counts[-1]: 0}))} seeds per row" if counts else "no runs"


def _curves(group: Group | None, schemes: Sequence[str] = (), caption: str = "") -> Drawing | None:
    """Draw the learning curves of some schemes of a group, or of all it has."""
    column = first_column(group) if group else None
    if group is None or column is None:
        return None
    there = [scheme for scheme in schemes or group.curves if scheme in group.curves]
    if not there:
        return None
    chart = picture_chart(there, column, group.axis)
    data = {"rows": picture_rows(group, there, column)}
    return Drawing("picture", caption, chart, data, height=92, names=tuple(there))


# The cards


def _cliff(summary: Summary) -> Numbers:
    schemes, group = ("none", "im", "pbim", "grm-1", "grm-10"), group_of(summary)
    rows = [
        (title(s), _claimed(summary, CONVERGED.label, s), count_of(runs_of(group, s), "optimal"))
        for s in schemes
        if runs_of(group, s)
    ]
    return Numbers(_seeds(group, schemes), ("scheme", "converged, episode", "optimal"), tuple(rows))


def _long_cliff(summary: Summary) -> Numbers:
    schemes, group = ("none", "im", "pbim", "grm-1", "grm-10"), group_of(summary)
    rows = [
        (
            title(s),
            _claimed(summary, FIRST_ARRIVAL.label, s),
            _number(mean_of(runs_of(group, s), "greedy_return"), ".1f"),
            count_of(runs_of(group, s), "optimal"),
        )
        for s in schemes
        if runs_of(group, s)
    ]
    return Numbers(_seeds(group, schemes), ("scheme", "goal found, episode", "return", "optimal"), tuple(rows))


def _of_returns(summary: Summary) -> Drawing | None:
    return _curves(group_of(summary), ("none", "im", "pbim", "grm-10"), "Return by episode")


def _doorkey(summary: Summary) -> Numbers:
    schemes, group = ("none", "im", "pbim", "grm-1", "grm-10"), _main(summary, MIDDLE)
    rows = [
        (title(s), count_of(runs, "settled_step"), _number(mean_of(runs, "mean_length"), ".0f"))
        for s in schemes
        if (runs := runs_of(group, s))
    ]
    return Numbers(f"α = 0.02, γ = 0.995; {_seeds(group, schemes)}", ("scheme", "learned", "final steps"), tuple(rows))


def _main(summary: Summary, name: str) -> Group | None:
    return group_of(summary, name) or next(iter(plain_groups(summary)), None)


def _lengths_of_doorkey(summary: Summary) -> Panel | None:
    group = _main(summary, MIDDLE)
    if group is None:
        return None
    drawn = panel_of_group(summary, group, "mean_length")
    kept = tuple(line for line in drawn.rows if not is_raw(line.scheme))
    return replace(drawn, rows=kept, title="Final length, and the paper's as a mark")


def _reach(summary: Summary) -> Numbers:
    group = _main(summary, setting(11))
    size = int(group.config["size"]) if group else 0
    rows = []
    for scheme in METHODS:
        if runs := runs_of(group, scheme):
            one = row(size, scheme, runs)
            solved, path = (
                _number(x.value if x else None, form) for x, form in ((one.solved, ".0%"), (one.over_optimum, ".1f"))
            )
            rows.append((title(scheme), solved, f"{path} ×", format_reached(one.settled)))
    header = ("method", "solved", "path", "solved from")
    caption = f"{size}×{size} grid, {_seeds(group, METHODS)}; path: length relative to the shortest"
    return Numbers(caption, header, tuple(rows))


def _lengths_of_reach(summary: Summary) -> Drawing | None:
    group = _main(summary, setting(11))
    where = f", {group.config['size']}×{group.config['size']}" if group else ""
    return _curves(group, METHODS, f"Length of episodes by step{where}")


def _by_size(summary: Summary) -> list[Drawing]:
    found = [one for one in reach.reach_rows(summary) if one.scheme in reach.NAMES]
    if not found:
        return []
    solved, length, speed = reach.solved_chart(found, legend=True), reach.length_chart(found), reach.speed_chart(found)
    return [
        Drawing("solved-by-size", "Episodes solved by the trained agent", solved, {}),
        Drawing("length-by-size", "Their length relative to the shortest path", length, {}),
        Drawing("speed-by-size", "Step from which the task is solved", speed, {}),
    ]


def _usual_lambda(summary: Summary) -> Group | None:
    groups = plain_groups(summary)
    return next((g for g in groups if g.config.get("gae_lambda") == 0.95), next(iter(groups), None))


def _delay(summary: Summary) -> Numbers:
    group, rows = _usual_lambda(summary), []
    for scheme in ("none", "grm-3", "grm-10", "grm-30", "grm-100"):
        if runs := runs_of(group, scheme):
            steps = np.array([np.inf if run["settled_step"] is None else run["settled_step"] for run in runs])
            median = f"{float(middle(steps)) / 1e6:.2f} M" if learns(steps) else "never"
            rows.append((title(scheme), count_of(runs, "settled_step"), median))
    caption = f"λ = {group.config['gae_lambda']:g}, medians over seeds" if group else "no runs"
    return Numbers(caption, ("matching", "learned", "solved from"), tuple(rows))


def _lengths_of_delay(summary: Summary) -> Drawing | None:
    return _curves(_usual_lambda(summary), ("none", "grm-3", "grm-30", "grm-100"), "Length of episodes by step")


def _by_candidate(summary: Summary) -> list[Drawing]:
    points = which_delay.delay_points(summary)
    shown = [NAMES[name] for name in ("share", "beside_repayments", "beside_all_noise")]
    return [
        Drawing(
            f"by-candidate-{n}",
            f"When cells learn, against {symbol}",
            which_delay.panel(points, symbol, first=n == 1),
            {},
        )
        for n, symbol in enumerate(shown, start=1)
        if points
    ]


def _curiosity(summary: Summary) -> Numbers:
    schemes, group = ("none", "im", "pbim", "grm-10", "grm-30"), group_of(summary, "rnd")
    rows = [
        (title(s), count_of(runs, "solved_step"), _number(mean_of(runs, "sampled_length"), ".0f"))
        for s in schemes
        if (runs := runs_of(group, s))
    ]
    return Numbers(f"RND, {_seeds(group, schemes)}", ("scheme", "learned", "final steps"), tuple(rows))


def arena_results(summary: Summary) -> StudyResults:
    """Return the finished runs of the arena's summary."""
    return study_results(run for group in summary.groups for run in group.runs)


def _arena(summary: Summary) -> Numbers:
    results = arena_results(summary)
    tasks = results.compared
    rows = [
        (
            arena_charts.name_of(method),
            score.format(".2f"),
            f"{sum(is_solved(results.runs(task, method)) for task in tasks)} of {len(tasks)}",
        )
        for method, score in list(results.overall.items())[:5]
    ]
    return Numbers(f"the best five; {results.count} runs", ("method", "score", "tasks solved"), tuple(rows))


COMPARED_IN_ARENA = ("none", "im", "pies", "grm-30")


def _curves_of_arena(summary: Summary) -> Drawing | None:
    """Draw the curves of the first task, each method with its own α, or of the first setting there is."""
    group = _of_first_task(summary) or next(iter(plain_groups(summary)), None)
    column = first_column(group) if group else None
    if group is None or column is None:
        return None
    caption = f"{LABELS[column].capitalize()}, {setting_title(group.setting or '')}"
    return _curves(group, COMPARED_IN_ARENA, caption) or _curves(group, (), caption)


def _of_first_task(summary: Summary) -> Group | None:
    """Return a group with the curves of the shown methods on the first task, each from the group of its α."""
    results = arena_results(summary)
    alphas = {m: alpha for m in COMPARED_IN_ARENA if (alpha := results.alpha(m)) is not None}
    own = {method: group_of(summary, cell_of(FIRST[0], alpha)) for method, alpha in alphas.items()}
    there = {method: group for method, group in own.items() if group and method in group.curves}
    if not there:
        return None
    return replace(next(iter(there.values())), curves={method: group.curves[method] for method, group in there.items()})


def _all_tasks(summary: Summary) -> list[Drawing]:
    results = arena_results(summary)
    if not results.compared:
        return []
    found = arena_charts.found_chart(arena_charts.found_points(results), letters=12)
    words = "Interquartile mean of the score (1: always solved, by the shortest path)"
    score = arena_charts.estimates_chart(results.overall, "score")
    return [
        Drawing("found", "Who finds the goal, and by how short a path", found, {}, arena_charts.TALL),
        Drawing("overall", words, score, {}, 22 * len(results.overall)),
    ]


def _plain(summary: Summary) -> Numbers:
    counts = [len(group.runs) for group in plain_groups(summary) or summary.groups]
    schemes = {run["scheme"] for group in summary.groups for run in group.runs}
    return Numbers(f"runs: {sum(counts)}, schemes: {len(schemes)}, settings: {len(counts)}")


def _first_curves(summary: Summary) -> Drawing | None:
    group = next(iter(plain_groups(summary) or summary.groups), None)
    column = first_column(group) if group else None
    return _curves(group, caption=LABELS[column].capitalize() if column else "")


PLAIN = Card("", "", _plain, _first_curves)
FOLDED = ("safe-range", "depth", "learned", "hosts")
"""Studies whose curves are folded, because their pages show what they found."""
CARDS = {
    "cliff": Card(
        "Does an unhelpful bonus keep Q-learning from the optimum?",
        "Repayment removes most of the harm of a useless bonus, but not all of it.",
        _cliff,
        _of_returns,
    ),
    "long-cliff": Card(
        "Does a bonus help to find a far goal?",
        "RND as in the paper finds the goal no sooner here, repaid or not; where it delays, repayment cures it.",
        _long_cliff,
        _of_returns,
    ),
    "doorkey": Card(
        "Which bonus learns sooner, and to which policy?",
        "Repay within the next tens of steps (GRM), not at the end of a long episode (PBIM).",
        _doorkey,
        _lengths_of_doorkey,
    ),
    "reach": Card(
        "How large a grid does each method learn?",
        "Where exploration is needed, GRM learns what no bonus and the raw bonus do not, up to 14×14.",
        _reach,
        _lengths_of_reach,
        _by_size,
    ),
    "delay": Card(
        "Which delay learns soonest?",
        "D = 30 at λ = 0.8 and 0.95, D = 100 at 0.99, none at λ = 1.",
        _delay,
        _lengths_of_delay,
        _by_candidate,
        shown=0,
    ),
    "curiosity": Card(
        "What do ready-made bonuses do in Stable-Baselines3?",
        "Raw bonuses of default size keep PPO from learning; GRM does not, but is no faster than no bonus.",
        _curiosity,
        _first_curves,
        shown=0,
    ),
    "arena": Card(
        "Which way to tame a bonus?",
        "The centred raw bonus scores highest; of the methods that preserve the optimal policy, GRM with D = 30.",
        _arena,
        _curves_of_arena,
        _all_tasks,
        shown=0,
    ),
}
