"""The reference: a directive that documents public names, and a check that none of them is missing.

    .. public-names:: payback
       :from: payback.core.matches

documents those names of `payback.__all__` that are defined in that module, in the order in which they are written.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from importlib.metadata import metadata
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.autodoc.mock import mock
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

log = logging.getLogger(__name__)

MODULES = (
    "payback",
    "payback.bonuses",
    "payback.bonuses.jax",
    "payback.bonuses.torch",
    "payback.mdp",
    "payback.theory",
)
"""The public modules but the adapters."""
FURTHER = (
    "payback.advantage.AdvantageEstimator",
    "payback.advantage.Estimate",
    "payback.auditing.audit.AuditOptions",
    "payback.auditing.audit.Leak",
    "payback.auditing.hypotheses.Cause",
    "payback.auditing.read.Columns",
    "payback.auditing.scan.EpisodeTable",
    "payback.check.advantage.advantage_by_loops",
    "payback.check.report.CheckReport",
    "payback.ledger.Ledger",
    "payback.ledger.LedgerState",
    "payback.ledger.Step",
    "payback.ledger.make",
    "payback.monitor.Monitor",
)
"""What public functions take or return."""


def public_modules() -> list[str]:
    """Return the modules whose names are public; an adapter is a module that has the name of an extra, its host's."""
    found = importlib.import_module("payback.integrations")
    modules = {module.name for module in pkgutil.iter_modules(found.__path__)}
    extras = [name.replace("-", "_") for name in metadata("payback").get_all("Provides-Extra", [])]
    return [*MODULES, *(f"payback.integrations.{name}" for name in extras if name in modules)]


def names_of(module: Any) -> list[str]:
    """Return the public names of a module: its `__all__`, or the functions and classes that it defines."""
    return getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__ and _is_code(value)
    ]


def _is_code(value: Any) -> bool:
    return inspect.isclass(value) or inspect.isfunction(value)


def _place(value: Any) -> tuple[str, int]:
    """Return where a name is written, to list names in the order of the source."""
    try:
        return value.__module__, inspect.getsourcelines(value)[1]
    except (AttributeError, OSError, TypeError):
        return "", 0


class PublicNames(SphinxDirective):
    """Document the public names of a module, or those of them that come from given modules."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"from": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Write the autodoc directives and parse them."""
        with mock(self.config.autodoc_mock_imports):
            module = importlib.import_module(self.arguments[0])
        sources = self.options.get("from", "").split()
        chosen = []
        for name in names_of(module):
            value = getattr(module, name)
            if not sources or getattr(value, "__module__", "") in sources:
                chosen.append((sources.index(value.__module__) if sources else 0, _place(value), name, value))
        if not chosen:
            raise self.error(f"{self.arguments[0]} has no public name from {' '.join(sources)}")
        lines: list[str] = []
        for _, _, name, value in sorted(chosen, key=lambda row: row[:3]):
            kind = "class" if inspect.isclass(value) else "function" if inspect.isfunction(value) else "data"
            lines += [f".. auto{kind}:: {module.__name__}.{name}", *(["   :members:"] if kind == "class" else []), ""]
        container = nodes.container()
        self.state.nested_parse(StringList(lines, source=self.get_source_info()[0]), self.content_offset, container)
        return container.children


def _refuse_missing(app: Sphinx, env: BuildEnvironment) -> None:
    """Warn, which is an error here, of every public name that no page documents or that has no docstring."""
    documented = env.get_domain("py").objects  # type: ignore[attr-defined]
    wanted: dict[str, Any] = dict.fromkeys(FURTHER)
    with mock(app.config.autodoc_mock_imports):
        for path in public_modules():
            module = importlib.import_module(path)
            for name in names_of(module):
                wanted[f"{path}.{name}"] = getattr(module, name)
    for name, value in wanted.items():
        if name not in documented:
            log.warning("%s is public, but on no page of the reference: add it to docs/reference/", name)
        elif _is_code(value) and not (value.__doc__ or "").strip():
            log.warning("%s is public, but has no docstring", name)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive and the check."""
    app.add_directive("public-names", PublicNames)
    app.connect("env-check-consistency", _refuse_missing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
