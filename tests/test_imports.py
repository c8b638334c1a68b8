"""Which package may import which: arrows point to the core, and from the lab to the library, never back."""

import ast
import doctest
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import payback

ROOT = Path(__file__).parents[1]
LIBRARY, LAB = ROOT / "src" / "payback", ROOT / "lab" / "src" / "payback_lab"
BARE = {"numpy", "array_api_compat", "payback", *sys.stdlib_module_names}
"""What the library may import at once, its integrations and Torch and JAX bonuses aside."""
LAZY = {"jax", "pyarrow"}
"""May be imported inside a function: one that was handed JAX arrays, or a Parquet file."""
HOSTED = {"integrations", "bonuses.torch", "bonuses.jax"}
"""Packages that import a host: they are not imported by `import payback`."""
MAY_IMPORT = {
    "core": {"core"},
    "check": {"core", "check", "auditing"},
    "auditing": {"core", "auditing"},
    "bonuses": {"core", "bonuses"},
    "advantage": {"core"},
    "messages": {"core"},
    "ledger": {"core", "messages"},
    "monitor": {"core", "ledger", "messages", "auditing"},
    "integrations": {"core", "advantage", "integrations", "bonuses", "ledger", "monitor", "messages", "theory"},
    "mdp": {"core", "mdp", "theory"},
    "theory": {"core", "theory"},
    "cli": {"core", "check", "auditing", ""},
}
"""Package or module of the library → those it may import; "" is `payback` itself."""
FILES = sorted(path for path in LIBRARY.rglob("*.py") if path.stem not in ("__init__", "__main__"))


def package_of(module: str) -> str:
    """Return the package of a module of the library: "core" for "payback.core.center", "" for "payback" itself."""
    return module.split(".")[1] if "." in module else ""


def imports(source: str) -> Iterator[tuple[str, bool]]:
    """Yield each imported module's full name, and whether it is imported when the file is."""
    tree = ast.parse(source)
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
            assert not node.level, "imports name the package in full"
            known = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from ((name if node.module == "payback" else str(node.module), node not in inside) for name in known)


def wrong_imports(module: str, source: str) -> list[str]:
    """Return what a module of the library must not import."""
    package, wrong = package_of(module), []
    hosted = any(module.startswith(f"payback.{name}.") for name in HOSTED)
    for name, at_once in imports(source):
        top = name.split(".")[0]
        if top not in BARE and not hosted and (at_once or top not in LAZY):
            wrong.append(name)
        if top == "payback_lab" or (top == "payback" and package_of(name) not in MAY_IMPORT[package]):
            wrong.append(name)
    return wrong


def module_of(path: Path) -> str:
    return ".".join(("payback", *path.relative_to(LIBRARY).with_suffix("").parts))


@pytest.mark.parametrize("path", FILES, ids=[module_of(path) for path in FILES])
def test_each_package_imports_only_what_it_may(path: Path):
    assert wrong_imports(module_of(path), path.read_text()) == []


def test_importing_payback_loads_nothing_heavier():
    """In a process of its own: whatever it loads beyond what Python and NumPy load by themselves."""
    script = "import sys, numpy; before = set(sys.modules); import payback; print(*sorted(set(sys.modules) - before))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert "payback" in loaded
    assert loaded <= BARE
    assert not [name for name in run.stdout.split() if name.startswith("payback.integrations")]


# ------------------------------------------------------------------ every public name is documented


@pytest.mark.parametrize("name", payback.__all__)
def test_every_public_name_has_a_docstring_with_a_doctest(name: str):
    documented = getattr(payback, name).__doc__ or ""
    first = documented.strip().splitlines()[0] if documented else ""
    assert first.endswith((".", ":")), "the first line says what it does"
    assert doctest.DocTestParser().get_examples(documented), f"payback.{name} has no doctest"


def test_all_is_sorted_and_complete_and_tab_shows_it():
    assert list(payback.__all__) == sorted(payback.__all__)
    assert all(hasattr(payback, name) for name in payback.__all__)
    modules = {"auditing", "bonuses", "check", "integrations", "mdp", "theory"}
    assert {name for name in dir(payback) if not name.startswith("_")} == {*payback.__all__, *modules}
    assert all((LIBRARY / name).is_dir() or (LIBRARY / f"{name}.py").is_file() for name in modules)
