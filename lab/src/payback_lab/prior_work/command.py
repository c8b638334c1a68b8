"""`payback-lab prior-work`: decide the paper's table of prior methods and print it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from payback_lab.prior_work.summary import NOTES, TITLES, Decided, Table, as_markdown, as_rows, save
from payback_lab.prior_work.table import SETTINGS, prior_table


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
