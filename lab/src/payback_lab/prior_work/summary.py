"""`payback-lab prior-work`: the table of prior work decided, printed, stored as a file, and as text for a page."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from payback_lab.atomic_write import write_file
from payback_lab.prior_work.methods import METHODS
from payback_lab.prior_work.table import SETTINGS, Cell, prior_table

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
    "problems end in one absorbing state whose potential is 0, so a cross is about the column, not about the end.",
    "Of time: Ng's, Eck's and Grześ's formula reads both potentials at time t; Devlin's reads each at its own.",
    "Absorbing state: by discounted value iteration. Repayment needs an end, so PBIM, GRM, ADOPS and look-back are "
    "checked over histories that end in one absorbing state. DPBA is taken at Φ's fixed point, where it pays R† "
    "itself. ADOPS has exact critics and fully observed histories; ADOPES does the share c of what ADOPS "
    "does, c rising to 1. Plug-and-play is stated, not computed.",
    "EIPO is checked at its fixed point: with its multiplier held at α, ½ at first, its policy maximises "
    "(1 + α)R + F. Where its constraint is met, α is so large that only optimal policies are left, and F chooses among "
    "these: ○ means that no other action becomes optimal, not that all optimal ones stay. An exact solver can't show "
    "what two policies and a multiplier do while they learn: `payback-lab run arena` measures it.",
    "The paper's figure shows what each work's own theorem covers; its picture is not in the source we have. Its text "
    "has Wiewiora only with Φ added back (○ here), Harutyunyan not in general (✗), Behboudian in the limit (✓ at "
    "ξ = 0), Grześ for every end (✓), PBIM and GRM everywhere (✓): the solver agrees. It also finds that the formulas "
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


def run(problems: int, markdown: bool, console: Any, summaries: Path | None = None) -> int:
    """Decide the table and print it, and save it below `summaries` if asked. Returns the exit status.

    `console` is a rich Console.
    """
    if problems < 1:
        raise ValueError(f"--problems must be at least 1, got {problems}")
    table = _with_progress(problems, console)
    if markdown:
        console.print(as_markdown(table), markup=False, highlight=False)
    else:
        _draw(table, problems, console)
    if summaries is not None:
        from payback_lab.provenance import provenance

        command = f"payback-lab prior-work --problems {problems} --save-summaries"
        path = save(summaries, Decided(table, problems, provenance(command)))
        print(f"The table is saved in {path}", file=sys.stderr)
    return 0


def _draw(table: Table, problems: int, console: Any) -> None:
    from rich import table as rich_table

    header, body = as_rows(table)
    drawn = rich_table.Table(title=f"Are the optimal policies preserved? {problems} random problems per cell")
    for k, title in enumerate(header):
        drawn.add_column(title, justify="left" if k == 0 else "center")
    for line in body:
        drawn.add_row(*line)
    console.print(drawn)
    for note in NOTES:
        console.print(note, markup=False, highlight=False)


def _with_progress(problems: int, console: Any) -> Table:
    if not console.is_terminal:
        return prior_table(problems, _plain_line)
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bar:
        tasks = {s: bar.add_task(TITLES[s], total=problems) for s in SETTINGS}
        return prior_table(problems, lambda setting, k: bar.update(tasks[setting], completed=k))


def _plain_line(setting: str, count: int) -> None:
    if count == 1:
        print(f"deciding: {TITLES[setting]} …", file=sys.stderr)
