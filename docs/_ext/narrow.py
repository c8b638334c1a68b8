"""What a narrow screen needs: an interval stays on one line, and a wide figure scrolls in a box of its own."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

CROWDED = 10
"""Columns; a table with more has no room for intervals on one line."""
WIDE = 800
"""Pixels; a wider figure has several panels, whose words are too small to read on a phone."""


def with_unbroken_intervals(text: str) -> str:
    """Put spaces that do not break between the bounds of an interval.

    >>> with_unbroken_intervals("100 % [98 %, 99 %], see [the arena, here]").count("\u00a0")
    3
    """
    return re.sub(r"\[[-−+]?\d[^\[\]]{1,24}\]", lambda found: found[0].replace(" ", "\u00a0"), text)


def width_of(svg: str) -> float:
    """Return a drawing's width in pixels, 0 where it has none.

    >>> width_of('<svg class="marks" width="932" height="413">')
    932.0
    """
    found = re.search(r'<svg[^>]*?\bwidth="([\d.]+)"', svg)
    return float(found[1]) if found else 0.0


def _columns(text: nodes.Text) -> int:
    """Return how many columns the table has in which a text stands, 0 outside of tables."""
    above = text.parent
    while above is not None and not isinstance(above, nodes.tgroup):
        above = above.parent
    return 0 if above is None else int(above["cols"])


def _fit(app: Sphinx, doctree: nodes.document) -> None:
    for text in list(doctree.findall(nodes.Text)):
        kept = with_unbroken_intervals(text.astext())
        code = isinstance(text.parent, nodes.literal | nodes.literal_block)
        if kept != text.astext() and not code and _columns(text) <= CROWDED:
            text.parent.replace(text, nodes.Text(kept))
    for image in doctree.findall(nodes.image):
        file = Path(app.srcdir) / image["uri"]
        if file.suffix == ".svg" and file.is_file() and width_of(file.read_text()[:2000]) > WIDE:
            image["classes"].append("wide")


def setup(app: Sphinx) -> dict[str, bool]:
    """Fit each page's tables and figures when the page has been read."""
    app.connect("doctree-read", _fit)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
