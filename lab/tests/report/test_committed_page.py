"""The page of the committed results, as a reader sees it: short, on a phone, in the dark, on paper, by keyboard."""

from pathlib import Path

import pytest

from payback_lab.report import store
from payback_lab.report.cards import CARDS
from payback_lab.report.page import page as compose

RESULTS = Path(__file__).parents[2] / "results"
HEIGHT = 600  # pixels for each experiment, its card and its section together: 12 fill nine screens of 800


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("committed") / "report.html"
    out.write_text(compose(store.load(RESULTS))[0])
    return out


@pytest.fixture
def page(open_page, report: Path):
    return open_page(report.as_uri())


def drawn_height(page) -> int:
    """Scroll through the page until everything that is in view is drawn; return its height."""
    for chart in page.locator(".chart:visible").all():
        chart.scroll_into_view_if_needed()
        page.wait_for_selector(f"[data-chart='{chart.get_attribute('data-chart')}'][data-drawn]")
    return page.evaluate("document.documentElement.scrollHeight")


def test_it_is_short_before_anything_is_unfolded(page) -> None:
    cards = page.locator(".card")
    assert cards.count() == len(store.load(RESULTS))
    assert drawn_height(page) <= HEIGHT * cards.count()
    assert page.said == []
    for name in CARDS:
        card = page.locator(f".card:has(a[href='#{name}'])")
        if card.count():
            assert card.locator(".chart, .dots").count() == 1
            assert card.locator(".numbers tbody tr").count() >= 3
            assert card.locator(".finding").count() == 1


def test_curves_stand_before_claims(page) -> None:
    curve = page.locator("#doorkey .chart").first.bounding_box()
    claims = page.locator("#doorkey-claims").bounding_box()
    assert curve["y"] + curve["height"] < claims["y"]
    assert page.locator("#doorkey-claims .verdict").first.is_hidden()


def test_a_part_of_the_bar_shows_the_claims_of_its_verdict(page) -> None:
    part = page.locator(".card .part.open[href='#doorkey-claims']")
    words = part.inner_text()
    part.focus()
    page.keyboard.press("Enter")
    claims = page.locator("#doorkey-claims details.claim")
    shown = claims.and_(page.locator(":visible"))
    own = page.locator("#doorkey-claims > details.claim.open:visible").count()
    assert own == shown.count() > 0
    assert words.endswith("undecided")
    page.locator("#doorkey-claims input[value=all]").check()
    assert shown.count() == claims.count()


def test_a_claim_shows_its_rule_and_the_value_of_the_paper(page) -> None:
    # By keyboard, because charts that are drawn meanwhile move the page under a mouse.
    page.locator("#doorkey-claims > summary").press("Enter")
    claim = page.locator("#doorkey-claims details.fails").first
    claim.locator("summary").press("Enter")
    assert claim.locator(".track u").count() > 0
    assert "95 % bootstrap interval" in claim.locator("dd").last.inner_text()


def test_a_link_from_outside_unfolds_what_it_names(open_page, report: Path) -> None:
    page = open_page(f"{report.as_uri()}#doorkey-claims")
    assert page.locator("#doorkey-claims .verdict").first.is_visible()


def test_a_phone_needs_no_sideways_scrolling_and_shows_the_verdicts(open_page, report: Path) -> None:
    page = open_page(report.as_uri(), width=390, height=844)
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    scrolled = "[...document.querySelectorAll('main *')].filter((e) => e.scrollWidth > e.clientWidth + 1 && \
      ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)).length"
    assert page.evaluate(scrolled) == 0
    for verdict in page.locator("#cliff-claims .verdict").all():
        box = verdict.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


LIGHTNESS = """(selector) => {
  const style = getComputedStyle(document.querySelector(selector));
  const colour = selector === 'body' ? style.backgroundColor : style[selector.endsWith('path') ? 'stroke' : 'fill'];
  return colour.match(/\\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 765;
}"""


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_the_charts_follow_light_and_dark(open_page, report: Path, scheme: str, dark: bool) -> None:
    page = open_page(report.as_uri(), color_scheme=scheme)
    page.locator("[data-chart=cliff-return]").scroll_into_view_if_needed()
    page.wait_for_selector("[data-chart=cliff-return][data-drawn]")
    assert (page.evaluate(LIGHTNESS, "body") < 0.3) is dark
    assert (page.evaluate(LIGHTNESS, "[data-chart=cliff-return] .role-axis text") > 0.5) is dark
    first = "[data-chart=cliff-return] .mark-line path"  # no IM, black on white
    assert (page.evaluate(LIGHTNESS, first) > 0.5) is dark


def test_on_paper_everything_is_unfolded_and_light(open_page, report: Path) -> None:
    page = open_page(report.as_uri(), color_scheme="dark")
    page.evaluate("window.print = () => { window.printed = true; }")
    page.locator("#print").click()
    page.wait_for_function("() => window.printed")
    assert page.locator("details:not([open])").count() == 0
    assert page.locator(".chart:not([data-drawn])").count() == 0
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(LIGHTNESS, "body") > 0.9
    assert page.evaluate(LIGHTNESS, "[data-chart=cliff-return] .role-axis text") < 0.5
    assert page.locator(".tools").is_hidden()
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() > 50
    assert page.said == []


def test_it_says_how_far_the_numbers_may_vary(page) -> None:
    text = page.locator(".vary").inner_text()
    assert "bitwise identical on one kind of processor" in text
    assert "the verdicts agreed" in text
