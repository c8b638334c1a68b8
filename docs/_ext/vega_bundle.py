"""Vega for the playground: written once per build from vl-convert, which the lab brings, and never fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import vl_convert
from sphinx.application import Sphinx

PAGE = "playground"


def _write(app: Sphinx) -> None:
    folder = Path(app.doctreedir) / "static"
    folder.mkdir(parents=True, exist_ok=True)
    # In a function of its own, because Sphinx's scripts and the bundle both have a top-level `_`.
    (folder / "vega.js").write_text(f"(() => {{{vl_convert.javascript_bundle()}}})();")
    app.config.html_static_path.append(str(folder))


def _load(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Load the scripts on the page that needs them, and on no other."""
    if page == PAGE:
        app.add_js_file("vega.js")
        app.add_js_file("loans.js")
        app.add_js_file("playground.js", defer="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the bundle before pages are read."""
    app.connect("builder-inited", _write)
    app.connect("html-page-context", _load)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
