"""The site as a reader meets it, in Chromium from the file system: links, search, the console, a narrow screen."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.slow


class Links(HTMLParser):
    """Collects the targets of a page's links, pictures and scripts, and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for key, value in attrs if key in ("id", "name") and value}
        target = values.get("href") if tag in ("a", "link") else values.get("src")
        if target:
            self.targets.append(target)


def broken_links(site: Path) -> list[str]:
    """Return every internal link whose file or anchor is not there, with its page."""
    pages = {path: Links(path) for path in site.rglob("*.html")}
    broken = []
    for path, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not file.exists() or (anchor and file in pages and anchor not in pages[file].anchors):
                broken.append(f"{path.relative_to(site)}: {target}")
    return broken


def all_pages(site: Path) -> list[Path]:
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def test_every_internal_link_leads_somewhere(site: Path):
    assert len(all_pages(site)) > 45
    assert broken_links(site) == []


OPEN_ROWS = "[...document.querySelectorAll('article table')].filter(t => !t.closest('details')).map(t => t.rows.length)"


def test_every_page_opens_without_a_network_or_a_complaint_and_fits_two_screens(site: Path, page: Any):
    wide, long = [], []
    for path in all_pages(site):
        name = path.relative_to(site).as_posix()
        page.goto(path.as_uri())
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            if page.evaluate("document.documentElement.scrollWidth") > width:
                wide.append(f"{name} at {width}")
        if max(page.evaluate(OPEN_ROWS), default=0) > 26:  # 25 and the header
            long.append(name)
    assert wide == long == []
    assert page.said == []
    assert [url for url in page.asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.parametrize(
    ("words", "title"), [("truncation", "Time limits and truncation"), ("match_evenly", "payback.match_evenly")]
)
def test_search_finds_a_page_from_the_file_system(site: Path, page: Any, words: str, title: str):
    page.goto((site / "index.html").as_uri())
    page.fill(".sidebar-search", words)
    page.press(".sidebar-search", "Enter")
    page.wait_for_selector("#search-results li a")
    found = page.locator("#search-results li a").all_inner_texts()
    assert any(title in text for text in found), found
    page.locator("#search-results li a").first.click()
    page.wait_for_load_state()
    assert "search.html" not in page.url
    assert page.said == []


def test_equations_are_set_and_a_type_alias_is_explained_in_our_words(site: Path):
    assert (site / "guarantee.html").read_text().count('class="equation"') == 2
    adapters = (site / "reference" / "adapters.html").read_text()
    assert "PEP 604" not in adapters
    assert "or the name of an info key" in adapters


def test_every_public_name_has_its_place(site: Path):
    import payback

    text = (site / "genindex.html").read_text()
    assert [name for name in payback.__all__ if not re.search(rf">{name}(\(\))? ", text)] == []
