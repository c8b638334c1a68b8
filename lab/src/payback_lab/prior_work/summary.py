"""The table of prior work as a file, and as text for a page: header, rows and notes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from payback_lab.atomic_write import write_file
from payback_lab.prior_work.methods import METHODS
from payback_lab.prior_work.table import SETTINGS, Cell

FILE = Path("prior-work") / "table.json"
"""Where the table lies in a folder of summaries."""
TITLES = {
    "absorbing": "absorbing state",
    "free end": "episodes, free end",
    "action": "of actions",
    "time": "of time",
    "history": "of history",
    "partial": "partly observed",
}
NOTES = (
    "✓ the optimal actions are the same after every history of all problems tried; ✗ they are not, first on the "
    "problem named; ○ only under the condition named; – the method does not take this.",
    "Of actions, of time, of history: what the potential, or the bonus, depends on; these and the partly observed "
    "problems end in one absorbing state whose potential is 0, so that a cross is about the column, not about the end.",
    "Of time: Ng's, Eck's and Grześ's formula reads both potentials at time t; Devlin's reads each at its own.",
    "Absorbing state: by discounted value iteration; what is lent needs an end, so PBIM, GRM, ADOPS and look-back are "
    "decided over histories that end in one absorbing state. DPBA is taken at Φ's fixed point, where it pays R† "
    "itself. ADOPS has exact critics, of histories that are fully observed; ADOPES does the share c of what ADOPS "
    "does, c rising to 1. Plug-and-play is stated, not computed.",
    "EIPO is decided where it comes to rest: with its multiplier held at α, ½ at first, its policy maximises "
    "(1 + α)R + F. Where its constraint is met, α is so large that only optimal policies are left, and F chooses among "
    "these: ○ says that no other action becomes optimal, not that all optimal ones stay. What two policies and a "
    "multiplier that are still learning do, no exact solver can say: `payback-lab run arena` measures it.",
    "The paper's figure says what each work's own theorem covers; its picture is not in the source we have. Its text "
    "says: Wiewiora only with Φ added back (○ here), Harutyunyan not in general (✗), Behboudian in the limit (✓ at "
    "ξ = 0), Grześ for every end (✓), PBIM and GRM everywhere (✓): the machine agrees. It also finds that the formulas "
    "of Ng, Devlin and Eck stay valid for potentials of history and under partial observation, wherever the end has "
    "potential 0.",
)

Table = dict[str, dict[str, Cell]]
"""method → setting → what was found."""


class Decided(NamedTuple):
    """A table, and how it was made."""

    table: Table
    problems: int
    """Random problems per cell."""
    made: Mapping[str, Any]
    """When, by which command, from which commit."""


class Text(NamedTuple):
    """A table as it is shown."""

    header: list[str]
    rows: list[list[str]]
    notes: list[str]


def as_text(decided: Decided) -> Text:
    """Return the table's header, rows and notes, the last of which says how it was made.

    >>> cells = dict.fromkeys(SETTINGS, Cell("✗", 3, "seed 2"))
    >>> found = as_text(Decided({"raw bonus": cells}, 3, {"command": "payback-lab prior-work", "commit": "0ab1c2d"}))
    >>> found.rows[0][:2], found.notes[-1]
    (['raw bonus', '✗ seed 2'], '3 random problems per cell, made by `payback-lab prior-work` at commit 0ab1c2d.')
    """
    header, rows = as_rows(decided.table)
    made = f"made by `{decided.made['command']}` at commit {decided.made['commit']}."
    return Text(header, rows, [*NOTES, f"{decided.problems} random problems per cell, {made}"])


def as_rows(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table, as text."""
    header = ["method", *(TITLES[s] for s in SETTINGS), "plug-and-play"]
    plug_and_play = {method.name for method in METHODS if method.plug_and_play}
    rows = [
        [name, *(str(cells[s]) for s in SETTINGS), "✓" if name in plug_and_play else "✗"]
        for name, cells in table.items()
    ]
    return header, rows


def as_markdown(table: Table) -> str:
    """Return the table as Markdown, for docs/results/prior-work.md."""
    header, rows = as_rows(table)
    lines = [header, ["---", *[":-:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def save(folder: Path, decided: Decided) -> Path:
    """Write a table below a folder of summaries; return its path."""
    path = folder / FILE
    cells = {name: {s: asdict(cell) for s, cell in cells.items()} for name, cells in decided.table.items()}
    stored = {"problems": decided.problems, "made": dict(decided.made), "table": cells}
    write_file(path, (json.dumps(stored, indent=1, ensure_ascii=False) + "\n").encode())
    return path


def load(folder: Path) -> Decided | None:
    """Read the table of a folder of summaries; None if it has none."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        table = {name: {s: Cell(**cells[s]) for s in SETTINGS} for name, cells in stored["table"].items()}
        made = {"command": stored["made"]["command"], "commit": stored["made"]["commit"], **stored["made"]}
        return Decided(table, int(stored["problems"]), made)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}); make it again with `payback-lab prior-work --save-summaries`"
        ) from error
