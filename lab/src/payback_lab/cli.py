"""The command line of the lab: `payback-lab reproduce | run | report | list | prior-work | docs`."""

import contextlib
import io
import signal
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

try:
    import tyro
    from rich.console import Console
    from tyro.conf import OmitSubcommandPrefixes, arg, subcommand
except ImportError as error:
    raise SystemExit(f"payback-lab needs {error.name}: pip install 'payback-lab[experiments]'") from None

from payback_lab.reproduce import ReproduceCommand
from payback_lab.running.request import Request
from payback_lab.user_error import UserError

if TYPE_CHECKING:
    from payback_lab.running.run import Outcome


@dataclass(frozen=True)
class ReportCommand:
    """Write report.html and figures/ from the runs in --out."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("runs")
    """The records folder."""
    into: Annotated[Path | None, arg(metavar="DIR")] = None
    """Where report.html and figures/ are written; --out if left out, which may be on a read-only disk."""
    summaries: Annotated[Path, arg(metavar="DIR")] = Path("lab/results")
    """Folder of small summaries: read when --out holds no runs, written with --save-summaries."""
    save_summaries: bool = False
    """Also write the summaries of the runs (curves thinned, figures, claims), small enough to commit."""
    decide_again: bool = False
    """Only decide the claims in the summaries again (doorkey, reach, delay, center, arena), after a rule changed."""


@dataclass(frozen=True)
class ListCommand:
    """Print what there is to run, what is done, and what is left."""

    out: Annotated[Path, arg(metavar="DIR")] = Path("runs")
    """The records folder to look into."""
    summaries: Annotated[Path, arg(metavar="DIR")] = Path("lab/results")
    """Folder of committed summaries, which count as done."""


@dataclass(frozen=True)
class PriorWorkCommand:
    """Print the paper's table of prior methods, checked by the exact solver on random small problems."""

    problems: Annotated[int, arg(metavar="N")] = 200
    """Random problems per cell."""
    markdown: bool = False
    """Print it as Markdown."""
    summaries: Annotated[Path, arg(metavar="DIR")] = Path("lab/results")
    """Folder of small summaries: the table is written into it with --save-summaries."""
    save_summaries: bool = False
    """Also write the table as JSON, for the report."""


@dataclass(frozen=True)
class DocsCommand:
    """Write the tables and figures of docs/ again, from the committed summaries alone."""

    root: Annotated[Path, arg(metavar="DIR")] = Path(".")
    """The folder that holds docs/."""
    summaries: Annotated[Path, arg(metavar="DIR")] = Path("lab/results")
    """Folder of committed summaries."""


Command = (
    Annotated[ReproduceCommand, subcommand("reproduce")]
    | Annotated[Request, subcommand("run")]
    | Annotated[ReportCommand, subcommand("report")]
    | Annotated[ListCommand, subcommand("list")]
    | Annotated[PriorWorkCommand, subcommand("prior-work")]
    | Annotated[DocsCommand, subcommand("docs")]
)
Commands = ReproduceCommand | Request | ReportCommand | ListCommand | PriorWorkCommand | DocsCommand
NAMES = ("reproduce", "run", "report", "list", "prior-work", "docs")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status: 0 done, 1 some runs failed, 2 user error, 130 interrupted."""
    try:
        with _stoppable():
            return _do(parse(sys.argv[1:] if arguments is None else arguments), Console(soft_wrap=True))
    except UserError as error:
        print(f"payback-lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "payback-lab: stopped; what was finished is kept, and the same command goes on from there.",
            file=sys.stderr,
        )
        return 130
    except BrokenPipeError:  # the reader of the output has closed it: `payback-lab list | head`
        sys.stderr.close()
        return 1
    except OSError as error:
        print(f"payback-lab: {error.filename or 'the operating system'}: {error.strerror or error}.", file=sys.stderr)
        return 2


def parse(arguments: Sequence[str]) -> Commands:
    """Parse the arguments; raise a `UserError` of one sentence if they cannot be understood."""
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return tyro.cli(
                Command,  # pyright: ignore[reportArgumentType]
                prog="payback-lab",
                description="The experiments that measure what payback is worth, from run to report.",
                args=list(arguments),
                config=(OmitSubcommandPrefixes,),
            )
    except SystemExit as leaving:
        if leaving.code in (0, None):
            raise
        raise UserError(_one_sentence(errors.getvalue(), arguments)) from None


def _one_sentence(boxed: str, arguments: Sequence[str]) -> str:
    """Take the text out of tyro's box: its first paragraph, and the option that it proposes."""
    lines = [line.strip().strip("│").strip() for line in boxed.splitlines()]
    lines = [line for line in lines if line and not line.startswith(("╭", "╰"))]
    rules = [i for i, line in enumerate(lines) if set(line) == {"─"}]
    message = " ".join(lines[: rules[0]] if rules else lines).removesuffix(".")
    if "Perhaps you meant:" in lines[:-1]:
        message += f"; perhaps you meant {lines[lines.index('Perhaps you meant:') + 1]}"
    command = next((f"{word} " for word in arguments[:1] if word in NAMES), "")
    return f"{message or 'The arguments are not understood'}; see `payback-lab {command}--help`."


def _do(command: Commands, console: Console) -> int:
    # Imported only where needed, so that --help and errors in the arguments answer at once.
    match command:
        case ReproduceCommand():
            from payback_lab.reproduce import reproduce

            return reproduce(command, console)
        case Request():
            from payback_lab.running.run import run

            return _report_outcome(run(command, console), command.out, console)
        case ReportCommand():
            from payback_lab.report.command import decide_again, report

            if command.decide_again:
                return decide_again(command.summaries, console)
            return report(command.out, command.summaries, command.save_summaries, console, command.into)
        case ListCommand():
            from payback_lab.running.run import overview

            overview(command.out, command.summaries, console)
            return 0
        case PriorWorkCommand():
            return _decide_prior_work(command, console)
        case DocsCommand():
            from payback_lab.report.docs import write_docs

            return write_docs(command.root, command.summaries, console)


def _decide_prior_work(command: PriorWorkCommand, console: Console) -> int:
    """Decide the table of prior methods."""
    from payback_lab.prior_work import summary as prior_work

    try:
        summaries = command.summaries if command.save_summaries else None
        return prior_work.run(command.problems, command.markdown, console, summaries)
    except (ValueError, FileNotFoundError) as error:
        raise UserError(str(error)) from None


def _report_outcome(outcome: "Outcome", out: Path, console: Console) -> int:
    """Print where the runs are, or which tasks failed and why."""
    if not outcome.failed:
        console.print(f"All runs are in {out}; next: payback-lab report --out {out}", markup=False, highlight=False)
        return 0
    return print_failures(outcome)


def print_failures(outcome: "Outcome") -> int:
    """Print which tasks failed and why; return the exit status 1."""
    for event in outcome.failed:
        error = event.text.strip()
        print(f"\n{event.task.name} failed: {error.splitlines()[-1]}", file=sys.stderr)
        if "\n" in error:
            print(textwrap.indent(error, "  "), file=sys.stderr)
    count = sum(len(event.task.runs) for event in outcome.failed)
    print(
        f"payback-lab: {count} runs failed, {outcome.made} were made; the same command tries them again.",
        file=sys.stderr,
    )
    return 1


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """Let SIGTERM end the command as Ctrl-C does, by an exception."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # signals can only be handled in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
