"""The arena's page, docs/results/arena.md: written by `payback-lab docs` from the committed summary alone."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from payback_lab.experiments.arena.chosen import FIRST
from payback_lab.experiments.arena.claims import arena_claims
from payback_lab.experiments.arena.experiment import EXPERIMENT
from payback_lab.experiments.arena.finished import SEEDS
from payback_lab.experiments.arena.results import StudyResults, study_results
from payback_lab.experiments.arena.study import RND_METHODS
from payback_lab.report import arena_tables, which_method
from payback_lab.report.charts import arena as charts
from payback_lab.report.charts import arena_by_task as by_task
from payback_lab.report.charts.reach import as_svg
from payback_lab.report.committed import committed, committed_claims
from payback_lab.report.reach import verdicts

HEAD = """\
# The arena: every way to tame a bonus, side by side

No bonus, the raw one, PIES, phased-in repayment, PBIM, GRM, ADOPS, ADOPES, EIPO and HEPO in one PPO with one network
trunk and one budget of steps, on MiniGrid. Made by `payback-lab docs` from the summary in `lab/results/arena`; the runs
are made by `payback-lab run arena`. What counts as solved, sooner and near the optimum, which α and which tasks, was
committed before the runs: [predictions](../predictions.md).
"""
READ_FROM = (
    "There is no official code of ADOPS. What was taken from public notes, and where EIPO and HEPO depart from their "
    "released code, stands in the docstrings of `lab/src/payback_lab/learners/arena/`. The other methods of the "
    "paper's related work cannot be given this bonus: those of Ng 1999, Wiewiora 2003, Devlin 2012, Eck 2016, Grześ "
    "2017 and Goyal 2019 need a potential that somebody designs, and DPBA (Harutyunyan 2015) comes to rest where it "
    "pays the raw bonus itself. An exact solver decides what they keep: [prior work](prior-work.md)."
)
SCORE = (
    "The score is the share of episodes solved times the fewest steps over the mean length of the solved: 1 is always "
    "solved in the fewest steps. Of a task with more seeds each weighs less, so that every task counts the same."
)
SOLVED = (
    "Over 1,000 episodes of the trained agent, acting as in training: the mean over seeds and its 95 % bootstrap "
    "interval. *Task solved*: at least 95 % of the episodes in the median seed. *Solved in training from*: the step "
    "from which on, to the end, at least 90 % of the last 100 training episodes are solved; a seed that never gets "
    "there counts with all its steps, also if it solves most of its final episodes. *Length over the fewest*: an "
    "episode that is not solved counts with the time limit. α is each method's own; in [the reach](../reach.md) every "
    "method has 0.02."
)
Draw = Callable[[StudyResults], dict[str, Any]]
ON_ALL: dict[str, tuple[Draw, str]] = {
    "arena-found": (charts.found_figure, "How often each method finds the goal against how long its way there is"),
    "arena-overall": (charts.overall_figure, "Interquartile mean of every method's score with its interval"),
    "arena-profiles": (charts.profile_figure, "Performance profile of every method"),
    "arena-improvement": (charts.improvement_figure, "Probability that GRM with D = 30 scores higher than each method"),
}
"""The figures over all tasks on which every method has a finished run."""


def results_in(summaries: Path) -> StudyResults:
    """Return the committed runs; none if no summary is committed."""
    there = (summaries / EXPERIMENT.name / "summary.json").is_file()
    groups = committed(summaries, EXPERIMENT.name)["groups"] if there else []
    return study_results(run for group in groups for run in group["runs"])


def figures(summaries: Path) -> dict[str, str]:
    """Draw what there are runs for, by name."""
    results = results_in(summaries)
    drawn = {name: draw for name, (draw, _) in ON_ALL.items()} if results.compared else {}
    if not results.enough():
        drawn.pop("arena-improvement", None)
    if any(results.runs(task, method) for task in results.tasks for method in charts.METHODS):
        drawn["arena-length"] = by_task.length_figure
    if by_task.limit_points(results):
        drawn["arena-limit"] = by_task.limit_figure
    if any(results.runs(task, method, bonus="rnd") for task in FIRST for method in RND_METHODS):
        drawn["arena-rnd"] = by_task.rnd_figure
    return {name: as_svg(draw(results)) for name, draw in drawn.items()}


def page(summaries: Path, drawn: Collection[str]) -> str:
    """Return the page in Markdown; `drawn` are the names of the figures there are."""
    results = results_in(summaries)
    there = (summaries / EXPERIMENT.name / "summary.json").is_file()
    claims = committed_claims(summaries, EXPERIMENT.name) if there else []
    claims = claims or arena_claims({}).decide({})  # where nothing is committed, no prediction is decided
    parts = (
        HEAD,
        f"{arena_tables.explained()}\n\n{READ_FROM}",
        _so_far(results),
        _picture(drawn, "arena-found", ON_ALL["arena-found"][1]),
        "## Which method when\n",
        "\n".join(f"{n}. {line}" for n, line in enumerate(which_method.lines(results), start=1)),
        _together(results, drawn),
        _task_by_task(results, drawn),
        _section("Does GRM fail in long episodes?", LIMIT, arena_tables.limit_table(results), drawn, "arena-limit"),
        _section("RND instead of counts", RND, arena_tables.rnd_table(results), drawn, "arena-rnd"),
        f"## The multipliers of EIPO and HEPO\n\n{MULTIPLIERS}\n\n{arena_tables.multipliers(results)}",
        f"## What was predicted\n\n{verdicts(tuple(claims))}",
        f"## Which α\n\n{ALPHA}\n\n{arena_tables.alphas(results)}",
        f"## Which tasks\n\n{TASKS}\n\n{arena_tables.screening(results)}",
        "## How it was run\n\n" + "\n".join(f"- {note}" for note in EXPERIMENT.notes),
    )
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


ALPHA = (
    "Mean share solved over training on DoorKey-8x8, seed 10, 2.5 million steps: the mean over all updates in which an "
    "episode of the agent ended. The largest is taken, the smaller α "
    "where two are within 0.01 of each other; D = 1 and D = 100, which are only swept, take that of D = 10 and D = 30. "
    "Where the α that is taken is the smallest or the largest tried, one beyond it might be better."
)
LIMIT = (
    "The first three seeds of every cell. D and α change together, because each D has the α that was chosen for it or "
    "for its nearest. Lengths over the fewest are comparable at one limit only, because an episode that is not solved "
    "counts with the limit."
)
RND = (
    "α is each method's own, chosen with counts and not anew for RND, whose bonus is scaled to a mean square of 1 and "
    "so pays about α at every step."
)
MULTIPLIERS = (
    "EIPO's α begins at 0.5, and the task weighs more the larger it is; HEPO's begins at 0, where its agent is paid "
    "the raw bonus. What they are at the end of training says how much the constraint did. EIPO's moves slowly, "
    "because its gradient is a mean of advantages, which are not normalised here and near 0 where few episodes are "
    "solved. EIPO's two policies take turns within an episode, so that what is told of its training is of both "
    "together; the 1,000 final episodes are of the agent alone."
)
TASKS = (
    "One seed without a bonus and one with the raw one, α = 0.02. f is the share of the last tenth of training's "
    "episodes that reach the goal, q is f times the fewest steps over their mean length, T = max f · (1 − max q)."
)


def _so_far(results: StudyResults) -> str:
    waiting = sum(part.size - part.made(results.finished) for part in results.parts)
    if not waiting:
        return f"All {results.count} runs are in it."
    many = f"**{results.count} run{'s are' if results.count > 1 else ' is'} in it so far**" if results.count else ""
    so_far = f"{many}; what is missing may change every line below." if many else "**No run is in it yet.**"
    return f"{so_far} A run that serves two parts is counted in both.\n\n{arena_tables.made(results)}"


def _together(results: StudyResults, drawn: Collection[str]) -> str:
    if not results.compared:
        return f"## All tasks together\n\nNo task has a finished run of every method yet.\n\n{SCORE}"
    shown = [_picture(drawn, name, words) for name, (_, words) in list(ON_ALL.items())[1:]]
    folded = (
        f"{arena_tables.caution(results)}\n\n"
        f"<details><summary>Every pair of methods</summary>\n\n{arena_tables.pairs(results)}\n\n</details>"
    )
    judged = folded if results.enough() else f"No pair is compared, because that needs {SEEDS} seeds of each method."
    over = f"Tasks on which every method has run: {', '.join(results.compared)}."
    return "\n\n".join((f"## All tasks together\n\n{SCORE} {over}", *filter(None, shown), judged))


def _task_by_task(results: StudyResults, drawn: Collection[str]) -> str:
    tables = [f"### {task}\n\n{arena_tables.task_table(results, task)}" for task in results.tasks]
    shown = _picture(drawn, "arena-length", "Every seed's mean length over the fewest steps, task by task")
    return "\n\n".join(filter(None, (f"## Task by task\n\n{SOLVED}", shown, *tables)))


def _section(heading: str, words: str, table: str, drawn: Collection[str], figure: str) -> str:
    return "\n\n".join(filter(None, (f"## {heading}", words, _picture(drawn, figure, heading), table)))


def _picture(drawn: Collection[str], name: str, words: str) -> str:
    return f"![{words}](../figures/{name}.svg)" if name in drawn else ""
