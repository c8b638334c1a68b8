"""`payback audit FILE`: does a log of rewards keep the law, and if not, where and how."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from payback.auditing.episodes import Audit
from payback.auditing.log_file import Columns, audit_file, episode_of
from payback.auditing.page import ledger_svg, page, summary


def run(file: Path, gamma: float | None, columns: Columns, page_path: Path | None, tolerance: float) -> int:
    """Audit a log, print what was found, write the page if asked.

    Returns 0 if every finished episode keeps the law, else 1. What cannot be read is a ValueError of one sentence.
    """
    found = audit_file(file, gamma, columns, tolerance)
    for line in [*summary(found), *(_table(found) if found.leaks else [])]:
        print(line)
    if page_path is not None:
        page_path.write_text(page(found, file.name, _ledger(file, columns, found)), encoding="utf-8")
        print(f"The page is {page_path}")
    return 0 if found.ok else 1


def _table(found: Audit) -> list[str]:
    """Write the worst leaks in columns, the text ones to the left."""
    rows = [("environment", "episode", "step", "leak", "relative", "looks like")] + [
        (
            str(leak.environment),
            str(leak.episode),
            str(leak.step),
            f"{leak.amount:.4g}",
            f"{leak.relative:.2%}",
            leak.cause,
        )
        for leak in found.leaks
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(5)]
    return ["", "The worst leaks:"] + [
        "  ".join([row[0].ljust(widths[0]), *(row[k].rjust(widths[k]) for k in range(1, 5)), row[5]]) for row in rows
    ]


def _ledger(file: Path, columns: Columns, found: Audit) -> str:
    """Draw the worst episode, or a middling one where all is well."""
    if found.leaks and found.leaks[0].episode >= 0:
        leak = found.leaks[0]
        wanted, kind = (
            (leak.environment, leak.first, leak.length),
            f"episode {leak.episode}, which leaks {leak.amount:.4g}",
        )
    else:
        lengths = found.episodes.length
        k = int(np.argsort(lengths)[len(lengths) // 2])
        env = found.episodes.environment[k]
        wanted = (env.item() if hasattr(env, "item") else env, int(found.episodes.first[k]), int(lengths[k]))
        kind = "a middling episode"
    paid, rewards = episode_of(file, columns, wanted)
    return ledger_svg(paid, rewards, found.gamma, f"Environment {wanted[0]}, {kind}")
