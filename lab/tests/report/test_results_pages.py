"""The pages of the docs quote the committed results, figure by figure."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from payback_lab.claims.claim import Claim
from payback_lab.experiments.arena.results import study_results
from payback_lab.report import arena, readme, store
from payback_lab.report.charts.reach import reach_rows
from payback_lab.report.claims import line, page
from payback_lab.report.claims_view import claims_view
from payback_lab.report.committed import verdicts
from payback_lab.report.docs import FILLED
from payback_lab.report.doorkey_tables import tables
from payback_lab.report.readme import sentence
from payback_lab.report.reproduction import filled
from payback_lab.report.results_pages import CONVERGED, table, with_cliffs
from payback_lab.user_error import UserError

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "lab" / "results"
README = (ROOT / "README.md").read_text()
CLIFF, DOORKEY, CHALLENGE = (
    (ROOT / f"docs/results/{name}.md").read_text() for name in ("cliff", "doorkey", "challenge")
)


@pytest.mark.parametrize("experiment", CONVERGED)
def test_the_page_shows_the_committed_results(experiment: str):
    assert table(RESULTS, experiment) in CLIFF
    assert verdicts(RESULTS, experiment) in CLIFF


def test_another_figure_would_be_noticed():
    changed = CLIFF.replace("10 of 10", "9 of 10", 1)
    assert table(RESULTS, "cliff") not in changed


def test_the_page_shows_the_committed_doorkey():
    shown = tables(RESULTS)
    assert shown in DOORKEY
    assert verdicts(RESULTS, "doorkey") in DOORKEY
    assert shown.replace("54.9", "54.8", 1) not in DOORKEY


@pytest.mark.parametrize("experiment", ["cliff", "long-cliff", "doorkey"])
def test_the_summary_counts_the_same_verdicts(experiment: str):
    sentences, holds, fails, open_ = re.findall(r"\d+", verdicts(RESULTS, experiment))
    part = CHALLENGE.split(
        {"cliff": "**Cliff.**", "long-cliff": "**Long cliff.**", "doorkey": "**DoorKey.**"}[experiment]
    )
    assert re.match(rf"\s{holds} (sentences )?hold, {fails} do not, {open_} are undecided", part[1])
    named = {"cliff": "for the cliff", "long-cliff": "for the long cliff", "doorkey": "for\nDoorKey"}[experiment]
    assert f"{sentences} {named}" in CHALLENGE


def test_the_readme_quotes_the_committed_results():
    told = {summary.experiment: summary for summary in store.load(RESULTS)}
    found, runs = told["reach"], arena.results_in(RESULTS)
    assert readme.filled(README, found, told["curiosity"], runs) == README
    one_less = replace(told["curiosity"], groups=told["curiosity"].groups[1:])
    assert readme.filled(README, found, one_less, runs) != README
    assert readme.filled(README, found, told["curiosity"], study_results([])) != README
    assert sentence(reach_rows(found)).count("times the fewest steps") == 2
    with pytest.raises(UserError, match="lacks a method at 11×11"):
        sentence([row for row in reach_rows(found) if row.scheme != "im"])


def test_the_page_of_claims_is_that_of_the_committed_results():
    assert (ROOT / "docs" / "claims.md").read_text() == page(RESULTS)


def test_the_pages_are_filled_from_the_committed_results():
    for name, fill in FILLED.items():
        text = (ROOT / name).read_text()
        assert fill(text, RESULTS) == text, name
    reproduction = (ROOT / "docs" / "reproduction.md").read_text()
    altered = reproduction.replace("| never |", "| 0.10 M |", 1)
    assert filled(altered, RESULTS) == reproduction != altered


def test_a_page_without_a_place_is_refused():
    with pytest.raises(UserError, match="no place for table of cliff"):
        with_cliffs("# Nothing here", RESULTS)


def test_a_claim_stays_in_its_row():
    claim = Claim("fig:x", "a | b", paper="", here="1\n2", verdict="holds")
    (shown,) = claims_view([claim]).own
    assert line(shown, "cliff") == ("**holds**", "a \\| b", "1 2", "–")
    (shown,) = claims_view([replace(claim, ablation="wide-rnd", paper="< 3", note="By eye.")]).own
    assert line(shown, "cliff") == ("**holds**", "wide-rnd: a \\| b", "1 2 (paper: < 3)", "By eye.")


def test_the_figures_are_there():
    for text in (README, *(path.read_text() for path in (ROOT / "docs").rglob("*.md"))):
        for figure in re.findall(r"figures/[\w.-]+svg", text):
            assert (ROOT / "docs" / figure).stat().st_size > 500, figure
