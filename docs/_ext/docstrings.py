"""Docstrings as the code writes them: an indented block is an equation, shown as it stands."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx


def with_literal_blocks(lines: list[str]) -> list[str]:
    """Mark each indented paragraph as a literal block, because reStructuredText would make it a quotation.

    >>> with_literal_blocks(["Pay.", "", "    F' = F", "", "More."])
    ['Pay.', '', '::', '', "    F' = F", '', 'More.']
    """
    result: list[str] = []
    for k, line in enumerate(lines):
        before = [other for other in lines[:k] if other.strip()]
        starts = line.startswith("    ") and k > 0 and not lines[k - 1].strip()
        continues = bool(before) and (before[-1].startswith(" ") or before[-1].rstrip().endswith("::"))
        listed = bool(before) and re.match(r"[-*] ", before[-1])
        if starts and not continues and not listed:
            result += ["::", ""]
        result.append(line)
    return result


def without_substitutions(lines: list[str]) -> list[str]:
    """Escape the bars of |F|, which reStructuredText reads as a substitution; code and equations stay as they are.

    >>> without_substitutions(["Σ |F| and `a | b`", "    |F|", ">>> a | b"])
    ['Σ \\\\|F\\\\| and `a | b`', '    |F|', '>>> a | b']
    """
    return [
        line
        if line.startswith(("    ", ">>>", "..."))
        else "".join(part if k % 2 else part.replace("|", r"\|") for k, part in enumerate(re.split(r"(`[^`]*`)", line)))
        for line in lines
    ]


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = with_literal_blocks(without_substitutions(lines))


def setup(app: Sphinx) -> dict[str, bool]:
    """Change docstrings when autodoc reads them."""
    app.connect("autodoc-process-docstring", _process)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
