"""The tables and the figure of docs/results/hosts.md, from the committed summary of `hosts`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from payback_lab.experiments.arena.finished import Figures
from payback_lab.experiments.arena.measures import solved_steps
from payback_lab.experiments.hosts.experiment import (
    EXPERIMENT,
    FORMS,
    NORMALISED,
    PLANNED,
    TASKS,
    TUNING_SEED,
    alphas,
    choices,
)
from payback_lab.experiments.hosts.setting import BONUSES as READY
from payback_lab.experiments.hosts.setting import COUNTS, EPISODIC, Setting
from payback_lab.experiments.hosts.verdicts import HostRuns, final_lengths, first_goals, is_solved, of_hosts, solved
from payback_lab.experiments.studies.study import committed
from payback_lab.report.charts.arena import name_of
from payback_lab.report.charts.seeds import seed_rows, seeds_panel
from payback_lab.report.charts.style import WORDS, figure_of
from payback_lab.report.markdown import rows
from payback_lab.report.studies_tables import BONUSES, judged
from payback_lab.report.study_results import NONE_YET
from payback_lab.statistics import mean_estimate

NAMES = {
    "none": "no bonus",
    "im": "raw bonus, tuned",
    "grm-adv-30-0.95-lone": "GRM-adv",
    "grm-adv-30-0.95-lone-back": "GRM-adv, taken back",
    "raw-adv-0.95": "raw bonus as an advantage",
    "raw-adv-0.95-back": "the same, taken back",
}
OPEN = {1: "raw bonus, tuned", 2: "GRM (delay open)", 3: "advantage side (form open)"}
"""What a method is called that is not chosen yet, by its place."""
LIKE = {form: study for study, form in FORMS.items()}
"""A form here → the method whose colour it has."""
COLUMNS = (
    "seeds",
    "solve it",
    "steps until then, thousands",
    "best 100 in training",
    "final agent solves",
    "final length",
)
Row = tuple[str, str, int, str | None]
"""Task, bonus, the method's place and its id; None while it is not chosen."""


def runs_in(summaries: Path) -> HostRuns:
    """Read the committed runs of the study."""
    return HostRuns(choices(summaries), committed(summaries, EXPERIMENT.informed(summaries)))


def so_far(runs: HostRuns) -> str:
    """Say how many of the runs are in, and list what is not planned yet."""
    counted = f"All {PLANNED} runs are in." if runs.made >= PLANNED else f"{runs.made} of {PLANNED} runs are in."
    counted = counted if runs.made else f"**{NONE_YET}** {PLANNED} runs are planned."
    waiting = "".join(f"\n- {what}" for what in runs.chosen.waits_for)
    return f"{counted} Not yet planned, because it depends on other runs:\n{waiting}" if waiting else counted


def figure_part(runs: HostRuns) -> str:
    """Say how much is in, and show the figure if there is one."""
    drawn = "" if hosts_figure(runs) is None else f"\n\n![{ALT}](../figures/hosts.svg)"
    return f"{so_far(runs)}{drawn}"


ALT = "Steps until every seed solves the task, by task, bonus and method"


def rows_of(runs: HostRuns) -> list[Row]:
    """List the comparison's cells task by task: no bonus once, the others with each bonus."""
    found: list[Row] = []
    for task in TASKS:
        found.append((task, COUNTS, 0, "none"))
        for bonus in (*runs.chosen.bonuses, *(("",) if runs.chosen.bonus is None else ())):
            found += [(task, bonus, place, runs.methods[place]) for place in (1, 2, 3)]
    return found


def method_name(place: int, method: str | None) -> str:
    """Name a method, also one that is not chosen yet.

    >>> method_name(2, "grm-10"), method_name(2, None)
    ('GRM D = 10', 'GRM (delay open)')
    """
    return OPEN[place] if method is None else NAMES.get(method, name_of(method))


def bonus_name(bonus: str) -> str:
    """Name a bonus, also one that is not chosen yet.

    >>> bonus_name("rnd-views"), bonus_name("")
    ('RND × 1/n(view)', 'learned (open)')
    """
    return {COUNTS: "counts", "": "learned (open)"}.get(bonus) or BONUSES[bonus]


def cells_table(runs: HostRuns) -> str:
    """Write every cell of the comparison, those without runs too."""
    lines = []
    for task, bonus, place, method in rows_of(runs):
        named = (task, "–" if method == "none" else bonus_name(bonus), method_name(place, method))
        alpha = runs.alpha(task, bonus, method)
        shown = "–" if method == "none" else "open" if alpha is None or not bonus else f"{alpha:g}"
        lines.append((*named, shown, *_cell(runs.cell(task, bonus, method))))
    return rows(("task", "bonus", "method", "α", *COLUMNS), lines)


def _cell(own: Sequence[Figures]) -> tuple[str, ...]:
    if not own:
        return ("not run", *["–"] * (len(COLUMNS) - 1))
    best = sum(run["best_training_solved"] or 0.0 for run in own) / len(own)
    share = sum(run["sampled_solved"] for run in own) / len(own)
    return (
        f"{len(own)}",
        f"{solved(own)} of {len(own)}",
        mean_estimate(solved_steps(own)).format(".0f", per=1000),
        f"{best:.0%}",
        f"{share:.0%}",
        mean_estimate(final_lengths(own)).format(".0f"),
    )


