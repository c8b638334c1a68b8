"""`payback audit LOG`: does a log of rewards keep the law, and if not, where and how."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path
from typing import Literal

import numpy as np

from payback.auditing.environment_ids import printable
from payback.auditing.examine import rows_of
from payback.auditing.found import Audit
from payback.auditing.log_file import Columns, audit_file, open_log
from payback.auditing.page import page
from payback.auditing.summary import cause_lines, summary
from payback.core.arrays import plain

HEADER = ("environment", "episode", "step", "leak", "relative", "looks like")


def run(
    log: Path,
    gamma: float | None,
    columns: Columns,
    page_path: Path | None,
    tolerance: float,
    on_truncation: Literal["settle", "carry"] = "settle",
) -> int:
    """Audit a log, print what was found, write the page if asked.

    Returns 0 if every finished episode was judged and keeps the law, else 1. What cannot be read is a ValueError of one
    sentence.
    """
    if page_path is not None:
        refuse_to_overwrite(log, page_path)
    found = audit_file(log, gamma, columns, tolerance, on_truncation=on_truncation)
    width = shutil.get_terminal_size((100, 24)).columns
    for line in [*summary(found), *cause_lines(found)]:
        print(textwrap.fill(line, max(width, 40), subsequent_indent="    "))
    for line in _table(found) if found.leaks else []:
        print(line)
    if page_path is not None:
        page_path.write_text(_page(log, columns, found), encoding="utf-8")
        print(f"The page is {page_path}")
    return 0 if found.ok else 1


def refuse_to_overwrite(log: Path, page_path: Path) -> None:
    """Raise if the page would be written over the log, or over any other log."""
    same = page_path.exists() and log.exists() and page_path.samefile(log)
    if same or page_path.suffix.lower() not in (".html", ".htm") or page_path.is_dir():
        raise ValueError(
            f"--page {page_path} is not written, so that no log is overwritten: give a name that ends in .html"
        )


def _table(found: Audit) -> list[str]:
    """Write the worst leaks in columns."""
    rows = [HEADER] + [
        (
            printable(leak.environment),
            str(leak.episode) if leak.episode >= 0 else "–",
            str(leak.step),
            f"{leak.amount:.4g}",
            f"{leak.relative:.2%}",
            leak.cause.value,
        )
        for leak in found.leaks
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(5)]
    return ["", "The worst leaks:"] + [
        "  ".join([row[0].ljust(widths[0]), *(row[k].rjust(widths[k]) for k in range(1, 5)), row[5]]) for row in rows
    ]


def _page(log: Path, columns: Columns, found: Audit) -> str:
    """Return the page, with the ledger of the worst episode, or of one of middle length where all is well."""
    # A ledger of one or two steps shows little, so that the worst episode of several steps is drawn if there is one.
    worst = max((leak for leak in found.leaks if leak.episode >= 0), key=lambda leak: leak.length > 3, default=None)
    lengths = found.episodes.length
    if worst is not None:
        span = (worst.environment, worst.first, worst.length)
        title = f"Environment {printable(worst.environment)}, episode {worst.episode}: leaks {worst.amount:.4g}"
    elif len(lengths):
        k = int(np.argsort(lengths, kind="stable")[len(lengths) // 2])
        span = (plain(found.episodes.environment[k]), int(found.episodes.first[k]), int(lengths[k]))
        title = f"Environment {printable(span[0])}, an episode of middle length"
    else:
        return page(found, log.name, None, "")
    return page(found, log.name, rows_of(open_log(log, columns), [span])[0], title)
