"""Docstrings as the code writes them: an indented block is an equation; fields with an underscore are left out."""

from __future__ import annotations

import inspect
import re
import sys
from types import UnionType
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.inspect import signature, stringify_signature


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


def attribute_docs(name: str, obj: Any) -> list[str]:
    """Return the docstring below a variable that a package takes from one of its modules."""
    package, _, variable = name.rpartition(".")
    for path, module in list(sys.modules.items()):
        if path.startswith(f"{package}.") and vars(module).get(variable) is obj:
            found = ModuleAnalyzer.for_module(path).find_attr_docs().get(("", variable))
            if found:
                return list(found)
    return []


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    # A type alias has no docstring of its own, so that autodoc shows that of its class.
    if what == "data" and isinstance(obj, UnionType) and "\n".join(lines).strip() == inspect.getdoc(UnionType):
        lines[:] = attribute_docs(name, obj)
    # The field of a NamedTuple that nobody documented has a docstring all the same, Python's.
    if re.match(r"Alias for field number \d+$", "\n".join(lines).strip()):
        lines.clear()
    lines[:] = with_literal_blocks(without_substitutions(lines))


def _without_private(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, arguments: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Leave the parameters with an underscore out of a class's signature: they are the package's own."""
    if not inspect.isclass(obj) or not arguments or not re.search(r"\b_\w", arguments):
        return arguments, returned
    found = signature(obj)
    public = [parameter for parameter in found.parameters.values() if not parameter.name.startswith("_")]
    return stringify_signature(found.replace(parameters=public), unqualified_typehints=True), returned


def setup(app: Sphinx) -> dict[str, bool]:
    """Change docstrings when autodoc reads them."""
    app.connect("autodoc-process-docstring", _process)
    app.connect("autodoc-process-signature", _without_private)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
