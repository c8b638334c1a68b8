"""The page in headless Chromium, offline: no request, no error, and the switches switch."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from payback_lab.methods import TITLES
from payback_lab.report.command import report as write_report
from payback_lab.runs import Asked


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    here = str(Path(__file__).parents[1])
    sys.path.insert(0, here)
    try:
        from fake_experiment import EXPERIMENT, fake_result
        from payback_lab import experiments, records
        from payback_lab.methods import SCHEMES

        out = tmp_path_factory.mktemp("report")
        for ablation in (None, "slow"):
            for run in EXPERIMENT.plan(Asked(SCHEMES, 2, (), 300, ablation)):
                records.write(out, run, fake_result(run), 3, {"command": "payback-lab run fake"})
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(experiments, "MODULES", {"fake": "fake_experiment"})
            assert write_report(out, out / "none", False, Console(quiet=True)) == 0
        yield out / "report.html"
    finally:
        sys.path.remove(here)


@pytest.fixture
def page(open_page, report: Path):
    """The page, open and drawn, with everything it said and asked for."""
    page = open_page(report.as_uri())
    page.locator("[data-chart=fake-return]").scroll_into_view_if_needed()
    page.wait_for_selector("[data-chart=fake-return][data-drawn]")
    return page


def lines(page) -> int:
    """Count the drawn learning curves."""
    return page.locator("[data-chart=fake-return] .mark-line path").count()


def unfold_all(page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")


def test_it_opens_without_a_request_or_a_complaint(page, report: Path) -> None:
    unfold_all(page)
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
    page.wait_for_function("() => [...document.querySelectorAll('.chart')].every((c) => c.dataset.drawn)")
    assert page.locator(".chart svg").count() == page.locator(".chart").count() > 20
    assert page.said == []
    assert page.asked == [report.as_uri()]


def test_what_is_folded_is_not_drawn_before_it_is_unfolded(page) -> None:
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    page.evaluate("() => new Promise((frame) => requestAnimationFrame(() => requestAnimationFrame(frame)))")
    assert page.locator("#fake-policies .chart[data-drawn]").count() == 0
    page.locator("#fake-policies > summary").click()
    page.wait_for_selector("#fake-policies .chart[data-drawn]")


def test_the_legend_switches_schemes_off_and_on(page) -> None:
    page.locator("#fake-policies > summary").click()
    assert lines(page) == 8
    page.get_by_label("GRM D = 10, not normalised").uncheck()
    page.get_by_label("no IM").uncheck()
    page.wait_for_function("() => document.querySelectorAll('[data-chart=fake-return] .mark-line path').length == 6")
    assert page.locator("figure[data-scheme=none]").first.is_hidden()
    assert page.locator(".grid3 li[data-scheme=none]").first.is_hidden()
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
    page.locator("#fake-ablations > summary").click()
    page.locator("#fake-ablations details summary").first.click()
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


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_it_fits_narrow_and_wide_windows(page, width: int) -> None:
    unfold_all(page)
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
