"""README and docs quote the committed results, figure by figure."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from payback_lab.claims.claim import Claim
from payback_lab.report import readme
from payback_lab.report.claims import line, page
from payback_lab.report.claims_view import claims_view
from payback_lab.report.readme import CONVERGED, table, verdicts
from payback_lab.report.readme_doorkey import tables
from payback_lab.report.reproduction import filled
from payback_lab.user_error import UserError

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "lab" / "results"
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("experiment", CONVERGED)
def test_the_readme_shows_the_committed_results(experiment: str):
    assert table(RESULTS, experiment) in README
    assert verdicts(RESULTS, experiment) in README


def test_another_figure_would_be_noticed():
    changed = README.replace("10 of 10", "9 of 10", 1)
    assert table(RESULTS, "cliff") not in changed


def test_the_readme_shows_the_committed_doorkey():
    shown = tables(RESULTS)
    assert shown in README
    assert verdicts(RESULTS, "doorkey") in README
    assert shown.replace("54.9", "54.8", 1) not in README


def test_the_page_of_claims_is_that_of_the_committed_results():
    assert (ROOT / "docs" / "claims.md").read_text() == page(RESULTS)


def test_the_pages_are_filled_from_the_committed_results():
    reproduction = (ROOT / "docs" / "reproduction.md").read_text()
    assert readme.filled(README, RESULTS) == README
    assert filled(reproduction, RESULTS) == reproduction
    altered = reproduction.replace("| never |", "| 0.10 M |", 1)
    assert filled(altered, RESULTS) == reproduction != altered


def test_a_page_without_a_place_is_refused():
    with pytest.raises(UserError, match="no place for table of cliff"):
        readme.filled("# Nothing here", RESULTS)


def test_a_claim_stays_in_its_row():
    claim = Claim("fig:x", "a | b", paper="", here="1\n2", verdict="holds")
    (shown,) = claims_view([claim]).own
    assert line(shown, "cliff") == ("**holds**", "a \\| b", "1 2", "–")
    (shown,) = claims_view([replace(claim, ablation="wide-rnd", paper="< 3", note="By eye.")]).own
    assert line(shown, "cliff") == ("**holds**", "wide-rnd: a \\| b", "1 2 (paper: < 3)", "By eye.")


def test_the_readme_figures_are_there():
    for figure in re.findall(r"docs/figures/[\w.-]+", README):
        assert (ROOT / figure).stat().st_size > 500, figure
