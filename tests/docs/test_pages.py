"""The Python blocks of the site's pages run: each page's in order, as one program."""

from pathlib import Path
from typing import Any

import pytest

from .code_blocks import python_blocks, run

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
OWN_TEST = {"guarantee.md"}
"""Its block is a doctest, run by test_guarantee_page.py."""
HOSTS = {
    "howto/gymnax.md": "gymnax",
    "howto/rl_zoo.md": "rl_zoo3",
    "howto/rllib.md": "ray.rllib",
    "howto/rllte.md": "rllte.xplore.reward",
    "howto/rsl_rl.md": "rsl_rl.runners",
    "howto/skrl.md": "skrl.agents.torch.ppo",
}
"""Pages whose host has an environment of its own: `make test-hosts` runs them there."""


def pages() -> list[Any]:
    """Return the pages that show Python, but the tutorials, which are notebooks."""
    found = [path for path in sorted(DOCS.rglob("*.md")) if python_blocks(path.read_text())]
    names = [path.relative_to(DOCS).as_posix() for path in found]
    shown = [name for name in names if not name.startswith(("tutorials/", "_")) and name not in OWN_TEST]
    return [pytest.param(name, marks=[pytest.mark.host] * (name in HOSTS)) for name in shown]


@pytest.mark.parametrize("page", pages())
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path):
    if page in HOSTS:
        pytest.importorskip(HOSTS[page], reason=f"{HOSTS[page]} has an environment of its own: make test-hosts")
    run(DOCS / page, tmp_path)
