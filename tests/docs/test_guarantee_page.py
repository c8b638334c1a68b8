"""The page says what the code does: its example and its table of DoorKey settings are run."""

import doctest
from pathlib import Path

from payback_lab.prior_work.procrastination import doorkey_table

PAGE = Path(__file__).parents[2] / "docs" / "guarantee.md"


def test_the_example_on_the_page_runs() -> None:
    text = PAGE.read_text().split("```python\n")[1].split("```")[0]
    test = doctest.DocTestParser().get_doctest(text, {}, "guarantee", str(PAGE), 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert runner.run(test).failed == 0


def test_the_doorkey_table_is_what_the_code_finds() -> None:
    rows = [line.split("|")[1:-1] for line in PAGE.read_text().splitlines() if line.startswith("| 0.0")]
    said = {}
    for setting, visits, distances, paper, exact in ([cell.strip(" *") for cell in row] for row in rows):
        alpha, gamma = map(float, setting.split(","))
        for n in visits.split(","):
            for d in distances.split(","):
                said[alpha, gamma, int(n), int(d)] = (paper == "yes", exact == "yes")
    found = {(r.alpha, r.gamma, r.visits, r.distance): (r.paper is not None, r.exact) for r in doorkey_table()}
    assert said == found
