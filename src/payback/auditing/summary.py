"""An audit in a few sentences: what was read, how many episodes keep the law, and which causes the others have."""

from __future__ import annotations

from payback.auditing.found import Audit


def summary(audit: Audit) -> list[str]:
    """Return what was found, one sentence each."""
    total = len(audit.episodes.leak)
    kept = total - audit.broken - audit.unjudged
    unjudged = f", {audit.unjudged:,} cannot be judged" if audit.unjudged else ""
    lines = [
        f"{audit.rows:,} rows, {total:,} finished episodes, γ = {audit.gamma:.6g}.",
        f"{kept:,} episodes keep the law, {audit.broken:,} break it{unjudged}.",
    ]
    if audit.unjudged:
        lines.append(
            "The others are so long that the digits of the log cannot show whether their last step settles: log the "
            "bonus F as well (column reward), or more digits."
        )
    if audit.carried:
        lines.append(f"{audit.carried:,} truncated episodes leave their debt to the bootstrapped value; not judged.")
    if audit.unfinished:
        lines.append(f"{audit.unfinished:,} environments end in mid-episode; those episodes are not judged.")
    if audit.invalid_rows_paid:
        lines.append(f"{audit.invalid_rows_paid:,} invalid rows are paid.")
    return lines + [f"{note}." for note in audit.notes]


def cause_lines(audit: Audit) -> list[str]:
    """Return one line per cause: how many broken episodes look like it, and what it means."""
    details = {leak.cause: leak.detail for leak in reversed(audit.leaks)}
    return [
        f"  {count:,} × {cause.value}: {details.get(cause, cause.sentence)}"
        for cause, count in audit.causes.most_common()
    ]
