"""Code as a reader would paste it: without the marks that are meant for our linter."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.application import Sphinx


def without_marks(code: str) -> str:
    """Take `# noqa` out, and keep the comment behind it.

    >>> without_marks("import minigrid  # noqa: F401  registers the environments")
    'import minigrid  # registers the environments'
    >>> without_marks("zip(*rows)  # noqa: B905")
    'zip(*rows)'
    """
    kept = re.sub(r"# noqa(: \w+)?  (?=\S)", "# ", code)
    return re.sub(r"  # noqa(: \w+)?$", "", kept, flags=re.MULTILINE)


def _clean(app: Sphinx, doctree: nodes.document) -> None:
    for block in doctree.findall(nodes.literal_block):
        code = without_marks(block.astext())
        if code != block.astext():
            block.rawsource, block[:] = code, [nodes.Text(code)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Clean each page's blocks when the page has been read."""
    app.connect("doctree-read", _clean)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
