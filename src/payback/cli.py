"""The command line of the library: `payback audit LOG`, `payback check FILE:NAME`."""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import sys
import textwrap
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import payback
from payback.auditing.audit import TOLERANCE, AuditOptions, audit_log
from payback.auditing.page import page, refuse_to_overwrite
from payback.auditing.read import Columns, open_log
from payback.auditing.rows import printable
from payback.check.plan import PLANS, Effort
from payback.check.shaper import check_transform
from payback.core.errors import InvarianceError
from payback.core.transform import RewardTransform

COLUMNS = {  # those of a log that may be named
    "shaped": "the shaped bonus that the learner got, F′",
    "done": "marks the last step of an episode",
    "environment": "distinguishes the environments; without it, the log is of one",
    "reward": "the bonus before shaping, F; optional if gamma is given, but long episodes cannot be judged without it",
    "lent": "the centred bonus, F − F̄; optional",
    "valid": "false on invalid rows, such as autoreset rows; optional",
    "truncated": "marks ends by truncation; with `terminated` it replaces `done`",
    "terminated": "marks ends by termination",
    "step": "the step's number, to detect rows out of order; optional",
}
BROKEN_PIPE = 141  # what a shell reports for a program whose reader has gone


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments ask; return the exit status: 0 if all is well, 1 if something leaks, 2 for a mistake."""
    try:
        given = sys.argv[1:] if arguments is None else arguments
        asked = _parser().parse_args(given or ["--help"])
        status = _audit(asked) if asked.command == "audit" else _check(asked.target, asked.gamma, asked.effort)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # `payback audit log | head`: nobody reads on, and Python's own flush at exit would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (ValueError, OSError, ImportError) as error:
        # One line: a file's name, or an id, may hold control characters.
        print(f"payback: {printable(' '.join(str(error).split()), 2000)}", file=sys.stderr)
    except MemoryError:
        print("payback: there is not enough memory to read this", file=sys.stderr)
    except Exception:
        # Never 1, which Python would return and which means that rewards leak.
        traceback.print_exc()
    return 2


def _audit(asked: argparse.Namespace) -> int:
    if asked.page is not None:
        refuse_to_overwrite(asked.log, asked.page)
    log = open_log(asked.log, Columns(**{name: getattr(asked, name) for name in COLUMNS}))
    result = audit_log(log, AuditOptions(asked.gamma, asked.on_truncation, asked.tolerance))
    width = max(shutil.get_terminal_size((100, 24)).columns, 40)
    for line in [*result.facts(), *(f"  {line}" for line in result.cause_lines())]:
        print(textwrap.fill(line, width, subsequent_indent="    "))
    if result.leaks:
        print("\nThe worst leaks:", *_columns(result.table()), sep="\n")
    if asked.page is not None:
        asked.page.write_text(page(result, log), encoding="utf-8")
        print(f"The page is {printable(asked.page, 1000)}")
    return 0 if result.ok else 1


def _check(target: str, gamma: float | None, effort: Effort) -> int:
    shaper = _load(target)
    gamma = getattr(shaper, "gamma", None) if gamma is None else gamma
    if gamma is None:
        raise ValueError(f"{target} has no discount of its own: give the learner's with --gamma, e.g. --gamma 0.99")
    try:
        report = check_transform(shaper, gamma, effort=effort)
    except InvarianceError as broken:
        print(f"{target} is not policy-invariant.\n{broken}")
        return 1
    except TypeError as error:
        raise ValueError(f"{target} cannot be checked: {error}") from error
    print(f"{target} is policy-invariant at γ = {gamma:g} as far as tested.\n{report}")
    return 0


def _load(target: str) -> Any:
    """Run FILE as a module and return NAME; a ValueError says what is wrong."""
    file, _, name = target.rpartition(":")
    if not file or not name:
        raise ValueError(f"{target!r} does not name a shaper: write FILE:NAME, e.g. shaping.py:my_shaper")
    if not Path(file).is_file():
        raise ValueError(f"there is no file {file}: give the Python file that holds {name}")
    try:
        found = runpy.run_path(file)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{file} raises {type(error).__name__} when it is run ({error}): fix that first") from error
    if name not in found:
        shapers = [k for k, x in found.items() if (callable(x) or isinstance(x, RewardTransform)) and k[0] != "_"]
        raise ValueError(f"{file} has no {name}: it has {', '.join(shapers) or 'no functions or transforms'}")
    return found[name]


def _columns(rows: list[tuple[str, ...]]) -> list[str]:
    """Return rows of text in columns: the first and the last aligned left, numbers right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:-1], widths[1:-1]), row[-1]]) for row in rows]


def _parser() -> argparse.ArgumentParser:
    what = "Check that shaped rewards cancel in every episode, so that the optimal policy stays the same."
    parser = argparse.ArgumentParser(prog="payback", description=what)
    parser.add_argument("--version", action="version", version=f"payback {payback.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    audit = commands.add_parser(
        "audit",
        help="find the episodes of a log whose shaped rewards do not cancel, and why",
        description="Find the episodes whose shaped rewards do not cancel, Σ γ^t F′_t ≠ 0, and name the likely cause. "
        "The log has one row per step and environment, in order of time. Exit status 0 if every finished episode was "
        "judged and cancels, 1 if not, 2 if the log cannot be read.",
    )
    audit.add_argument("log", type=Path, metavar="LOG", help="a .parquet, .csv or .npz file, or a recorder's folder")
    gamma = "the learner's discount (default: the log's, or estimated)"
    audit.add_argument("--gamma", type=float, metavar="G", help=gamma)
    for name, help_text in COLUMNS.items():
        default = getattr(Columns(), name)
        audit.add_argument(f"--{name}", metavar="COLUMN", default=default, help=f"{help_text} (default: {default})")
    audit.add_argument("--page", type=Path, metavar="HTML", help="also write a page that draws one episode")
    carry = "carry: truncated episodes leave their debt to the learner's bootstrapped value and are not judged"
    audit.add_argument("--on-truncation", choices=("settle", "carry"), default="settle", help=carry)
    tolerance = f"the largest |Σγ^t F′_t| / Σγ^t |F′_t| of an episode that cancels (default: {TOLERANCE:g})"
    audit.add_argument("--tolerance", type=float, metavar="X", default=TOLERANCE, help=tolerance)
    check = commands.add_parser(
        "check",
        help="run check_transform on your own shaping code",
        description="Run the Python file FILE and test what it calls NAME, a transform or a function of one episode's "
        "rewards, on streams made to break it. FILE is executed, so check only files that you trust. Exit status 0 if "
        "its shaped rewards cancel on all of them, 1 if not, 2 for a mistake.",
    )
    check.add_argument("target", metavar="FILE:NAME", help="runs FILE, e.g. shaping.py:my_shaper")
    check.add_argument("--gamma", type=float, metavar="G", help="the learner's discount (default: the transform's)")
    check.add_argument("--effort", choices=[*PLANS], default="normal", help="how many streams (default: normal)")
    return parser
