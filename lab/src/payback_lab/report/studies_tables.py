"""The tables of the studies' pages."""

from collections.abc import Iterable, Sequence

from payback_lab.claims.claim import Verdict
from payback_lab.experiments.arena.config import ADV, ADVANTAGE_SIDE
from payback_lab.experiments.arena.finished import SEEDS, Figures, Finished, seeds_of
from payback_lab.experiments.arena.measures import shares
from payback_lab.experiments.arena.setting import parse_setting
from payback_lab.experiments.studies import depth, learned, safe_range
from payback_lab.experiments.studies.analysis import Reached, best_shares, collapses, reached, score_of
from payback_lab.experiments.studies.study import Study, setting_of
from payback_lab.experiments.studies.verdicts import Judged, depth_cells
from payback_lab.report.charts.studies import TUNED, label_of
from payback_lab.report.markdown import folded, rows
from payback_lab.report.study_results import NONE_YET, Results
from payback_lab.statistics import mean_estimate

BONUSES = {
    "counts": "counts of the simulator's state",
    "views": "counts of the agent's view",
    "rnd-views": "RND × 1/n(view)",
    "e3b": "E3B",
    "noveld": "NovelD",
    "icm": "ICM",
    "rnd": "RND",
}
"""What the pages call the bonuses."""


def judged(found: Iterable[Judged]) -> str:
    """Write what was predicted and came out."""
    bold: dict[Verdict, str] = {"holds": "**holds**", "does not hold": "**does not hold**", "undecided": "undecided"}
    return rows(("verdict", "predicted", "measured"), [(bold[j.verdict], j.text, j.measured or "–") for j in found])


def table_of(header: Sequence[str], lines: Sequence[Sequence[str]], summary: str) -> str:
    """Write a table, folded if it is long; nothing before there is a line."""
    return folded(rows(header, lines), summary) if lines else ""


def share_said(runs: Sequence[Figures]) -> str:
    """Say the mean share that the final agents solve, with an interval from three seeds on."""
    own = shares(runs) * 100
    return mean_estimate(own).format(".0f", " %") if len(own) >= SEEDS else f"{own.mean():.0f} %"


# The safe range


def safe_summary(results: Results) -> str:
    """Write one row per method: which α are safe, whether it needs tuning, what collapsed, which α is taken later."""
    lines = []
    for row in results.ranges:
        chosen = safe_range.chosen_alpha(results.finished, row.method)
        best = max(row.scores, key=lambda alpha: row.scores[alpha].value)
        lines.append(
            (
                label_of(row.method),
                ", ".join(f"{alpha:g}" for alpha in row.safe) or "none",
                TUNED[row.needs_tuning],
                f"{row.scores[best].value:.2f} at {best:g}",
                f"{row.collapsed} of {row.runs}",
                "open" if chosen is None else f"{chosen[0]:g}",
            )
        )
    header = ("method", "safe α", "tuning", "best score, at α", "collapsed runs", "α of later studies")
    return rows(header, lines) if lines else ""


def safe_table(results: Results) -> str:
    """Write every method at every α."""
    table = {row.method: row for row in results.ranges}
    lines = []
    for method in safe_range.METHODS:
        for alpha in safe_range.ALPHAS:
            row = table.get(method)
            safe = "–" if row is None or alpha not in row.scores else "yes" if alpha in row.safe else "no"
            lines += _safe_line(results.finished, method, alpha, safe)
    return table_of(SAFE_COLUMNS, lines, "Every method at every α")


SAFE_COLUMNS = ("method", "α", "seeds", "score", "safe", *(f"{task} solved" for task in safe_range.TASKS), "collapsed")


def _safe_line(finished: Finished, method: str, alpha: float, safe: str) -> list[tuple[str, ...]]:
    runs = [seeds_of(finished, setting_of(task, alpha), method) for task in safe_range.TASKS]
    if not any(runs):
        return []
    counts = sorted({len(own) for own in runs})
    score = "–"
    if all(runs):
        estimate = score_of(safe_range.TASKS, runs)
        score = estimate.format(".2f") if counts[0] >= SEEDS else f"{estimate.value:.2f}"
    solved = [share_said(own) if own else "not run" for own in runs]
    collapsed = f"{sum(map(collapses, runs))} of {sum(map(len, runs))}"
    seeds = " to ".join(map(str, counts))
    return [(label_of(method), "–" if method == "none" else f"{alpha:g}", seeds, score, safe, *solved, collapsed)]


def ablations_table(results: Results) -> str:
    """Write the ablations, the methods that they vary, and no bonus, all at α = 0.02."""
    methods = ("none", *ADVANTAGE_SIDE, *safe_range.ABLATIONS)
    lines = [line for m in methods for line in _safe_line(results.finished, m, safe_range.MIDDLE, "–")]
    return _without_safe(lines, "Ablations")


def centred_table(results: Results) -> str:
    """Write, at every α, each form of GRM beside what is centred alike and never repaid."""
    raw, two, back = safe_range.CENTRED
    methods = ("grm-30", raw, ADV, two, f"{ADV}-back", back)
    lines = [line for a in safe_range.ALPHAS for m in methods for line in _safe_line(results.finished, m, a, "–")]
    return _without_safe(lines, "Centred bonuses at every α")


