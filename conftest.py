"""One browser for the tests of the library, of the site and of the lab."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ("background-networking", "component-update", "dev-shm-usage", "gpu", "sync")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium; one for the whole session, because Playwright cannot be started twice in a process."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: apt-get install chromium, or set CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", *(f"--disable-{name}" for name in QUIET)]
        )
        yield browser
        browser.close()
