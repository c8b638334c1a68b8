"""The tables of docs/reproduction.md, written into it: `python -m payback_lab.report.reproduction`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from payback_lab.claims.comparison import improvement, welch
from payback_lab.claims.wording import said_p
from payback_lab.experiments.doorkey.config import ABLATIONS, ABOUT
from payback_lab.experiments.doorkey.experiment import COMPARED
from payback_lab.experiments.doorkey.matching_claims import QUESTION, TEN
from payback_lab.experiments.doorkey.printed import SETTINGS, TABLE, title
from payback_lab.experiments.doorkey.table import figures, reached, spread
from payback_lab.methods import OTHERS, TITLES
from payback_lab.report.doorkey_tables import reached_said, runs_of, spread_said
from payback_lab.report.markdown import placed, rows

PAGE = Path("docs/reproduction.md")
ALTERED = (
    "scheme",
    "(α, γ)",
    "seeds",
    "N̄, paper",
    "N̄, unchanged",
    "N̄, changed",
    "stays short from, unchanged",
    "stays short from, changed",
    "largest repayment, changed",
    "leak, changed",
)
MATCHINGS = ("matching", "seeds", "N̄", "final, sampled", "stays short from", "N̄ below that of D = 10")
BY_DELAY = ("grm-1", "grm-3", "grm-10", "grm-30", "grm-100", *OTHERS[3:], "pbim")
"""Delays from the shortest on, then what has none of its own, then the end of the episode."""

Runs = Sequence[Mapping[str, Any]]


def filled(page: str, results: Path) -> str:
    """Return the page with the tables of the results in their places."""
    for name in ABLATIONS:
        page = placed(page, f"table of {name}", ablation(results, name))
    return placed(page, f"table of {QUESTION}", matchings(results))


def ablation(results: Path, name: str) -> str:
    """Return the cells of an ablation beside those of the paper's own setting."""
    plain, changed = runs_of(results), runs_of(results, name)
    lines = []
    for scheme in ABOUT[name]:
        for setting in SETTINGS:
            before, after = (cell(runs, setting, scheme) for runs in (plain, changed))
            if after:
                lines.append(_ablated(scheme, setting, before, after))
    return rows(ALTERED, lines)


def cell(runs: Runs, setting: str, scheme: str) -> Runs:
    """Return the runs of one setting and scheme."""
    return [run for run in runs if (run["setting"], run["scheme"]) == (setting, scheme)]


def _ablated(scheme: str, setting: str, before: Runs, after: Runs) -> tuple[str, ...]:
    # What is not matched owes nothing, so that there is no leak to speak of.
    repaid = scheme not in ("none", "im")
    return (
        f"`{scheme}`",
        title(setting),
        f"{len(after)}",
        f"{TABLE[setting][scheme].length:.1f}",
        spread_said(spread(figures(before, "mean_length"))),
        spread_said(spread(figures(after, "mean_length"))),
        reached_said(reached(before, "settled_step")),
        reached_said(reached(after, "settled_step")),
        f"−{-figures(after, 'largest_repayment').min():.2g}" if repaid else "–",
        f"{figures(after, 'law_residual').max():.1g}" if repaid else "–",
    )


def matchings(results: Path) -> str:
    """Return all matchings that were tried at one setting, each held against GRM with D = 10."""
    runs = runs_of(results, QUESTION)
    own = {scheme: [run for run in runs if run["scheme"] == scheme] for scheme in (*COMPARED, *OTHERS)}
    ten = figures(own[TEN], "mean_length")
    lines = []
    for scheme in BY_DELAY:
        lengths = figures(own[scheme], "mean_length")
        beaten = f"P {improvement(lengths, ten):.2f}, {said_p(welch(lengths, ten))}" if len(lengths) > 1 else "–"
        lines.append(
            (
                TITLES[scheme],
                f"{len(lengths)}",
                spread_said(spread(lengths)),
                spread_said(spread(figures(own[scheme], "sampled_length"))),
                reached_said(reached(own[scheme], "settled_step")),
                "–" if scheme == TEN else beaten,
            )
        )
    return rows(MATCHINGS, lines)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(), Path("lab/results")))