def _without_safe(lines: Sequence[tuple[str, ...]], summary: str) -> str:
    kept = [(*line[:4], *line[5:]) for line in lines]
    return table_of((*SAFE_COLUMNS[:4], *SAFE_COLUMNS[5:]), kept, summary)


# Depth


def depth_methods(study: Study) -> tuple[str, ...]:
    """Return the methods of the grid, in its order; GRM's delay is the one that was chosen, 30 before that."""
    named = [cell.method for cell in study.cells]
    grm = next((method for method in named if method in depth.GRM), "grm-30")
    return (*depth.RAW, grm, *ADVANTAGE_SIDE)


def task_named(task: str, bonus: str) -> str:
    """Name a task of `depth`; the bonus is said where the task is run with two.

    >>> task_named("DoorKey-16x16", "counts"), task_named("MultiRoom-N6", "views")
    ("DoorKey-16x16, counts of the simulator's state", 'MultiRoom-N6')
    """
    twice = [name for name, _, _ in depth.TASKS].count(task) > 1
    return f"{task}, {BONUSES[bonus]}" if twice else task


def depth_grid(results: Results) -> dict[tuple[str, str], Reached | None]:
    """Return what every method reached on every task."""
    runs = depth_cells(results.study.cells, results.finished)
    methods = depth_methods(results.study)
    return {
        (task_named(task, bonus), method): reached(runs.get((task, bonus, method), []))
        for task, bonus, _ in depth.TASKS
        for method in methods
    }


def depth_summary(results: Results) -> str:
    """Write how many tasks each method solves and finds, and how many of its runs collapsed."""
    cells, lines = depth_grid(results), []
    for method in depth_methods(results.study):
        own = [one for (_, m), one in cells.items() if m == method and one is not None]
        if own:
            alpha = next(parse_setting(cell.setting).alpha for cell in results.study.cells if cell.method == method)
            many = f"{sum(one.collapsed for one in own)} of {sum(one.seeds for one in own)}"
            solved, found = sum(one.solved for one in own), sum(one.found for one in own)
            lines.append((label_of(method), f"{alpha:g}", f"{solved} of {len(own)}", f"{found} of {len(own)}", many))
    return rows(("method", "α", "tasks solved", "found in training", "collapsed runs"), lines) if lines else ""


def depth_table(results: Results) -> str:
    """Write every cell of the grid."""
    millions = {(task, bonus): steps for task, bonus, steps in depth.TASKS}
    runs, methods = depth_cells(results.study.cells, results.finished), depth_methods(results.study)
    lines = [
        (task_named(task, bonus), f"{steps} M", label_of(method), *_cell(runs.get((task, bonus, method), [])))
        for (task, bonus), steps in millions.items()
        for method in methods
        if runs.get((task, bonus, method))
    ]
    return table_of(("task", "steps", "method", *CELL), lines, "Every task and method")


def rollouts_table(results: Results) -> str:
    """Write what other lengths of a rollout do on one task."""
    task, bonus, _ = depth.ROLLOUT_TASK
    runs, lines = depth_cells(results.study.cells, results.finished), []
    for method in depth.ROLLOUT_METHODS:
        own = {128: runs.get((task, bonus, method), [])}
        for cell in results.study.cells:
            parsed = parse_setting(cell.setting)
            if cell.method == method and parsed.task == task and parsed.rollout:
                own[parsed.rollout] = seeds_of(results.finished, cell.setting, method)
        lines += [(label_of(method), f"{length}", *_cell(own[length])) for length in sorted(own) if own[length]]
    return table_of(("method", "steps per rollout", *CELL), lines, "Rollouts") or NONE_YET


CELL = ("seeds", "episodes solved", "best 100 in training", "solved", "collapsed")


def _cell(runs: Sequence[Figures]) -> tuple[str, ...]:
    one = reached(runs)
    assert one is not None
    solved = "too few seeds" if one.seeds < SEEDS else "yes" if one.solved else "no"
    best = f"{best_shares(runs).mean() * 100:.0f} %"
    return f"{one.seeds}", share_said(runs), best, solved, f"{one.collapsed} of {one.seeds}"


# Learned bonuses


def learned_runs(results: Results, task: str, bonus: str, method: str) -> list[Figures]:
    """Return the runs of one cell at its own α."""
    alpha = results.choices.alphas.get((bonus, method))
    return [] if alpha is None else seeds_of(results.finished, setting_of(task, alpha, bonus), method)


def learned_table(results: Results) -> str:
    """Write every bonus with every method on every task."""
    methods, alphas = results.choices.methods, results.choices.alphas
    lines = [
        (task, BONUSES[bonus], label_of(method), f"{alphas[bonus, method]:g}", *_cell(own))
        for task in learned.TASKS
        for bonus in learned.BONUSES
        for method in methods
        if (own := learned_runs(results, task, bonus, method))
    ]
    return table_of(("task", "bonus", "method", "α", *CELL), lines, "Every bonus, method and task")


def learned_alphas(results: Results) -> str:
    """Write the α that were chosen on DoorKey-8x8."""
    lines = [(BONUSES[bonus], label_of(m), f"{alpha:g}") for (bonus, m), alpha in results.choices.alphas.items()]
    return table_of(("bonus", "method", "α"), lines, "α chosen on DoorKey-8x8")
