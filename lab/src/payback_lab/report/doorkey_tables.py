"""The tables of docs/results/doorkey.md: the paper's figures beside ours, setting by setting."""

from pathlib import Path
from typing import Any

from payback_lab.claims.wording import least_to_most
from payback_lab.experiments.doorkey.printed import PAIRS, SETTINGS
from payback_lab.experiments.doorkey.table import Reached, Row, table_rows
from payback_lab.report import markdown
from payback_lab.report.committed import committed
from payback_lab.running.plan import GroupName
from payback_lab.statistics import Estimate

HEADER = (
    "scheme",
    "T, paper",
    "T",
    "N̄, paper",
    "N̄",
    "σ, paper",
    "σ",
    "stays short from",
    "final, sampled",
    "final, greedy",
    "truncated",
    "P(shorter than IM, no IM)",
)


def tables(results: Path) -> str:
    """Return the three tables in Markdown, each under its setting."""
    rows = table_rows(runs_of(results))
    parts = []
    for setting in SETTINGS:
        alpha, gamma = PAIRS[setting]
        own = [row for row in rows if row.setting == setting]
        many = least_to_most([row.seeds for row in own])
        table = markdown.rows(HEADER, map(line, own))
        parts.append(f"**α = {alpha:g}, γ = {gamma:g}**, seeds per cell: {many}\n\n{table}")
    return "\n\n".join(parts)


def runs_of(results: Path, label: str = "") -> list[dict[str, Any]]:
    """Return the runs of the paper's own settings, or of what bears a label ("plain-settlement"), with the setting."""
    groups = [(GroupName.parse(group["name"]), group["runs"]) for group in committed(results, "doorkey")["groups"]]
    own = [(name, runs) for name, runs in groups if name.ablation == (label or None)]
    return [{**run, "setting": name.setting} for name, runs in own for run in runs]


def line(row: Row) -> tuple[str, ...]:
    """Write one row; bold is what the paper sets in bold, in its columns and in ours."""
    paper = row.paper
    return (
        f"`{row.scheme}`",
        _bold("N/A" if paper.time is None else f"{paper.time:.2f} M", paper.fastest),
        _bold(reached_said(row.time), row.fastest),
        _bold(f"{paper.length:.1f}", paper.tied),
        _bold(spread_said(row.length), row.tied is True),
        f"{paper.deviation:.1f}",
        spread_said(row.deviation),
        reached_said(row.settled),
        spread_said(row.sampled),
        spread_said(row.greedy),
        "–" if row.truncated is None else f"{row.truncated.value:.2%}",
        # With one seed it could only be all or nothing.
        f"{_chance(row.better_than_im)}, {_chance(row.better_than_none)}" if row.seeds > 1 else "–",
    )


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def reached_said(found: Reached) -> str:
    """Say the median of the seeds that got there, and how many did if not all."""
    if found.median is None:
        return "never" if found.of else "–"
    return f"{found.median / 1e6:.2f} M" + ("" if found.reached == found.of else f" ({found.reached} of {found.of})")


def spread_said(found: Estimate | None, form: str = ".1f", unit: str = "") -> str:
    """Say the mean, with its interval if there is one; the unit stands behind the mean alone."""
    if found is None:
        return "–"
    interval = f" [{found.low:{form}}, {found.high:{form}}]" if found.high > found.low else ""
    return f"{found.value:{form}}{unit}{interval}"


def _chance(found: Estimate | None) -> str:
    return "–" if found is None else f"{found.value:.0%}"
