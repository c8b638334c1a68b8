"""The README quotes the committed results, figure by figure."""

from pathlib import Path

import pytest

from payback.paper.report.readme import CONVERGED, table, verdicts

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("experiment", CONVERGED)
def test_the_readme_shows_the_committed_results(experiment: str):
    assert table(ROOT / "results", experiment) in README
    assert verdicts(ROOT / "results", experiment) in README


def test_another_figure_would_be_noticed():
    changed = README.replace("10 of 10", "9 of 10", 1)
    assert table(ROOT / "results", "cliff") not in changed
