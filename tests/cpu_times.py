"""A pytest plugin that sums up the CPU seconds of each test, its processes' too: `make times`

Time by the clock says little on a busy machine, and `slow` is about what a test costs.
"""

import os
from collections import Counter
from typing import Any

import pytest

SHOWN = 40
_began: dict[str, float] = {}


def spent() -> float:
    """Return the CPU seconds of this process and of those it has waited for."""
    return sum(os.times()[:4])


def pytest_runtest_logstart(nodeid: str) -> None:
    """Remember what was spent before a test."""
    _began[nodeid] = spent()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Tell the report, which xdist sends to the process that sums up."""
    if call.when == "teardown" and item.nodeid in _began:
        item.user_properties.append(("cpu", spent() - _began[item.nodeid]))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the total, the dearest files and the dearest tests."""
    reports = [report for reports in terminalreporter.stats.values() for report in reports]
    costs = Counter[str]()
    for report in reports:
        if getattr(report, "when", None) == "teardown":
            costs[report.nodeid] += dict(report.user_properties).get("cpu", 0.0)
    files = Counter[str]()
    for nodeid, seconds in costs.items():
        files[nodeid.partition("::")[0]] += seconds
    terminalreporter.section(f"{sum(costs.values()):.0f} s of CPU in {len(costs)} tests")
    for table in (files, costs):
        for name, seconds in table.most_common(SHOWN):
            terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
        terminalreporter.write_line("")
