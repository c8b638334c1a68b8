"""docs/results/speed.md shows the ratios that are committed: `make bench` writes both."""

import json
import runpy
from pathlib import Path

BENCH = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "bench.py"))


def test_the_page_shows_the_committed_ratios() -> None:
    text = BENCH["PAGE"].read_text()
    assert BENCH["page"](text, json.loads(BENCH["RATIOS"].read_text())) == text
