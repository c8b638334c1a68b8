"""docs/ARCHITECTURE.md names files that are there, and every room of the two houses."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
HOUSES = (ROOT, ROOT / "src" / "payback", ROOT / "lab" / "src" / "payback_lab")
"""A path of the page starts at the repository, or inside one of the houses."""
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|md|toml))")


def named(page: str) -> list[str]:
    """Return the files and folders that a page names in code, NAME standing for any experiment."""
    code = re.findall(r"`([^`]+)`", page) + re.findall(r"^ {4,}(.*?)(?: {3,}.*)?$", page, flags=re.MULTILINE)
    return sorted({word for text in code for word in text.split() if PATH.fullmatch(word)})


def missing(page: str) -> list[str]:
    """Return what a page names and is nowhere; a bare file name may stand in any folder that the page names."""
    paths = named(page)
    tops = [*HOUSES, *(house / folder for house in HOUSES for folder in paths if folder.endswith("/"))]
    tops += [(top / path).parent for top in HOUSES for path in paths if "/" in path.rstrip("/")]
    return [path for path in paths if not any((top / path.replace("NAME", "doorkey")).exists() for top in tops)]


def test_every_path_exists():
    assert len(named(PAGE.read_text())) > 40
    assert missing(PAGE.read_text()) == []


@pytest.mark.parametrize("line", ["`src/payback/auditing/causes.py`", "`core/no_such.py`", "`gone/`", "    rooms/   a"])
def test_a_path_that_is_not_there_is_seen(line: str):
    assert missing(PAGE.read_text() + "\n" + line) == [line.strip(" `").split()[0]]


def test_every_room_is_named():
    paths = named(PAGE.read_text())
    for house in HOUSES[1:]:
        rooms = {p.name for p in house.iterdir() if (p / "__init__.py").exists()}
        assert rooms <= {part for path in paths for part in Path(path).parts}, house
