"""The sentences that are written by hand quote the committed figures: what went stale is named."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from payback_lab.claims.comparison import welch
from payback_lab.claims.wording import said_p
from payback_lab.experiments.doorkey.printed import HIGH, LOW, MIDDLE
from payback_lab.experiments.doorkey.table import Row, figures, table_rows
from payback_lab.report.arena import results_in
from payback_lab.report.committed import committed_claims, verdicts
from payback_lab.report.doorkey_tables import runs_of, spread_said

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "lab" / "results"
REPRODUCTION, DOORKEY = "docs/reproduction.md", "docs/results/doorkey.md"
RUNS = runs_of(RESULTS)
ROWS = {(row.setting, row.scheme): row for row in table_rows(RUNS)}
COUNTS = verdicts(RESULTS, "doorkey")


def page(name: str) -> str:
    """Read a page, its lines joined, because a sentence may be broken anywhere."""
    return " ".join((ROOT / name).read_text().split())


def in_reproduction() -> list[str]:
    """Return what the sections "what holds, and what does not" and "other matchings" must say."""
    count, holds, fails, open_ = (int(word) for word in COUNTS.replace(":", "").split() if word.isdigit())
    im, high, none = ROWS[MIDDLE, "im"], ROWS[HIGH, "im"], ROWS[LOW, "none"].length
    assert none is not None
    ten = [settles(setting, scheme) for setting in (MIDDLE, HIGH) for scheme in ("grm-10", "grm-10-raw")]
    late = sorted(settles(LOW, scheme) for scheme in ("grm-10", "grm-10-raw"))
    lengths = [ROWS[setting, scheme].length for setting in (MIDDLE, HIGH) for scheme in ("grm-10", "grm-10-raw")]
    ends = sorted(length.value for length in lengths if length)
    return [
        f"of {count} sentences {holds} hold, {fails} do not, {open_} are undecided",
        f"N̄ = {spread_said(im.length, '.0f')} at α = 0.02 and {spread_said(high.length, '.0f')} at α = 0.025; "
        f"{truncated(im)} and {truncated(high)} of the episodes",
        f"by {im_gap()} steps",
        f"(stays short from {min(ten):.2f} to {max(ten):.2f} M steps on, on average over seeds)",
        f"−{repaid(LOW)[0]:.0f} to −{repaid(LOW)[1]:.0f} at γ = 0.99 and −{repaid(MIDDLE, HIGH)[0]:.0f} to "
        f"−{repaid(MIDDLE, HIGH)[1]:.0f} at γ = 0.995",
        f"N̄ = {spread_said(ROWS[MIDDLE, 'none'].length)}, the paper has 634.8",
        f"{spread_said(ROWS[MIDDLE, 'grm-1-raw'].length)}, the paper has 634.5",
        f"(stays short from {settles(LOW, 'im'):.2f} M on, D = 10 from {late[0]:.2f} and {late[1]:.2f} M)",
        f"from {settles(LOW, 'grm-1'):.2f} M on against {settles(LOW, 'none'):.2f} M",
        f"no IM with a discount of 0.99 learns ([the table](results/doorkey.md#the-tables), N̄ = {none.value:.1f})",
        *of_seeds(),
        f"We find {mean(im)} and {mean(high)}, and {ends[0]:.0f} to {ends[-1]:.0f}.",
        *of_matchings(),
    ]


def in_doorkey() -> list[str]:
    """Return what the list "what to conclude" must say."""
    im, high = ROWS[MIDDLE, "im"], ROWS[HIGH, "im"]
    low, most = repaid(MIDDLE, HIGH)[0], repaid(LOW)[1]
    return [
        COUNTS,
        f"N̄ = {mean(im)} and {mean(high)} steps, {truncated(im)} and {truncated(high)} of the episodes",
        f"settlements of −{low:.0f} to −{most:.0f} beside a goal of 1",
        f"N̄ = {matching('grm-30').mean():.0f} with D = 30 and {matching('grm-100').mean():.0f} with D = 100 against "
        f"{matching('grm-10').mean():.0f} with D = 10",
    ]


def of_seeds() -> list[str]:
    """Return how the seeds of the cells that learn differ, and how many of these runs have the paper's T."""
    cells: dict[tuple[str, str], list[dict]] = {}
    for run in RUNS:
        cells.setdefault((run["setting"], run["scheme"]), []).append(run)
    learn = [runs for runs in cells.values() if all(run["settled_step"] for run in runs)]
    apart = max(np.ptp(figures(runs, "mean_length")) for runs in learn)
    steps = [figures(runs, "settled_step") for runs in learn]
    # Training without a bonus is run once for each γ, and counts at both settings of γ = 0.995.
    runs = list({run["id"]: run for own in learn for run in own}.values())
    without = sum(run["convergence_step"] is None for run in runs)
    return [
        f"(by at most {np.ceil(apart):.0f} steps where the agent learns)",
        f"(by a factor of up to {max(one.max() / one.min() for one in steps):.1f})",
        f"N/A for {without} of our {len(runs)} runs that learn",
    ]


