"""The markers that follow from a parameter or a fixture, and one browser for all tests that open a page."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ("background-networking", "component-update", "dev-shm-usage", "gpu", "sync")
WAIT_FOR_PAGE = 300_000
"""Milliseconds that a page may take to do anything: a guard against hanging, not a measure."""

COMPILED_DOCTESTS = ("src/payback/bonuses/jax/", "lab/src/payback_lab/learners/arena/train.py")
"""Each compiles for seconds; a doctest cannot carry a marker. tests/bonuses and lab/tests check the same functions."""

collect_ignore = [
    *(f"src/payback/integrations/{host}.py" for host in ("rllib", "rsl_rl", "skrl")),
    *(f"tests/integrations/{name}.py" for name in ("rllib_walk", "rsl_rl_lanes", "skrl_lanes")),
]
"""Have no tests of their own, and need a host that the main environment cannot hold. Any other file that cannot be
imported is an error; pytest's option to skip those (`--doctest-ignore-import-errors`) skips their tests too."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what cannot be marked where it stands: a use of the browser, a library as a parameter, a doctest."""
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()  # pyright: ignore
        marks = [value for value in parameters if isinstance(value, str) and value in ("torch", "jax")]
        marks += ["browser"] * ("browser" in getattr(item, "fixturenames", ()))
        marks += ["slow"] * item.nodeid.startswith(COMPILED_DOCTESTS)
        for mark in marks:
            item.add_marker(mark)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium; one for the whole session, because Playwright cannot be started twice in a process."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: make test-all installs it"
    )
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: apt-get install chromium, or set CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", *(f"--disable-{name}" for name in QUIET)],
            timeout=WAIT_FOR_PAGE,
        )
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Any]:
    """Return a function that opens pages without a network; each keeps its console (`said`) and requests (`asked`)."""
    contexts = []

    def open_page(address: str | None = None, width: int = 1280, height: int = 800, **options: Any) -> Any:
        context = browser.new_context(offline=True, viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda request: page.asked.append(request.url))
        page.set_default_timeout(WAIT_FOR_PAGE)
        if address:
            page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
