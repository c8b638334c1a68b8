"""Equations as MathML, made when the site is built: no script, no font, nothing fetched; GitHub sets them itself."""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def _inline(writer: HTML5Translator, node: nodes.math) -> None:
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer: HTML5Translator, node: nodes.math_block) -> None:
    # One <math> for each line of the equation, so that a narrow page scrolls the equation and not itself.
    lines = "".join(f"<div>{tex2mathml(line, as_block=True)}</div>" for line in node.astext().split(r"\\"))
    writer.body.append(f'<div class="equation">{lines}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the renderer; conf.py chooses it."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
