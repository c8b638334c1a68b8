"""The playground's numbers are payback's own, for every matching and at the ends of the sliders."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import payback

pytestmark = pytest.mark.slow

MATCHINGS = {
    "after": payback.match_after,
    "evenly": payback.match_evenly,
    "geometric": payback.match_geometric,
    "end": lambda gamma, _: payback.match_at_end(gamma),
}
CASES = [
    # matching, delay or rate, length, γ, λ, bonus
    ("after", 10, 40, 0.99, 0.95, "fading"),
    ("after", 30, 200, 0.995, 0.95, "constant"),
    ("after", 100, 20, 0.9, 0.5, "constant"),
    ("after", 1, 1, 0.99, 0.95, "constant"),
    ("after", 3, 50, 1, 1, "once"),
    ("evenly", 10, 60, 0.99, 0.95, "fading"),
    ("evenly", 40, 20, 0.95, 0, "once"),
    ("geometric", 0.9, 80, 0.99, 0.95, "fading"),
    ("geometric", 0, 10, 0.99, 0.9, "constant"),
    ("end", 0, 200, 0.99, 0.95, "constant"),
    ("end", 0, 2, 0.9, 1, "fading"),
]


@pytest.fixture
def playground(site: Path, page: Any) -> Any:
    page.goto((site / "playground.html").as_uri())
    page.wait_for_selector("#playground[data-drawn]")
    return page


def show(page: Any, **values: Any) -> dict[str, Any]:
    """Move the controls as a reader would, and return what the page computed."""
    for name, value in values.items():
        page.evaluate(
            """([id, value]) => {
                const control = document.getElementById(id);
                control.value = value;
                control.dispatchEvent(new Event("input", { bubbles: true }));
            }""",
            [f"pg-{name}", str(value)],
        )
    found = page.evaluate("window.playground")
    assert {name: str(found["settings"][name]) for name in values} == {name: str(v) for name, v in values.items()}
    return found["found"]


@pytest.mark.parametrize("case", CASES)
def test_the_numbers_are_paybacks(playground: Any, case: tuple[Any, ...]):
    matching, parameter, length, gamma, lam, bonus = case
    slider = {"geometric": {"rate": parameter}, "end": {}}.get(matching, {"delay": parameter})
    found = show(playground, matching=matching, length=length, gamma=gamma, **{"lambda": lam}, bonus=bonus, **slider)
    match = MATCHINGS[matching](gamma, parameter)
    state = match.init(np.zeros(1))
    for row in found["rows"]:
        done = np.array([row["step"] == length - 1])
        state, shaped = match.update(state, np.array([row["F"]]), done)
        np.testing.assert_allclose(row["shaped"], shaped[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(row["debt"], payback.owed(match, state)[0], rtol=1e-9, atol=1e-9)
    assert len(found["rows"]) == length
    advantage = 0.0  # GAE(λ) of payback's own payments, with a critic that is 0
    for row, gae in zip(reversed(found["rows"]), reversed(found["gae"]), strict=True):
        advantage = row["shaped"] + gamma * lam * advantage
        np.testing.assert_allclose(gae["signal"] - gae["noise"], advantage, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(gae["advantage"], advantage, rtol=1e-9, atol=1e-9)
    assert found["felt"] == pytest.approx(payback.felt_share(match, lam), abs=1e-12)
    assert found["feltWithin"] == pytest.approx(payback.felt_share(match, lam, length=length), abs=1e-12)
    # JSON has no infinity: Playwright hands it over as it is.
    assert found["interest"] == pytest.approx(payback.interest(match)) or math.isinf(payback.interest(match))
    assert math.isinf(found["interest"]) == math.isinf(payback.interest(match))
    assert playground.locator("#pg-sum").inner_text() == "0"
    assert playground.said == []


def test_the_charts_follow_the_sliders(playground: Any):
    bars = "document.querySelectorAll('#pg-rewards .mark-rect path').length"
    show(playground, length=20)
    playground.wait_for_function(f"() => {bars} == 40")
    show(playground, length=50)
    playground.wait_for_function(f"() => {bars} == 100")
    assert playground.locator("#pg-felt").inner_text() == "40 %"  # D = 10 at λ = 0.95
    show(playground, delay=30)
    assert playground.locator("#pg-felt").inner_text() == "79 %"
    playground.wait_for_function("() => document.querySelectorAll('#pg-advantages .mark-line path').length == 3")
    for name in ("debt", "felt-chart", "interest-chart"):
        assert playground.locator(f"#pg-{name} .mark-line path").count() == 1


def test_only_the_slider_that_matters_is_shown(playground: Any):
    rows = {name: playground.locator(f"#pg-{name}-row") for name in ("delay", "rate")}
    for matching, shown in (("after", "delay"), ("geometric", "rate"), ("evenly", "delay"), ("end", None)):
        show(playground, matching=matching)
        assert {name: row.is_visible() for name, row in rows.items()} == {name: name == shown for name in rows}
