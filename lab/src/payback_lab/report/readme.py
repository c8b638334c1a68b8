"""The README's sentences about results, from the committed summaries of `reach`, `curiosity` and `arena`."""

from payback_lab.claims.wording import least_to_most
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.experiments.curiosity.comparison import Runs, solved
from payback_lab.experiments.reach.config import METHODS
from payback_lab.experiments.reach.measures import Row
from payback_lab.report import arena_quotes
from payback_lab.report.charts.reach import reach_rows
from payback_lab.report.doorkey_tables import spread_said
from payback_lab.report.markdown import placed
from payback_lab.report.summary import Summary
from payback_lab.user_error import UserError

SIZE = 11
"""The grid that is quoted: there a bonus is needed."""
QUOTED = ("im", "grm-30", "none")
"""The ways of paying ready bonuses that are quoted."""


def filled(page: str, reach: Summary, curiosity: Summary, arena: StudyResults) -> str:
    """Return the README with the sentences in their places."""
    page = placed(page, "results in brief", f"{sentence(reach_rows(reach))}\n\n{arena_quotes.in_brief(arena)}")
    return placed(page, "curiosity in a sentence", bonuses_sentence(curiosity))


def sentence(rows: list[Row]) -> str:
    """Say what each of the three methods solves, and in how many steps, where a bonus is needed."""
    own = {row.scheme: row for row in rows if row.size == SIZE}
    if not {*METHODS} <= own.keys():
        raise UserError(f"The summary of reach lacks a method at {SIZE}×{SIZE}: run `payback-lab run reach`.")
    seeds = least_to_most([own[scheme].seeds for scheme in METHODS])
    raw, repaid = (f"{_solved(own[s])}, in {spread_said(own[s].over_optimum)}" for s in ("im", "grm-30"))
    task = f"MiniGrid DoorKey {SIZE}×{SIZE}, PPO, the paper's bonus with its α = 0.02"
    return (
        f"{task}, {seeds} seeds each, 95 % intervals.\n"
        f"Trained without a bonus, agents solve {_solved(own['none'])} of their episodes;\n"
        f"with the raw bonus {raw} times the fewest steps possible;\n"
        f"with the same bonus as a loan (GRM, D = 30) {repaid} times the fewest steps.\n"
        "An episode that is not solved counts with the time limit ([all sizes](docs/reach.md))."
    )


def bonuses_sentence(summary: Summary) -> str:
    """Say how many seeds solve the task with each way of paying the ready bonuses, all of them together."""
    own = {s: [run for group in summary.groups for run in group.runs if run["scheme"] == s] for s in QUOTED}
    raw, repaid, none = (_seeds(own[scheme]) for scheme in QUOTED)
    bonuses = len({group.setting for group in summary.groups})
    task = f"MiniGrid DoorKey 6×6, which Stable-Baselines3 learns without a bonus ({none} runs)"
    return (
        f"{task}, with {bonuses} bonuses of their\n"
        f"default size: paid raw, {raw} runs learn it; as loans (GRM, D = 30), {repaid} "
        "([table](docs/results/curiosity.md))."
    )


def _seeds(runs: Runs) -> str:
    return f"{int(solved(runs).sum())} of {len(runs)}"


def _solved(row: Row) -> str:
    return spread_said(row.solved, ".0%")
