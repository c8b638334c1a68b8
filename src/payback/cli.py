"""The command line of the library: `payback audit LOG`, `payback check FILE:NAME`. argparse, nothing to install."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import payback
from payback.auditing.examine import TOLERANCE
from payback.auditing.log_file import Columns

COLUMNS = {
    "shaped": "what the learner was given for its bonus, F′",
    "done": "marks the last step of an episode",
    "environment": "tells the environments apart; one environment if it is not there",
    "reward": "the bonus before shaping, F; not needed if gamma is given, but long episodes are judged by it",
    "lent": "what was lent of it, F − F̄; not needed",
    "valid": "false for invalid rows, such as autoreset rows; not needed",
    "truncated": "marks ends by truncation; with `terminated` it replaces `done`",
    "terminated": "marks ends by termination",
    "step": "the step's number, to find rows out of order; not needed",
}
"""The columns of a log that may be named, and what they hold."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say; return the exit status: 0 the law is kept, 1 it is not, 2 a mistake."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.command is None:
        parser.print_help()
        return 0
    try:
        return _audit(asked) if asked.command == "audit" else _check(asked)
    except (ValueError, OSError, ImportError) as error:
        print(f"payback: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="payback", description="Does a log of rewards, or shaping code, keep the law?"
    )
    parser.add_argument("--version", action="version", version=f"payback {payback.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    audit = commands.add_parser(
        "audit",
        help="say whether a log of shaped rewards keeps the law, and if not where and why",
        description="One row per step and environment, in order of time. Exit status 0 if every finished episode was "
        "judged and keeps the law, else 1.",
    )
    audit.add_argument("log", type=Path, metavar="LOG", help="a .parquet, .csv or .npz file, or a recorder's folder")
    audit.add_argument("--gamma", type=float, metavar="G", help="the learner's discount (default: estimated)")
    for name, help_text in COLUMNS.items():
        default = getattr(Columns(), name)
        audit.add_argument(f"--{name}", metavar="COLUMN", default=default, help=f"{help_text} (default: {default})")
    audit.add_argument("--page", type=Path, metavar="HTML", help="also write a page with the ledger of one episode")
    audit.add_argument(
        "--on-truncation",
        choices=("settle", "carry"),
        default="settle",
        help="carry: truncated episodes leave their debt to the learner's bootstrapped value and are not judged",
    )
    tolerance = f"how large |Σγ^t F'_t| may be beside Σγ^t |F'_t| (default: {TOLERANCE:g})"
    audit.add_argument("--tolerance", type=float, metavar="X", default=TOLERANCE, help=tolerance)
    check = commands.add_parser(
        "check",
        help="run check_transform on your own shaping code",
        description="NAME is a transform, or a function of one episode's rewards, in the Python file FILE. Exit status "
        "0 if no stream is found on which it breaks the law, else 1.",
    )
    check.add_argument("target", metavar="FILE:NAME", help="e.g. shaping.py:my_shaper")
    check.add_argument("--gamma", type=float, metavar="G", help="the learner's discount (default: the transform's)")
    efforts = ("quick", "normal", "thorough")
    check.add_argument("--effort", choices=efforts, default="normal", help="how much is tried (default: normal)")
    return parser


def _audit(asked: argparse.Namespace) -> int:
    from payback.auditing import command

    columns = Columns(**{name: getattr(asked, name) for name in COLUMNS})
    return command.run(asked.log, asked.gamma, columns, asked.page, asked.tolerance, asked.on_truncation)


def _check(asked: argparse.Namespace) -> int:
    from payback.check import command

    return command.run(asked.target, asked.gamma, asked.effort)
