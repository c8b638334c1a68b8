"""`payback-lab report`: report.html and figures, from the runs there are or from the committed summaries."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from payback_lab import experiments, records
from payback_lab.atomic_write import write_file
from payback_lab.prior_work import summary as prior_summary
from payback_lab.prior_work.summary import Text
from payback_lab.records import Record
from payback_lab.report import store
from payback_lab.report.charts.collection import Charts
from payback_lab.report.page import page
from payback_lab.report.summary import Summary, summarise
from payback_lab.running.experiment import Experiment
from payback_lab.running.progress import say
from payback_lab.runs import group_of
from payback_lab.user_error import UserError, writing_to


def report(out: Path, summaries: Path, save_summaries: bool, console: Console, into: Path | None = None) -> int:
    """Write report.html and figures/ into `into`, or `out`; return 1 if damaged runs had to be left out, else 0.

    The report shows the runs in `out`; if there are none, the summaries. The two are never mixed, because a quick demo
    would be mistaken for the full experiment; where runs were cut short, the summaries are thin lines beside them.
    """
    found, damaged = _read(out)
    if not found and damaged:
        raise UserError(f"All runs in {out} are damaged: make them again with `payback-lab run`.")
    shown = _summaries(found) if found else sorted(store.load(summaries), key=lambda s: _place(s.experiment))
    if not shown:
        raise UserError(
            f"There are no runs in {out} and no summaries in {summaries}: start with `payback-lab run cliff`."
        )
    if save_summaries and not found:
        raise UserError(f"--save-summaries needs full runs, and {out} holds none: start with `payback-lab run cliff`.")
    for folder, flaw in damaged.items():
        say(console, f"{folder} is damaged ({flaw}) and left out: `payback-lab run` makes it again.")
    committed = store.load(summaries) if found else []
    if save_summaries:
        shown = [_added(summary, committed) for summary in shown]
        for summary in shown:
            store.save(summaries, summary)
            say(console, f"wrote {summaries / summary.experiment}")
    _write(into or out, page(shown, committed, _prior(summaries)), console)
    return 1 if damaged else 0


def summaries_of(out: Path) -> list[Summary]:
    """Return the summaries of the runs in a records folder, damaged ones left out."""
    return _summaries(_read(out)[0])


def _added(summary: Summary, committed: Sequence[Summary]) -> Summary:
    """Add the committed runs to the summary of an experiment whose runs are made over several days.

    A claim that all of them leave open then has the number of seeds that would decide it.
    """
    experiment = experiments.load(summary.experiment)
    if not experiment.adds_up:
        return summary
    old = next((other for other in committed if other.experiment == summary.experiment), None)
    return _decided(experiment, store.merged(experiment, summary, old) if old is not None else summary)


def decide_again(summaries: Path, console: Console) -> int:
    """Decide the claims of the committed summaries again, where they need only single figures; return 0.

    For rules that were written or changed after the last run was made.
    """
    for summary in store.load(summaries):
        experiment = experiments.load(summary.experiment)
        if experiment.adds_up:
            store.save_claims(summaries, _decided(experiment, summary))
            say(console, f"decided the claims in {summaries / summary.experiment} again")
    return 0


def _decided(experiment: Experiment, summary: Summary) -> Summary:
    """Decide the claims of a summary from its single figures; an undecided one has the number of seeds that would."""
    results = store.results_of(summary.groups)
    claimed = experiment.claimed_of(results)
    return replace(summary, claims=tuple(replace(claimed, forecast=True).decide(results))) if claimed else summary


def _prior(summaries: Path) -> Text | None:
    """Return the table of prior work for the page, None if it has not been made."""
    try:
        found = prior_summary.load(summaries)
    except ValueError as error:
        raise UserError(f"{error}.") from error
    return None if found is None else prior_summary.as_text(found)


def _write(out: Path, made: tuple[str, Charts], console: Console) -> None:
    text, charts = made
    with writing_to(out):
        count = len(charts.save(out / "figures"))
        write_file(out / "report.html", text.encode())
    say(
        console,
        f"wrote {out / 'report.html'} ({len(text.encode()) / 1e6:.1f} MB) and {count} files in {out / 'figures'}",
    )


def _read(out: Path) -> tuple[dict[str, Record], dict[Path, str]]:
    """Read all runs below `out`, by run id, and what is wrong with each folder that is damaged."""
    found: dict[str, Record] = {}
    damaged: dict[Path, str] = {}
    for folder in records.folders(out):
        try:
            record = records.read(folder)
        except records.Damaged as error:
            damaged[folder] = str(error)
            continue
        if out / record.run.id != folder:
            raise UserError(f"{folder} holds the run {record.run.id}: move it there, or out of {out}.")
        found[record.run.id] = record
    return found, damaged


def _summaries(found: dict[str, Record]) -> list[Summary]:
    """Summarise experiment by experiment, in the order of `payback-lab list`."""
    names = dict.fromkeys(record.identity["experiment"] for record in found.values())
    _refuse_mixed(found)
    return [
        summarise(experiments.load(name), {i: r for i, r in found.items() if r.identity["experiment"] == name})
        for name in sorted(names, key=_place)
    ]


def _place(name: str) -> int:
    """Return where an experiment stands in `payback-lab list`; one that does not exist any more comes last."""
    order = list(experiments.MODULES)
    return order.index(name) if name in order else len(order)


def _refuse_mixed(found: dict[str, Record]) -> None:
    """Refuse runs of one group that were made with different configs, because their mean has no meaning."""
    first: dict[str, tuple[str, Record]] = {}
    for name, record in found.items():
        other, one = first.setdefault(str(group_of(record.run)), (name, record))
        for part in ("config", "learner_version"):
            if record.identity[part] != one.identity[part]:
                raise UserError(f"{other} and {name} were made with a different {part}: keep them in two folders.")
