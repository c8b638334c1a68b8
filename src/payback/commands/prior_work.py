"""`payback prior-work`: the paper's table of prior methods, decided on the spot."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from payback.prior_work import PLUG_AND_PLAY, SETTINGS, Cell, prior_table

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
    "problem named; ○ only under the condition named; – the method does not take this; ? not decided.",
    "Of actions, of time, of history: what the potential, or the bonus, depends on; these and the partly observed "
    "problems end in one absorbing state whose potential is 0, so that a cross is about the column, not about the end.",
    "Of time: Ng's, Eck's and Grześ's formula reads both potentials at time t; Devlin's reads each at its own.",
    "Absorbing state: by discounted value iteration; what is lent needs an end, so PBIM, GRM and look-back are decided "
    "over histories that end in one absorbing state. DPBA is taken at Φ's fixed point, where it pays R† itself. "
    "ADOPS has exact critics. Plug-and-play is stated, not computed.",
    "The paper's figure says what each work's own theorem covers; its picture is not in the source we have. Its text "
    "says: Wiewiora only with Φ added back (○ here), Harutyunyan not in general (✗), Behboudian in the limit (✓ at "
    "ξ = 0), Grześ for every end (✓), PBIM and GRM everywhere (✓): the machine agrees. It also finds that the formulas "
    "of Ng, Devlin and Eck stay valid for potentials of history and under partial observation, wherever the end has "
    "potential 0.",
)


def rows(table: dict[str, dict[str, Cell]]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table, as text."""
    header = ["method", *(TITLES[s] for s in SETTINGS), "plug-and-play"]
    body = [
        [name, *(str(cells[s]) for s in SETTINGS), "✓" if name in PLUG_AND_PLAY else "✗"]
        for name, cells in table.items()
    ]
    return header, body


def markdown(table: dict[str, dict[str, Cell]]) -> str:
    """Return the table as Markdown, for the README."""
    header, body = rows(table)
    lines = [header, ["---", *[":-:"] * (len(header) - 1)], *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def run(problems: int, as_markdown: bool, console: Any) -> int:
    """Decide the table and print it; `console` is a rich Console. Returns the exit status."""
    if problems < 1:
        raise ValueError(f"--problems must be at least 1, got {problems}")
    table = _with_progress(problems, console)
    if as_markdown:
        console.print(markdown(table), markup=False, highlight=False)
        return 0
    from rich.table import Table

    header, body = rows(table)
    drawn = Table(title=f"Are the optimal policies preserved? {problems} random problems per cell")
    for k, title in enumerate(header):
        drawn.add_column(title, justify="left" if k == 0 else "center")
    for line in body:
        drawn.add_row(*line)
    console.print(drawn)
    for note in NOTES:
        console.print(note, markup=False, highlight=False)
    return 0


def _with_progress(problems: int, console: Any) -> dict[str, dict[str, Cell]]:
    if not console.is_terminal:
        return prior_table(problems, _plain_lines(console))
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bar:
        tasks = {s: bar.add_task(TITLES[s], total=problems) for s in SETTINGS}
        return prior_table(problems, lambda setting, k: bar.update(tasks[setting], completed=k))


def _plain_lines(console: Any) -> Callable[[str, int], None]:
    said: set[str] = set()

    def progress(setting: str, count: int) -> None:
        if setting not in said:
            said.add(setting)
            print(f"deciding: {TITLES[setting]} …", file=sys.stderr)

    return progress
