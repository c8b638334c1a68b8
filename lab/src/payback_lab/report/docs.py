"""`payback-lab docs`: the tables and figures of docs/, made again from the committed summaries.

The sentences of the pages are written by hand; lab/tests/report/test_quoted_figures.py compares the figures in them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rich.console import Console

from payback_lab import experiments
from payback_lab.atomic_write import write_file
from payback_lab.claims.claim import DecidedClaim
from payback_lab.claims.wording import format_figure
from payback_lab.experiments.arena.results import StudyResults
from payback_lab.experiments.cliff.claims import FASTEST
from payback_lab.experiments.doorkey.claims import QUESTION
from payback_lab.experiments.doorkey.config import ABLATIONS
from payback_lab.experiments.hosts.verdicts import HostRuns
from payback_lab.experiments.studies.arena_verdicts import of_arena
from payback_lab.methods import SCHEMES
from payback_lab.prior_work import summary as prior_work
from payback_lab.report import (
    arena_tables,
    claims,
    curiosity,
    doorkey_tables,
    headline,
    hosts,
    reach,
    store,
    studies,
    studies_tables,
    which_delay,
)
from payback_lab.report.charts.style import as_svg
from payback_lab.report.markdown import placed, rows
from payback_lab.report.page import page
from payback_lab.report.summary import Summary
from payback_lab.running.progress import say
from payback_lab.user_error import UserError, writing_to

_MATCHINGS = f"doorkey-{QUESTION}-a0.02-g0.995"
FIGURES = (
    "doorkey-room",
    "doorkey-a0.005-g0.99-window-mean",
    "doorkey-a0.02-g0.995-window-mean",
    "doorkey-a0.025-g0.995-window-mean",
    "doorkey-a0.02-g0.995-film",
    f"{_MATCHINGS}-sampled-length-by-delay",
    f"{_MATCHINGS}-settled-step-by-delay",
)
"""The figures that docs/ shows, by their names in the report."""
NEEDED = ("doorkey", "reach", "delay", "curiosity", "arena", "depth", "hosts")


@dataclass(frozen=True)
class Committed:
    """Read the committed summaries, each once."""

    folder: Path

    @cached_property
    def summaries(self) -> Mapping[str, Summary]:
        """Return the summaries by experiment."""
        found = {summary.experiment: summary for summary in store.load(self.folder)}
        absent = [name for name in NEEDED if name not in found]
        if absent:
            raise UserError(f"There is no summary of {absent[0]} in {self.folder}: bring it back from git.")
        return found

    @cached_property
    def arena(self) -> StudyResults:
        """Return the runs of the arena."""
        return arena_tables.results_in(self.folder)

    @cached_property
    def curiosity(self) -> curiosity.Cells:
        """Return the runs of curiosity by bonus and scheme."""
        return curiosity.cells_of(self.summaries["curiosity"])

    @cached_property
    def hosts(self) -> HostRuns:
        """Return the runs in Stable-Baselines3."""
        return hosts.runs_in(self.folder)

    def claims(self, *names: str) -> list[DecidedClaim]:
        """Return the claims about some experiments."""
        return [claim for name in names if name in self.summaries for claim in self.summaries[name].claims]


Table = Callable[[Committed], str]
"""Make what stands between two marks of a page."""


def cliff_table(experiment: str, converged: str | None = None) -> Table:
    """Make a cliff's table, a row per scheme; `converged` is the claim that has the episodes to convergence."""
    header = ["scheme", *(["converged, episode"] if converged else []), "optimal", "greedy return", "greedy moves"]

    def table(of: Committed) -> str:
        summary = of.summaries[experiment]
        runs = next(group.runs for group in summary.groups if group.name == experiment)
        figures = {claim.statement: claim.figures for claim in summary.claims if claim.plain}
        episodes = {figure.scheme: format_figure(figure) for figure in figures[converged]} if converged else {}
        lines = []
        for scheme in SCHEMES:
            own = [run for run in runs if run["scheme"] == scheme]
            means = [f"{sum(run[name] for run in own) / len(own):.1f}" for name in ("greedy_return", "greedy_length")]
            repaid = scheme not in ("none", "im")
            residual = f"{max(run['law_residual'] for run in own):.0e}" if repaid else "–"
            optimal = f"{sum(run['optimal'] for run in own)} of {len(own)}"
            lines.append((f"`{scheme}`", *([episodes[scheme]] if episodes else []), optimal, *means, residual))
        return rows((*header, "largest residual"), lines)

    return table


def prior_work_table(of: Committed) -> str:
    """Make the table of prior work and the notes to it."""
    decided = prior_work.load(of.folder)
    if decided is None:
        raise UserError(f"There is no table of prior work in {of.folder}: bring it back from git.")
    return f"{prior_work.as_markdown(decided.table)}\n\n{_listed(prior_work.NOTES)}"


def _listed(notes: Iterable[str]) -> str:
    return "\n".join(f"- {note}" for note in notes)


def _notes(experiment: str) -> Table:
    return lambda of: _listed(experiments.load(experiment).notes)


def _of_task(task: str) -> Table:
    return lambda of: arena_tables.task_table(of.arena, task)


def _of_ablation(name: str) -> Table:
    return lambda of: doorkey_tables.table_of_ablation(of.folder, name)


def _of_hosts(make: Callable[[HostRuns], str]) -> Table:
    return lambda of: make(of.hosts)


