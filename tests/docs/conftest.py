"""The site, built once as CI builds it, and a page of the browser to read it with."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site: `make docs NOTEBOOKS=off`, where every warning is an error."""
    pytest.importorskip("sphinx", reason="Sphinx is not installed: make docs installs it")
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(out)],
        cwd=ROOT,
        env={**os.environ, "NOTEBOOKS": "off", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def page(open_page: Any) -> Any:
    """An empty page of the browser."""
    return open_page()
