"""`{program-help} payback audit`: what the command prints with --help, asked when the site is built."""

from __future__ import annotations

import contextlib
import io
import os

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class ProgramHelp(SphinxDirective):
    """Show the help of one of payback's own commands."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Call the command line's `main` with --help and keep what it prints."""
        from payback.cli import main

        words = self.arguments[0].split()
        printed = io.StringIO()
        os.environ["COLUMNS"] = "88"
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            main([*words[1:], "--help"])
        text = f"$ {' '.join(words)} --help\n{printed.getvalue().rstrip()}"
        block = nodes.literal_block(text, text)
        block["language"] = "text"
        return [block]


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("program-help", ProgramHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