READY_NAMES = {COUNTS: "EpisodicCount", "rnd-views": "episodic(RND())", "noveld": "NovelD", "simhash": "SimHash"}
UPPER = ("ride", "e3b", "rnd", "icm")


def ready_name(bonus: str) -> str:
    """Name a ready bonus as the library does.

    >>> ready_name("e3b"), ready_name("recency")
    ('E3B', 'Recency')
    """
    return READY_NAMES.get(bonus) or (bonus.upper() if bonus in UPPER else bonus.capitalize())


def ready_table(runs: HostRuns) -> str:
    """Write what GRM reached with every ready bonus at its default α."""
    lines = []
    for bonus in READY:
        kind = "this episode" if bonus in EPISODIC else "all of training"
        lines.append((f"`{ready_name(bonus)}`", kind, *_cell(runs.ready(bonus))))
    return rows(("bonus", "novel within", *COLUMNS), lines)


def alphas_table(runs: HostRuns) -> str:
    """Write what the raw bonus was tuned over: the share solved over training, and which α was taken."""
    lines = []
    for task in TASKS:
        for bonus in runs.chosen.bonuses:
            for alpha in alphas(task):
                own = runs.finished.get((Setting(task, alpha, bonus).name, "im"), {}).get(TUNING_SEED)
                share = "not run" if own is None else f"{own['mean_training_solved'] or 0.0:.2f}"
                taken = "yes" if runs.chosen.alphas.get((task, bonus)) == alpha else "no"
                lines.append((task, bonus_name(bonus), f"{alpha:g}", share, taken))
    return rows(("task", "bonus", "α", "share solved over training", "taken"), lines)


def normalisation_table(runs: HostRuns) -> str:
    """Write what the normalisation of advantages does to α."""
    lines = []
    for place, method in ((1, "im"), (3, runs.chosen.form)):
        for normalised in (True, False):
            for alpha in alphas(NORMALISED):
                own = runs.at_alpha(method, alpha, normalised=normalised)
                first = mean_estimate(first_goals(own)).format(".0f", per=1000) if own else "–"
                name = "raw bonus" if place == 1 else method_name(place, method)
                solving = f"{solved(own)} of {len(own)}" if own else "–"
                line = (name, "yes" if normalised else "no", f"{alpha:g}", f"{len(own) or 'not run'}", first, solving)
                lines.append(line)
    header = ("method", "normalised", "α", "seeds", "first solved episode, thousands of steps", "solve it")
    return rows(header, lines)


def verdicts(runs: HostRuns) -> str:
    """Write what was predicted and came out."""
    return judged(of_hosts(runs))


def notes(runs: HostRuns) -> str:
    """List how it was run."""
    return "\n".join(f"- {note}" for note in EXPERIMENT.notes)


def hosts_figure(runs: HostRuns) -> dict[str, Any] | None:
    """Draw when every seed solves each task; None before a cell of the comparison has run."""
    if not any(runs.cell(task, bonus, method) for task, bonus, _, method in rows_of(runs)):
        return None
    panels = [
        _panel(runs, task) for task in TASKS if any(runs.cell(t, b, m) for t, b, _, m in rows_of(runs) if t == task)
    ]
    subtitle = [
        f"{runs.made} of {PLANNED} runs. PPO, 16 environments, every seed (plus signs: not solved),",
        f"the mean and its 95 % bootstrap interval.{'' if runs.made >= PLANNED else ' Empty rows have not been run.'}",
    ]
    heading = alt.TitleParams("Steps until solved in Stable-Baselines3", subtitle=subtitle, **WORDS)
    return figure_of(alt.vconcat(*panels, spacing=18).properties(title=heading))


def _panel(runs: HostRuns, task: str) -> Any:
    found, names, schemes = [], [], []
    for _, bonus, place, method in (row for row in rows_of(runs) if row[0] == task and row[1] and row[3]):
        name = method_name(place, method) + ("" if place == 0 else f", {bonus_name(bonus)}")
        own, scheme = runs.cell(task, bonus, method), LIKE.get(method or "", method or "")
        names.append(name)
        if own:
            schemes.append(scheme)
            found += seed_rows(scheme, name, solved_steps(own), is_solved(own))
    length = max((run["value"] for run in found), default=1.0)
    panel = seeds_panel(
        found,
        list(dict.fromkeys(schemes)),
        names,
        "steps until solved",
        size=(300, 24 * len(names)),
        domainMax=length,
    )
    return panel.properties(title=alt.TitleParams(task, fontSize=13, anchor="start", frame="group"))


MARKS = {
    "figure of hosts": figure_part,
    "table of hosts": cells_table,
    "alphas of hosts": alphas_table,
    "normalisation of hosts": normalisation_table,
    "ready bonuses of hosts": ready_table,
    "verdicts of hosts": verdicts,
    "notes of hosts": notes,
}
"""What is written into docs/results/hosts.md, by mark."""
