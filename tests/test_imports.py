"""The core needs NumPy and array-api-compat and nothing else; arrows point to it, never from it."""

import ast
import doctest
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import payback

PACKAGE = Path(payback.__file__).parent
COMMAND_LINE = {"cli", "__main__", "commands"}
CORE = sorted(path for path in PACKAGE.glob("*.py") if path.stem not in COMMAND_LINE)
ALLOWED = {"numpy", "array_api_compat", "payback", *sys.stdlib_module_names}
ABOVE = {"paper", "integrations", *COMMAND_LINE}
"""What is built on the core."""
LAZY = {"jax", "pyarrow"}
"""May be imported inside a function: one that was handed JAX arrays, or a Parquet file."""


def imports(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """Yield each imported module's full name, and whether it is imported when the file is."""
    inside = {
        node
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node not in inside) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = f"payback.{node.module or ''}".rstrip(".") if node.level else node.module
            yield from ((f"{home}.{alias.name}", node not in inside) for alias in node.names)


def wrong_imports(source: str) -> list[str]:
    """Return what a core file must not import."""
    wrong = []
    for name, at_once in imports(ast.parse(source)):
        top = name.split(".")[0]
        if top not in ALLOWED and (at_once or top not in LAZY):
            wrong.append(name)
        if top == "payback" and f"{name}.".split(".")[1] in ABOVE:
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("path", CORE, ids=[path.name for path in CORE])
def test_the_core_imports_nothing_heavier(path: Path):
    assert wrong_imports(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        "import torch",
        "import jax.numpy as jnp",
        "from jax import lax",
        "import payback_lab.methods",
        "from payback.integrations import gymnasium",
        "def f():\n    import torch",
        "def f():\n    from payback_lab import records",
        "from .paper import records",
        "from payback import cli",
        "from . import paper",
        "class A:\n    import gymnasium",
    ],
)
def test_the_check_can_fail(source: str):
    assert wrong_imports(source)
    assert not wrong_imports("import json\nimport numpy as np\ndef f():\n    from jax import lax")


def test_importing_payback_loads_nothing_heavier():
    """In a process of its own: whatever it loads beyond what Python and NumPy load by themselves."""
    script = "import sys, numpy; before = set(sys.modules); import payback; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert "payback" in loaded
    assert loaded <= ALLOWED
    assert not [name for name in run.stdout.split() if name.startswith(("payback_lab", "payback.integrations"))]


# ------------------------------------------------------------------ every public name is documented


@pytest.mark.parametrize("name", payback.__all__)
def test_every_public_name_has_a_docstring_with_a_doctest(name: str):
    documented = getattr(payback, name).__doc__ or ""
    first = documented.strip().splitlines()[0] if documented else ""
    assert first.endswith((".", ":")), "the first line says what it does"
    assert doctest.DocTestParser().get_examples(documented), f"payback.{name} has no doctest"


def test_all_is_sorted_and_complete():
    assert list(payback.__all__) == sorted(payback.__all__)
    assert all(hasattr(payback, name) for name in payback.__all__)
