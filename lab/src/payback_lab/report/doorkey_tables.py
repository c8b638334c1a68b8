"""The tables of docs/results/doorkey.md and docs/reproduction.md: the paper's figures beside ours."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from payback_lab.claims.wording import format_p, least_to_most
from payback_lab.experiments.doorkey.claims import QUESTION, TEN
from payback_lab.experiments.doorkey.config import ABOUT
from payback_lab.experiments.doorkey.experiment import COMPARED
from payback_lab.experiments.doorkey.measures import MIDDLE, PAIRS, SETTINGS, TABLE, title
from payback_lab.experiments.doorkey.table import Reached, Row, figures, reached, spread, table_rows
from payback_lab.methods import OTHERS, TITLES
from payback_lab.report import markdown
from payback_lab.report.store import committed
from payback_lab.runs import GroupName
from payback_lab.statistics import Estimate, improvement, welch

HEADER = (
    "scheme",
    "T, paper",
    "T",
    "N̄, paper",
    "N̄",
    "σ, paper",
    "σ",
    "solved from",
    "final length, sampled",
    "final length, greedy",
    "truncated",
    "P(shorter than IM, no IM)",
)
ALTERED = (
    "scheme",
    "(α, γ)",
    "seeds",
    "N̄, paper",
    "N̄, unchanged",
    "N̄, changed",
    "solved from, unchanged",
    "solved from, changed",
    "largest repayment, changed",
    "residual, changed",
)
MATCHINGS = ("matching", "seeds", "N̄", "final length, sampled", "solved from", "N̄ below that of D = 10")
BY_DELAY = ("grm-1", "grm-3", "grm-10", "grm-30", "grm-100", *OTHERS[3:], "pbim")
"""Matchings from the shortest delay on, then those without a delay of their own, then the end of the episode."""

Runs = Sequence[Mapping[str, Any]]


def runs_of(results: Path, label: str = "") -> list[dict[str, Any]]:
    """Return the runs of the paper's own settings, or of a label ("plain-settlement"), with their setting."""
    groups = [(GroupName.parse(group["name"]), group["runs"]) for group in committed(results, "doorkey")["groups"]]
    own = [(name, runs) for name, runs in groups if name.ablation == (label or None)]
    return [{**run, "setting": name.setting} for name, runs in own for run in runs]


def table_of_paper(results: Path) -> str:
    """Return the paper's table beside ours, one table per setting; the middle one stands open."""
    rows = table_rows(runs_of(results))
    parts = []
    for setting in SETTINGS:
        alpha, gamma = PAIRS[setting]
        own = [row for row in rows if row.setting == setting]
        many = least_to_most([row.seeds for row in own])
        table = markdown.rows(HEADER, map(_line, own))
        name = f"α = {alpha:g}, γ = {gamma:g}"
        if setting == MIDDLE:
            parts.append(f"**{name}**, seeds per cell: {many}\n\n{table}")
        else:
            parts.append(markdown.folded(table, f"{name}, seeds per cell: {many}", longest=0))
    return "\n\n".join(parts)


def _line(row: Row) -> tuple[str, ...]:
    """Write one row; bold is what the paper sets in bold, in its columns and in ours."""
    paper = row.paper
    return (
        f"`{row.scheme}`",
        _bold("N/A" if paper.time is None else f"{paper.time:.2f} M", paper.fastest),
        _bold(format_reached(row.time), row.fastest),
        _bold(f"{paper.length:.1f}", paper.tied),
        _bold(format_mean(row.length), row.tied is True),
        f"{paper.deviation:.1f}",
        format_mean(row.deviation),
        format_reached(row.settled),
        format_mean(row.sampled),
        format_mean(row.greedy),
        "–" if row.truncated is None else f"{row.truncated.value:.2%}",
        # With one seed it could only be all or nothing.
        f"{_chance(row.better_than_im)}, {_chance(row.better_than_none)}" if row.seeds > 1 else "–",
    )


def table_of_ablation(results: Path, name: str) -> str:
    """Return the cells of an ablation beside those of the paper's own setting."""
    plain, changed = runs_of(results), runs_of(results, name)
    lines = []
    for scheme in ABOUT[name]:
        for setting in SETTINGS:
            before, after = (_cell(runs, setting, scheme) for runs in (plain, changed))
            if after:
                lines.append(_ablated(scheme, setting, before, after))
    return markdown.rows(ALTERED, lines)


def _cell(runs: Runs, setting: str, scheme: str) -> Runs:
    return [run for run in runs if (run["setting"], run["scheme"]) == (setting, scheme)]


def _ablated(scheme: str, setting: str, before: Runs, after: Runs) -> tuple[str, ...]:
    repaid = scheme not in ("none", "im")  # an unmatched bonus owes nothing, so that it has no residual
    return (
        f"`{scheme}`",
        title(setting),
        f"{len(after)}",
        f"{TABLE[setting][scheme].length:.1f}",
        format_mean(spread(figures(before, "mean_length"))),
        format_mean(spread(figures(after, "mean_length"))),
        format_reached(reached(before, "settled_step")),
        format_reached(reached(after, "settled_step")),
        f"−{-figures(after, 'largest_repayment').min():.2g}" if repaid else "–",
        f"{figures(after, 'law_residual').max():.1g}" if repaid else "–",
    )


def table_of_matchings(results: Path) -> str:
    """Return every matching that was tried at one setting, each compared with GRM with D = 10."""
    runs = runs_of(results, QUESTION)
    own = {scheme: [run for run in runs if run["scheme"] == scheme] for scheme in (*COMPARED, *OTHERS)}
    ten = figures(own[TEN], "mean_length")
    lines = []
    for scheme in BY_DELAY:
        lengths = figures(own[scheme], "mean_length")
        beaten = f"P {improvement(lengths, ten):.2f}, {format_p(welch(lengths, ten))}" if len(lengths) > 1 else "–"
        lines.append(
            (
                TITLES[scheme],
                f"{len(lengths)}",
                format_mean(spread(lengths)),
                format_mean(spread(figures(own[scheme], "sampled_length"))),
                format_reached(reached(own[scheme], "settled_step")),
                "–" if scheme == TEN else beaten,
            )
        )
    return markdown.rows(MATCHINGS, lines)


def format_reached(found: Reached) -> str:
    """Write the median step of the seeds that got there, and how many did if not all."""
    if found.median is None:
        return "never" if found.of else "–"
    return f"{found.median / 1e6:.2f} M" + ("" if found.reached == found.of else f" ({found.reached} of {found.of})")


def format_mean(found: Estimate | None, form: str = ".1f", unit: str = "") -> str:
    """Write the mean with its interval, if there is one; the unit follows the mean alone."""
    if found is None:
        return "–"
    interval = f" [{found.low:{form}}, {found.high:{form}}]" if found.high > found.low else ""
    return f"{found.value:{form}}{unit}{interval}"


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _chance(found: Estimate | None) -> str:
    return "–" if found is None else f"{found.value:.0%}"
