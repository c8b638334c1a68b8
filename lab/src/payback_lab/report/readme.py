"""The README's sentence under its picture, from the committed summary of `reach`."""

from payback_lab.experiments.doorkey.table import Spread
from payback_lab.experiments.reach.measures import Row
from payback_lab.report.charts.reach import reach_rows
from payback_lab.report.markdown import placed
from payback_lab.report.summary import Summary
from payback_lab.user_error import UserError

SIZE = 11
"""The grid that is quoted: there a bonus is needed."""


def filled(page: str, summary: Summary) -> str:
    """Return the README with the sentence in its place."""
    return placed(page, "reach in a sentence", sentence(reach_rows(summary)))


def sentence(rows: list[Row]) -> str:
    """Say what each of the three methods solves, and in how many steps, where a bonus is needed."""
    own = {row.scheme: row for row in rows if row.size == SIZE}
    if not {"none", "im", "grm-30"} <= own.keys():
        raise UserError(f"The summary of reach lacks a method at {SIZE}×{SIZE}: run `payback-lab run reach`.")
    least = min(own[scheme].seeds for scheme in ("none", "im", "grm-30"))
    seeds = f"at least {least} seeds each" if least > 1 else "one seed"
    raw, repaid = (_said(own[scheme]) for scheme in ("im", "grm-30"))
    return (
        f"MiniGrid DoorKey {SIZE}×{SIZE}, PPO, {seeds}. Trained without a bonus, agents solve "
        f"{_mean(own['none'].solved):.0%} of their episodes;\nwith the raw bonus {raw} possible;\n"
        f"with the same bonus as a loan (GRM, D = 30) {repaid}."
    )


def _said(row: Row) -> str:
    return f"{_mean(row.solved):.0%}, in {_mean(row.over_optimum):.1f} times the fewest steps"


def _mean(found: Spread | None) -> float:
    return float("nan") if found is None else found.mean
