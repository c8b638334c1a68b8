"""The page in headless Chromium, offline: no request, no error, and the switches switch."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from payback_lab.methods import TITLES
from payback_lab.report.command import report as write_report

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is missing: apt-get install chromium, or set CHROMIUM"),
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    import sys

    here = str(Path(__file__).parents[1])
    sys.path.insert(0, here)
    try:
        from fake_experiment import EXPERIMENT, fake_result
        from payback_lab import experiments, records
        from payback_lab.methods import SCHEMES

        out = tmp_path_factory.mktemp("report")
        for ablation in (None, "slow"):
            for run in EXPERIMENT.plan(SCHEMES, 2, (), 300, ablation):
                records.write(out, run, fake_result(run), 3, {"command": "payback-lab run fake"})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(experiments, "MODULES", {"fake": "fake_experiment"})
            assert write_report(out, out / "none", False, Console(quiet=True)) == 0
        yield out / "report.html"
    finally:
        sys.path.remove(here)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def page(browser, report: Path):
    """The page, open and drawn, with everything it said and asked for."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.set_default_timeout(60_000)  # a busy machine draws slowly
    page.goto(report.as_uri())
    page.wait_for_selector("[data-chart=fake-return][data-drawn]")
    yield page
    context.close()


def lines(page) -> int:
    """Count the drawn learning curves."""
    return page.locator("[data-chart=fake-return] .mark-line path").count()


def test_it_opens_without_a_request_or_a_complaint(page, report: Path) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
    page.wait_for_function(
        "() => [...document.querySelectorAll('.chart')].every((c) => c.dataset.drawn)", timeout=60_000
    )
    assert page.locator(".chart svg").count() == page.locator(".chart").count() > 20
    assert page.said == []
    assert page.asked == [report.as_uri()]


def test_the_legend_switches_schemes_off_and_on(page) -> None:
    assert lines(page) == 8
    page.get_by_label("GRM D = 10, not normalised").uncheck()
    page.get_by_label("no IM").uncheck()
    page.wait_for_function("() => document.querySelectorAll('[data-chart=fake-return] .mark-line path').length == 6")
    assert page.locator("figure[data-scheme=none]").first.is_hidden()
    page.get_by_label("no IM").check()
    page.wait_for_function("() => document.querySelectorAll('[data-chart=fake-return] .mark-line path').length == 7")
    assert page.locator("figure[data-scheme=none]").first.is_visible()
    page.get_by_role("button", name="none").click()
    page.wait_for_function("() => document.querySelectorAll('[data-chart=fake-return] .mark-line path').length == 0")
    page.get_by_role("button", name="all").click()
    page.wait_for_function("() => document.querySelectorAll('[data-chart=fake-return] .mark-line path').length == 8")
    assert page.said == []


def test_what_is_switched_off_stays_off_in_charts_drawn_later(page) -> None:
    page.get_by_label("PBIM", exact=True).uncheck()
    page.locator("details summary").first.click()
    page.locator("[data-chart=fake-slow-return]").scroll_into_view_if_needed()
    page.wait_for_selector("[data-chart=fake-slow-return][data-drawn]")
    assert page.locator("[data-chart=fake-slow-return] .mark-line path").count() == 7


def test_the_band_changes(page) -> None:
    shape = "() => document.querySelector('[data-chart=fake-return] .mark-area path').getAttribute('d')"
    shapes = [page.evaluate(shape)]
    for band in ("ci", "off"):
        page.select_option("#band", band)
        page.wait_for_function(f"(old) => ({shape})() != old", arg=shapes[-1])
        shapes.append(page.evaluate(shape))
    assert len(set(shapes)) == 3


def test_pointing_at_a_curve_shows_its_numbers(page) -> None:
    chart = page.locator("[data-chart=fake-return] svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 3)
    page.mouse.move(box["x"] + box["width"] / 2 + 2, box["y"] + box["height"] / 3)
    page.wait_for_selector("#vg-tooltip-element.visible")
    text = page.locator("#vg-tooltip-element").inner_text()
    for word in ("episode", "mean", "standard deviation", "95 % from", "IQM"):
        assert word in text
    assert page.locator("#vg-tooltip-element h2").inner_text() in TITLES.values()
    assert "undefined" not in text
    assert "NaN" not in text


@pytest.mark.parametrize("width", [360, 1280])
def test_it_fits_narrow_and_wide_windows(page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