def of_matchings() -> list[str]:
    """Return the figures that answer whether a longer delay beats D = 10."""
    longer = ("grm-30", "grm-100")
    ends = " and ".join(f"{matching(scheme).mean():.1f}" for scheme in longer)

    def p(figure: str) -> str:
        pairs = [welch(matching(scheme, figure), matching("grm-10", figure)) for scheme in longer]
        return " and ".join(said_p(one).removeprefix("p ").removeprefix("= ") for one in pairs)

    return [
        f"D = 30 and D = 100 end at N̄ = {ends} against {matching('grm-10').mean():.1f}",
        f"{p('sampled_length')}, and for learning sooner {p('settled_step')}",
    ]


def matching(scheme: str, figure: str = "mean_length") -> np.ndarray:
    return figures([run for run in runs_of(RESULTS, "other-matchings") if run["scheme"] == scheme], figure)


def settles(setting: str, scheme: str) -> float:
    """Return the mean step, in millions, from which on episodes stay short; every seed of these cells gets there."""
    own = [run for run in RUNS if (run["setting"], run["scheme"]) == (setting, scheme)]
    return float(np.mean([run["settled_step"] for run in own])) / 1e6


def repaid(*settings: str) -> tuple[float, float]:
    """Return the smallest and the largest of PBIM's largest repayments."""
    own = [run for run in RUNS if run["scheme"] in ("pbim", "pbim-raw") and run["setting"] in settings]
    found = -figures(own, "largest_repayment")
    return float(found.min()), float(found.max())


def im_gap() -> str:
    """Return by how much the gap to IM grows with α, as the claim says it."""
    (claim,) = (c for c in committed_claims(RESULTS, "doorkey") if c.sentence.startswith("By how much our methods end"))
    numbers = claim.here.removeprefix("gap to IM larger by ").partition("]")[0].replace("[", "").split()
    value, low, high = (float(number.strip(",")) for number in numbers)
    return f"{value:.0f} [{low:.0f}, {high:.0f}]"


def truncated(row: Row) -> str:
    return f"{100 * row.truncated.value:.0f} %" if row.truncated else "–"


def mean(row: Row) -> str:
    return f"{row.length.value:.0f}" if row.length else "–"


@pytest.mark.parametrize(("name", "quoted"), [(REPRODUCTION, in_reproduction), (DOORKEY, in_doorkey)])
def test_no_figure_in_the_text_is_stale(name: str, quoted: Callable[[], list[str]]):
    text = page(name)
    assert [fragment for fragment in quoted() if fragment not in text] == []


def test_which_of_two_delays_is_better_where_in_the_arena():
    results, text = results_in(RESULTS), page("docs/which-delay.md")
    means = {m: [float(own.mean()) for own in results.scores(m)] for m in ("grm-10", "grm-30")}
    thirty = [task for task, ten, long in zip(results.tasks, *means.values(), strict=True) if long > ten]
    assert thirty == ["DoorKey-11x11", "DoorKey-13x13"]
    assert set(results.tasks) - set(thirty) == {"MultiRoom-N4-S5-NoisyTV", "KeyCorridorS3R3"}
    assert f"D = 30 with α = {results.alpha('grm-30')} has the better score on DoorKey 11×11 and 13×13" in text
    assert f"D = 10 with α = {results.alpha('grm-10')} beside a noisy TV and on KeyCorridorS3R3" in text
