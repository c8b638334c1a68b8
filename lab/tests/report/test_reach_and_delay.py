"""The pages and pictures of `reach` and `delay`: from whatever runs there are, saying how many."""

from dataclasses import replace
from pathlib import Path

import pytest

from payback_lab.claims.claim import Claim
from payback_lab.claims.evidence import gather
from payback_lab.experiments.delay.config import LAMBDAS
from payback_lab.report import reach, store, which_delay
from payback_lab.report.charts.reach import as_svg, reach_figure, speed_figure
from payback_lab.report.charts.which_delay import NEVER, delay_figure, delay_points, felt_figure
from payback_lab.report.summary import Summary
from payback_lab.user_error import UserError

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(scope="module")
def told() -> dict[str, Summary]:
    return {summary.experiment: summary for summary in store.load(RESULTS)}


def of_seeds(summary: Summary, seeds: int) -> Summary:
    """Keep the first seeds of every cell."""
    groups = [replace(g, runs=[run for run in g.runs if run["seed"] < seeds]) for g in summary.groups]
    return replace(summary, groups=tuple(groups))


@pytest.mark.parametrize("draw", [reach_figure, speed_figure])
def test_the_picture_of_the_reach_says_how_many_seeds_there_are(told, draw):
    svg = as_svg(draw(of_seeds(told["reach"], 1)))
    assert "Seeds per point: 1 at 8" in svg
    assert 'fill="white"' in svg  # its own ground, so that it is read on dark pages
    assert "Nothing has been run yet." in as_svg(draw(replace(told["reach"], groups=())))


def test_the_three_methods_are_named_in_the_picture(told):
    svg = as_svg(reach_figure(told["reach"]))
    for name in ("no bonus", "raw bonus", "repaid bonus (GRM, D = 30)"):
        assert name in svg


def test_a_cell_that_never_learns_is_drawn_above_all(told):
    points = delay_points(told["delay"])
    never = {point["median"] for point in points if not point["learns"]}
    assert never == {NEVER}
    assert all(point["median"] < 3.01 for point in points if point["learns"])
    assert "of 26 cells, seeds per cell: 1." in as_svg(delay_figure(of_seeds(told["delay"], 1)))
    assert "0 of 26 cells" in as_svg(delay_figure(replace(told["delay"], groups=())))


def test_the_felt_share_is_drawn_for_every_lambda():
    rows = felt_figure()["hconcat"][0]["data"]["values"]
    assert {row["λ"] for row in rows} == {"0.8", "0.95", "0.99", "1"}
    assert all(0 <= row["felt"] <= 1 for row in rows)


def test_a_page_without_places_is_refused_and_nothing_is_lost(told):
    with pytest.raises(UserError, match="The page has no place for table of reach"):
        reach.filled("# A page", told["reach"])
    with pytest.raises(UserError, match="The page has no place for delays at a glance"):
        which_delay.filled("# A page", told)


def test_a_page_without_runs_says_so(told):
    marks = (
        "delays at a glance",
        "table of delay",
        "correlations of delay",
        "verdicts of delay",
        "verdicts of center",
    )
    page = which_delay.filled("".join(f"<!-- {mark} --><!-- end of {mark} -->" for mark in marks), {})
    assert page.count("not run |") == 26 + 4 * 6
    assert page.count("Nothing has been run yet") == 2


def test_the_advice_is_what_was_measured(told):
    """README, docs/which-delay.md, docs/howto/choose.md and docs/understand/felt.md say so in words."""
    evidence = gather(store.results_of(told["delay"].groups), "delay")
    found = {lam: which_delay.soonest(evidence, lam) for lam in LAMBDAS}
    assert found == {0.95: "grm-30", 0.8: "grm-30", 0.99: "grm-100", 1.0: None}


def means(*verdicts: str, lacking: bool = False) -> list[Claim]:
    return [Claim("", "", "", "", verdict, lacking=lacking) for verdict in verdicts]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        (means("holds", *["undecided"] * 6), "**a recent mean is the better default**"),
        (means("does not hold", *["undecided"] * 6), "**the cumulative mean is the better default**"),
        (means("holds", "does not hold", *["undecided"] * 5), "neither is the better default"),
        (means(*["undecided"] * 7), "neither is the better default"),
        (means("holds"), "not all of the 7 cells have been run, and the default stays"),
        (means("holds", *["undecided"] * 6, lacking=True), "not all of the 7 cells"),
    ],
)
def test_the_default_mean_follows_the_committed_rule(claims, said: str):
    assert said in which_delay.default_mean(claims)