TASKS = ("DoorKey-11x11", "MultiRoom-N4-S5-NoisyTV", "DoorKey-13x13", "KeyCorridorS3R3")
PAGES: Mapping[str, Mapping[str, Table]] = {
    "README.md": {"headline": lambda of: headline.table(of.arena, of.summaries["depth"])},
    **studies.PAGES,
    "docs/claims.md": {"claims of all experiments": lambda of: claims.claims_of_all(of.folder)},
    "docs/reach.md": {
        "table of reach": lambda of: reach.table(of.summaries["reach"]),
        "verdicts of reach": lambda of: claims.verdicts(of.claims("reach")),
    },
    "docs/reproduction.md": {
        **{f"table of {name}": _of_ablation(name) for name in ABLATIONS},
        f"table of {QUESTION}": lambda of: doorkey_tables.table_of_matchings(of.folder),
    },
    "docs/results/arena.md": {
        "scores": lambda of: arena_tables.overall_table(of.arena),
        "runs of the arena": lambda of: arena_tables.made(of.arena),
        "pairs of methods": lambda of: arena_tables.pairs(of.arena),
        **{f"table of {task}": _of_task(task) for task in TASKS},
        "sweep of the time limit": lambda of: arena_tables.limit_table(of.arena),
        "table of lava": lambda of: arena_tables.lava_table(of.arena),
        "table of RND": lambda of: arena_tables.rnd_table(of.arena),
        "multipliers": lambda of: arena_tables.multipliers(of.arena),
        "verdicts of the arena": lambda of: claims.verdicts(of.claims("arena")),
        "verdicts of the advantage side": lambda of: studies_tables.judged(of_arena(of.arena)),
        "choice of α": lambda of: arena_tables.alphas(of.arena),
        "choice of tasks": lambda of: arena_tables.screening(of.arena),
        "notes on the arena": _notes("arena"),
    },
    "docs/results/cliff.md": {
        "table of cliff": cliff_table("cliff", converged=FASTEST.statement),
        "table of long-cliff": cliff_table("long-cliff"),
    },
    "docs/results/curiosity.md": {
        "table of RND": lambda of: curiosity.rnd_table(of.curiosity),
        "comparisons of RND": lambda of: curiosity.rnd_comparisons(of.curiosity),
        "table of the other bonuses": lambda of: curiosity.others_table(of.curiosity),
        "predictions of curiosity": lambda of: curiosity.predictions_table(of.curiosity),
        "notes on curiosity": _notes("curiosity"),
    },
    "docs/results/hosts.md": {mark: _of_hosts(make) for mark, make in hosts.MARKS.items()},
    "docs/results/doorkey.md": {"tables of doorkey": lambda of: doorkey_tables.table_of_paper(of.folder)},
    "docs/results/prior-work.md": {"table of prior work": prior_work_table},
    "docs/understand/compare.md": {"table of the arena": lambda of: arena_tables.overall_table(of.arena)},
    "docs/which-delay.md": {
        "delays at a glance": lambda of: which_delay.glance(which_delay.evidence_of(of.summaries["delay"])),
        "table of delay": lambda of: which_delay.cells_table(which_delay.evidence_of(of.summaries["delay"])),
        "correlations of delay": lambda of: which_delay.correlations_table(
            which_delay.evidence_of(of.summaries["delay"])
        ),
        "verdicts of delay": lambda of: claims.verdicts(of.claims("delay")),
        "verdicts of center": lambda of: claims.verdicts(of.claims("center", "center-cliff")),
    },
}
"""Page → mark → what is written there; everything else on a page is written by hand."""


def write_docs(root: Path, summaries: Path, console: Console) -> int:
    """Write the tables of docs/ into their pages, and docs/figures; return 0.

    Nothing is written before everything is made, so that a summary that cannot be read changes no page.
    """
    missing = [name for name in PAGES if not (root / name).is_file()]
    if missing:
        raise UserError(f"There is no {missing[0]} in {root}: give the folder of the repository with --root.")
    committed = Committed(summaries)
    files = {}
    for name, tables in PAGES.items():
        files[name] = (root / name).read_text()
        for mark, make in tables.items():
            files[name] = placed(files[name], mark, make(committed))
    files |= {f"docs/figures/{name}.svg": svg for name, svg in figures(committed).items()}
    with writing_to(root):
        for name, content in files.items():
            write_file(root / name, content.encode())
    say(console, f"wrote {len(files)} files: {', '.join(files)}")
    return 0


def figures(committed: Committed) -> dict[str, str]:
    """Draw the figures of docs/, by name."""
    of = committed.summaries
    _, charts = page([of["doorkey"]])
    absent = [name for name in FIGURES if name not in charts.names()]
    if absent:
        raise UserError(f"The summaries in {committed.folder} lack what {absent[0]} shows: bring them back from git.")
    own = {
        "reach": reach.reach_figure(of["reach"]),
        "reach-speed": reach.speed_figure(of["reach"]),
        "which-delay": which_delay.delay_figure(of["delay"]),
        "felt-share": which_delay.felt_figure(),
        "curiosity": curiosity.curiosity_figure(of["curiosity"]),
        "headline": headline.headline_figure(committed.arena, of["arena"], of["depth"]),
        "headline-11x11": headline.figure_of(headline.arena_panel(committed.arena, of["arena"])),
        "headline-16x16": headline.figure_of(headline.depth_panel(of["depth"])),
        "sb3-doorkey": headline.sb3_figure(committed.hosts, of["hosts"]),
    }
    drawn = {name: as_svg(spec) for name, spec in own.items()} | arena_tables.figures(committed.arena)
    drawn |= studies.figures(committed.folder)
    in_sb3 = hosts.hosts_figure(committed.hosts)
    drawn |= {} if in_sb3 is None else {"hosts": as_svg(in_sb3)}
    return {name: charts.svg(name) for name in FIGURES} | drawn | {"agents": reach.moving(of["reach"])}
