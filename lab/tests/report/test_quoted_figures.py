"""The sentences that are written by hand, held against the committed results.

A page's function returns the fragments that the page must contain, with their figures computed here, and asserts what
the page says without figures. A stale figure is named by the test.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from payback_lab.claims.wording import format_p
from payback_lab.experiments.arena.chosen import ALPHAS, cell_of, tuning_shares
from payback_lab.experiments.arena.config import METHODS
from payback_lab.experiments.arena.finished import seeds_of
from payback_lab.experiments.arena.measures import is_found, is_solved, over_fewest, scores, shares, solved_steps
from payback_lab.experiments.arena.study import DELAYS, LAVA, OWN_LIMIT, RND_METHODS, SWEPT, SWEPT_LIMITS
from payback_lab.experiments.cliff.measures import CONVERGED, FIRST_ARRIVAL
from payback_lab.experiments.curiosity.comparison import compare, solved
from payback_lab.experiments.delay.experiment import LAMBDAS
from payback_lab.experiments.doorkey.measures import HIGH, LOW, MIDDLE
from payback_lab.experiments.doorkey.table import Row, figures, table_rows
from payback_lab.report import headline, reach, which_delay
from payback_lab.report.arena_tables import error_rates
from payback_lab.report.cards import CARDS, figure_of_claims, group_of, runs_of
from payback_lab.report.claims import tally
from payback_lab.report.curiosity import cells_of, others_together
from payback_lab.report.docs import TASKS
from payback_lab.report.doorkey_tables import format_mean
from payback_lab.report.doorkey_tables import runs_of as doorkey_runs
from payback_lab.report.findings import FINDINGS
from payback_lab.statistics import Estimate, welch

from .quoted_studies import (
    OF,
    in_advantage_side,
    in_bonuses,
    in_counts,
    in_decomposition,
    in_depth,
    in_first_screen,
    in_hosts,
    in_key_corridor,
    in_safe_range,
    in_sb3,
)

ROOT = Path(__file__).parents[3]
RUNS = doorkey_runs(OF.folder)
ROWS = {(row.setting, row.scheme): row for row in table_rows(RUNS)}
COUNTS = tally(OF.claims("doorkey"))


def page(name: str) -> str:
    """Read a page, its lines joined, because a sentence may be broken anywhere."""
    return " ".join((ROOT / name).read_text().split())


def in_readme() -> list[str]:
    """Return what the first screen says beside its table, which `payback-lab docs` writes."""
    solved, raw_solved = (float(solved_steps(OF.arena.runs(DOORKEY, m)).mean()) for m in ("grm-30", "im"))
    assert {len(OF.arena.runs(DOORKEY, method)) for method in headline.METHODS} == {5}
    assert list(OF.arena.overall)[:4] == [CENTRED, "grm-30", "phased", "im"]
    assert len(OF.arena.overall) == 12
    assert max(ALPHAS) / min(ALPHAS) == 16
    solved_deep = {method: sum(share >= 0.95 for share in own) for method, own in in_counts().items()}
    deep = {CENTRED, "grm-adv-300-0.99", "two-critics-0.99"}
    assert {method: seeds for method, seeds in solved_deep.items() if seeds} == dict.fromkeys(deep, 3)
    alone = f"{100 * np.mean(in_counts()[CENTRED]):.0f} %"
    ours, raw, centred = (OF.arena.overall[method].format(".2f") for method in ("grm-30", "im", CENTRED))
    rnd = [f"{100 * shares(OF.arena.runs(DOORKEY, m, 'rnd')).mean():.0f} %" for m in ("im", "grm-30")]
    steps = in_key_corridor()["grm-adv-30-0.95-lone"][1]
    assert [own[0] for own in in_key_corridor().values()] == [0, 2, 2, 3]
    return [
        f"solved {raw_solved / solved:.1f} times as soon",
        f"Over four tasks GRM scores {ours}, the raw bonus {raw}",
        f"never repaid (`payback.center()`), scores {centred}, the most of twelve methods",
        f"the centred raw bonus does, {alone} in 3 of 3 seeds, and GRM as an advantage",
        f"solves 3 of 3 after {steps[:3]} thousand steps, GRM and the tuned raw bonus 2 of 3 each, no bonus none",
        f"the raw bonus solves {rnd[0]} of DoorKey 11×11 and GRM {rnd[1]}",
        in_first_screen(),
        in_sb3(),
    ]


def in_index() -> list[str]:
    """Return what the site's first page says below the picture."""
    ours, raw = (f"{solved_steps(OF.arena.runs(DOORKEY, m)).mean() / 1e6:.2f}" for m in ("grm-30", "im"))
    of_rnd()
    return [f"GRM solves the task from {ours} million steps, the tuned raw bonus from {raw} million"]


def in_coefficient() -> list[str]:
    """Return the rows of the small table of α."""
    shares_of = {name: tuning_shares(OF.arena.finished, m) for name, m in (("raw bonus", "im"), (GRM, "grm-30"))}
    assert f"{max(tuning_shares(OF.arena.finished, 'none').values()):.2f}" == "0.90"
    return [
        f"| {name} | {' | '.join(f'{own[alpha]:.2f}' for alpha in sorted(own))} |" for name, own in shares_of.items()
    ]


GRM = "GRM, D = 30"


@cache
def in_reach() -> list[str]:
    """Who learns on which grid."""
    rows = {(row.size, row.scheme): row for row in reach.reach_rows(OF.summaries["reach"])}
    assert [size for size, scheme in rows if scheme == "none" and rows[size, scheme].reaches] == [8]
    assert [rows[size, "none"].settled.reached for size in (10, 11, 12, 13, 14, 16)] == [1, 1, 0, 0, 0, 0]
    assert [size for size, scheme in rows if scheme == "grm-30" and rows[size, scheme].reaches] == [
        8,
        10,
        11,
        12,
        13,
        14,
    ]
    raw = [rows[size, "im"] for size in (8, 10, 11, 12, 13, 14, 16)]
    assert not any(row.reaches for row in raw)
    shares = [row.solved.value for row in raw if row.solved]
    assert shares[0] > shares[1] > shares[-2] > shares[-1] > rows[16, "grm-30"].solved.value  # pyright: ignore
    assert {claim.verdict for claim in OF.claims("reach")} == {"holds"}
    assert OF.arena.alpha("grm-10") == 0.08
    assert not is_found(OF.arena.runs(DOORKEY, "grm-10"))
    return ["All fourteen hold."]


def in_cliff() -> list[str]:
    """How much later the schemes converge than training without a bonus."""
    of = OF.summaries["cliff"]
    episodes = {s: figure.mean for s in ("none", "im", *REPAID) if (figure := figure_of_claims(of, CONVERGED.label, s))}
    assert episodes["im"] > 8 * episodes["none"]
    times = [f"{episodes[scheme] / episodes['none']:.1f}" for scheme in REPAID]
    optimal = {s: sum(run["optimal"] for run in runs_of(group_of(of), s)) for s in (*REPAID, "grm-1-raw")}
    return [
        f"`pbim`, `grm-1` and `grm-10` converge {times[0]}, {times[1]} and {times[2]} times as late as `none`",
        f"({optimal['pbim']}, {optimal['grm-1']} and {optimal['grm-10']} of 10 seeds)",
        f"({optimal['grm-1']} and {optimal['grm-1-raw']} of 10)",
        tally(OF.claims("cliff")),
        tally(OF.claims("long-cliff")),
    ]


REPAID = ("pbim", "grm-1", "grm-10")


@cache
def in_arena() -> list[str]:
    """Which method when."""
    of = OF.arena
    assert of.tasks == of.compared == TASKS
    assert list(of.overall)[:4] == [CENTRED, "grm-30", "phased", "im"]
    chances = {method: of.improvement("grm-30", method) for method in OF.arena.methods if method != "grm-30"}
    assert [method for method, chance in chances.items() if chance.low <= 0.5] == ["grm-10", CENTRED]
    assert chances["grm-10"].high >= 0.5 > chances[CENTRED].high
    solves = {m: all(is_solved(of.runs(task, m)) for task in TASKS) for m in of.methods}
    assert [method for method, all_four in solves.items() if all_four] == [CENTRED]
    assert not any(is_solved(of.runs(task, "none")) for task in TASKS)
    assert [task for task in TASKS if is_solved(of.runs(task, "im"))] == [DOORKEY, LARGER, CORRIDOR]
    for task, (best, significant) in BEST.items():
        assert min(of.methods, key=lambda m: steps_of(task, m)) == ("grm-30" if task == LARGER else CENTRED), task
        ranked = sorted(METHODS, key=lambda method: -float(of.scores(method, [task])[0].mean()))
        rival = next(method for method in ranked if not method.startswith("grm"))
        assert (ranked[0], rival) == (best, "phased"), task
        assert (of.improvement(best, rival, [task]).low > 0.5) is significant, task
        assert min(METHODS, key=lambda m: steps_of(task, m)) == best, task
    paths = {m: [path_of(task, m) for task in (DOORKEY, LARGER, CORRIDOR)] for m in ("im", "grm-30", "grm-10")}
    grm = (paths["grm-30"][0], paths["grm-30"][1], paths["grm-10"][2])
    rates = [f"{100 * rate:.0f} %" for rate in error_rates(of)]
    spread = {
        m: f"{max(own.values()) - min(own.values()):.2f}" for m in METHODS if (own := tuning_shares(of.finished, m))
    }
    ours, centred = (of.overall[method].format(".2f") for method in ("grm-30", CENTRED))
    return [
        f"interquartile mean score of {centred} and alone solves all four, GRM D = 30 has {ours}",
        f"the centred raw bonus with probability {chances[CENTRED].format('.2f')}",
        "scores are {}, {}, {} and {}".format(*(f"{mean_score(task, BEST[task][0]):.2f}" for task in TASKS)),
        "the centred raw bonus' {}, {}, {} and {}".format(*(f"{mean_score(task, CENTRED):.2f}" for task in TASKS)),
        f"is as soon, {steps_of(LARGER, 'grm-30'):.2f} against {steps_of(LARGER, CENTRED):.2f} M steps",
        f"{paths['im'][0]} times the shortest path on {DOORKEY}, {paths['im'][1]} on {LARGER}, "
        f"{paths['im'][2]} on {CORRIDOR}",
        f"the best GRM takes {grm[0]}, {grm[1]} and {grm[2]}",
        f"D = 30 solves {DOORKEY} from {steps_of(DOORKEY, 'grm-30'):.2f} M steps and {LARGER} from "
        f"{steps_of(LARGER, 'grm-30'):.2f} M, D = 10 {CORRIDOR} from {steps_of(CORRIDOR, 'grm-10'):.2f} M and {NOISY} "
        f"from {steps_of(NOISY, 'grm-10'):.2f} M",
        f"varies by {spread['grm-30']} for GRM D = 30 and by {spread['im']} for the raw bonus",
        f"in about {rates[0]} of such studies over all four tasks, and in about {rates[1]} on one task",
        *of_long_episodes(),
        *of_rnd(),
        *of_lava(),
    ]


DOORKEY, NOISY, LARGER, CORRIDOR = TASKS
CENTRED = "im-centred"
BEST = {DOORKEY: ("grm-30", True), NOISY: ("grm-10", True), LARGER: ("grm-30", False), CORRIDOR: ("grm-10", True)}
"""Task → the best of the methods planned at first, and whether it is better than the best that is not GRM."""


def mean_score(task: str, method: str) -> float:
    return float(OF.arena.scores(method, [task])[0].mean())


def path_of(task: str, method: str) -> str:
    return f"{over_fewest(task, OF.arena.runs(task, method)).mean():.1f}"


def steps_of(task: str, method: str) -> float:
    """Return the mean step from which a task is solved, in millions; infinity where it is not solved."""
    runs = OF.arena.runs(task, method)
    return float(solved_steps(runs).mean()) / 1e6 if is_solved(runs) or task == NOISY else np.inf


def of_long_episodes() -> list[str]:
    longest = SWEPT_LIMITS[-1]
    at = {limit: {d: OF.arena.limited(limit, d) for d in DELAYS} for limit in (OWN_LIMIT, longest)}
    assert all(is_solved(runs) for runs in at[longest].values())
    best = [max(DELAYS, key=lambda d: scores(SWEPT, at[limit][d]).mean()) for limit in (longest, OWN_LIMIT)]
    assert best == ["grm-10", "grm-30"]
    return [f"with a time limit of {longest:,} steps every delay still solves {SWEPT}", f"limit of {OWN_LIMIT:,} steps"]


def of_lava() -> list[str]:
    runs = {(m, a): seeds_of(OF.arena.finished, cell_of(LAVA, a), m) for m in (CENTRED, "grm-30") for a in (0.02, 0.08)}
    assert {len(own) for own in runs.values()} == {3}
    assert [f"{shares(runs[CENTRED, alpha]).mean():.0%}" for alpha in (0.02, 0.08)] == ["100%", "100%"]
    for alpha in (0.02, 0.08):
        assert over_fewest(LAVA, runs[CENTRED, alpha]).mean() < over_fewest(LAVA, runs["grm-30", alpha]).mean()
    centred, grm = (f"{solved_steps(runs[m, 0.08]).mean() / 1e6:.2f} M" for m in (CENTRED, "grm-30"))
    return [f"the centred raw bonus solves the task from {centred} steps, GRM from {grm}"]


def of_rnd() -> list[str]:
    assert OF.arena.improvement("im", "grm-30", [DOORKEY], "rnd").low > 0.5
    assert not any(is_found(OF.arena.runs(NOISY, method, "rnd")) for method in RND_METHODS)
    return [f"**With RND** the raw bonus is better than GRM D = 30 on {DOORKEY}"]


def in_when_not() -> list[str]:
    """What the arena says against GRM."""
    of_rnd()
    ours, centred = (OF.arena.overall[method].format(".2f") for method in ("grm-30", CENTRED))
    return [
        f"GRM with D = 30 scores {ours}, F − F̄ that is never repaid {centred}",
        "the raw bonus is better** than GRM with D = 30",
    ]


def in_curiosity() -> list[str]:
    """What GRM gains with the bonuses of the library."""
    cells = cells_of(OF.summaries["curiosity"])
    raw, none = (compare(cells["rnd", "grm-30"], cells["rnd", other]) for other in ("im", "none"))
    assert raw.each == ("better", "better", "better")
    assert none.each == ("open", "open", "open")
    steps, final = others_together(cells)
    sooner, shorter = (Estimate(-one.value, -one.high, -one.low) for one in (steps, final))
    return [
        f"solves the task {sooner.format('.0f', per=1000)} thousand steps sooner",
        f"episodes that are {shorter.format('.0f')} steps shorter",
    ]


@cache
def in_which_delay() -> list[str]:
    """Which delay is the soonest where, and which mean learns sooner."""
    evidence = which_delay.evidence_of(OF.summaries["delay"])
    # README, docs/howto/choose.md and docs/understand/felt.md say so, too.
    soonest = {lam: which_delay.soonest(evidence, lam) for lam in LAMBDAS}
    assert soonest == {0.95: "grm-30", 0.8: "grm-30", 0.99: "grm-100", 1.0: None}
    means = [claim.verdict for claim in OF.claims("center", "center-cliff")]
    assert (len(means), means.count("holds"), means.count("does not hold")) == (7, 3, 0)
    by_task = {m: [float(own.mean()) for own in OF.arena.scores(m)] for m in ("grm-10", "grm-30")}
    thirty = [task for task, ten, long in zip(OF.arena.tasks, *by_task.values(), strict=True) if long > ten]
    assert thirty == [DOORKEY, LARGER]
    holds, fails, open_ = (
        [c.verdict for c in OF.claims("delay")].count(v) for v in ("holds", "does not hold", "undecided")
    )
    return [
        f"The {holds + fails + open_} hypotheses: {holds} hold, {fails} do not, {open_} are undecided",
        "Of seven cells a recent mean learns significantly sooner in three and later in none",
        f"D = 30 with α = {OF.arena.alpha('grm-30')} has the better score on DoorKey 11×11 and 13×13",
        f"D = 10 with α = {OF.arena.alpha('grm-10')} beside a noisy TV and on KeyCorridorS3R3",
    ]


def in_reproduction() -> list[str]:
    """Return what the sections "what holds, and what does not" and "other matchings" must say."""
    count, holds, fails, open_ = (int(word) for word in COUNTS.replace(":", "").split() if word.isdigit())
    im, high, none = ROWS[MIDDLE, "im"], ROWS[HIGH, "im"], ROWS[LOW, "none"].length
    assert none is not None
    ten = [settles(setting, scheme) for setting in (MIDDLE, HIGH) for scheme in ("grm-10", "grm-10-raw")]
    late = sorted(settles(LOW, scheme) for scheme in ("grm-10", "grm-10-raw"))
    lengths = [ROWS[setting, scheme].length for setting in (MIDDLE, HIGH) for scheme in ("grm-10", "grm-10-raw")]
    ends = sorted(length.value for length in lengths if length)
    return [
        f"of {count} claims {holds} hold, {fails} do not, {open_} are undecided",
        f"N̄ = {format_mean(im.length, '.0f')} at α = 0.02 and {format_mean(high.length, '.0f')} at α = 0.025; "
        f"{truncated(im)} and {truncated(high)} of the episodes",
        f"by {im_gap()} steps",
        f"(solved from {min(ten):.2f} to {max(ten):.2f} M steps, means over seeds)",
        f"−{repaid(LOW)[0]:.0f} to −{repaid(LOW)[1]:.0f} at γ = 0.99 and −{repaid(MIDDLE, HIGH)[0]:.0f} to "
        f"−{repaid(MIDDLE, HIGH)[1]:.0f} at γ = 0.995",
        f"N̄ = {format_mean(ROWS[MIDDLE, 'none'].length)}, the paper has 634.8",
        f"{format_mean(ROWS[MIDDLE, 'grm-1-raw'].length)}, the paper has 634.5",
        f"(solved from {settles(LOW, 'im'):.2f} M steps, D = 10 from {late[0]:.2f} and {late[1]:.2f} M)",
        f"from {settles(LOW, 'grm-1'):.2f} M steps against {settles(LOW, 'none'):.2f} M",
        f"no IM with a discount of 0.99 learns ([the table](results/doorkey.md#the-tables), N̄ = {none.value:.1f})",
        *of_seeds(),
        f"We find {mean(im)} and {mean(high)}, and {ends[0]:.0f} to {ends[-1]:.0f}.",
        *of_matchings(),
    ]


def in_doorkey() -> list[str]:
    """Return what the list "what to conclude" must say."""
    im, high = ROWS[MIDDLE, "im"], ROWS[HIGH, "im"]
    low, most = repaid(MIDDLE, HIGH)[0], repaid(LOW)[1]
    return [
        COUNTS,
        f"N̄ = {mean(im)} and {mean(high)} steps, {truncated(im)} and {truncated(high)} of the episodes",
        f"settlements of −{low:.0f} to −{most:.0f} beside a goal of 1",
        f"N̄ = {matching('grm-30').mean():.0f} with D = 30 and {matching('grm-100').mean():.0f} with D = 100 against "
        f"{matching('grm-10').mean():.0f} with D = 10",
    ]


def of_seeds() -> list[str]:
    """Return how the seeds of the cells that learn differ, and how many of these runs have the paper's T."""
    cells: dict[tuple[str, str], list[dict]] = {}
    for run in RUNS:
        cells.setdefault((run["setting"], run["scheme"]), []).append(run)
    learn = [runs for runs in cells.values() if all(run["settled_step"] for run in runs)]
    apart = max(np.ptp(figures(runs, "mean_length")) for runs in learn)
    steps = [figures(runs, "settled_step") for runs in learn]
    # Training without a bonus is run once for each γ, and counts at both settings of γ = 0.995.
    runs = list({run["id"]: run for own in learn for run in own}.values())
    without = sum(run["convergence_step"] is None for run in runs)
    return [
        f"(by at most {np.ceil(apart):.0f} steps where the agent learns)",
        f"(by a factor of up to {max(one.max() / one.min() for one in steps):.1f})",
        f"N/A for {without} of our {len(runs)} runs that learn",
    ]


def of_matchings() -> list[str]:
    """Return the figures that answer whether a longer delay beats D = 10."""
    longer = ("grm-30", "grm-100")
    ends = " and ".join(f"{matching(scheme).mean():.1f}" for scheme in longer)

    def p(figure: str) -> str:
        pairs = [welch(matching(scheme, figure), matching("grm-10", figure)) for scheme in longer]
        return " and ".join(format_p(one).removeprefix("p ").removeprefix("= ") for one in pairs)

    return [
        f"D = 30 and D = 100 end at N̄ = {ends} against {matching('grm-10').mean():.1f}",
        f"{p('sampled_length')}, and for learning sooner {p('settled_step')}",
    ]


def matching(scheme: str, figure: str = "mean_length") -> np.ndarray:
    return figures([run for run in doorkey_runs(OF.folder, "other-matchings") if run["scheme"] == scheme], figure)


def settles(setting: str, scheme: str) -> float:
    """Return the mean step, in millions, from which the task is solved; every seed of these cells gets there."""
    own = [run for run in RUNS if (run["setting"], run["scheme"]) == (setting, scheme)]
    return float(np.mean([run["settled_step"] for run in own])) / 1e6


def repaid(*settings: str) -> tuple[float, float]:
    """Return the smallest and the largest of PBIM's largest repayments."""
    own = [run for run in RUNS if run["scheme"] in ("pbim", "pbim-raw") and run["setting"] in settings]
    found = -figures(own, "largest_repayment")
    return float(found.min()), float(found.max())


def im_gap() -> str:
    """Return by how much the gap to IM grows with α, as the claim says it."""
    (claim,) = (c for c in OF.claims("doorkey") if c.statement.startswith("By how much our methods end"))
    numbers = claim.here.removeprefix("gap to IM larger by ").partition("]")[0].replace("[", "").split()
    value, low, high = (float(number.strip(",")) for number in numbers)
    return f"{value:.0f} [{low:.0f}, {high:.0f}]"


def truncated(row: Row) -> str:
    return f"{100 * row.truncated.value:.0f} %" if row.truncated else "–"


def mean(row: Row) -> str:
    return f"{row.length.value:.0f}" if row.length else "–"


QUOTES: dict[str, Callable[[], list[str]]] = {
    "README.md": in_readme,
    "docs/howto/advantage-side.md": in_advantage_side,
    "docs/howto/bonuses.md": in_bonuses,
    "docs/howto/coefficient.md": in_coefficient,
    "docs/index.md": in_index,
    "docs/results/depth.md": in_depth,
    "docs/results/safe-range.md": in_safe_range,
    "docs/understand/advantage-side.md": in_decomposition,
    "docs/results/hosts.md": in_hosts,
    "docs/reach.md": in_reach,
    "docs/reproduction.md": in_reproduction,
    "docs/results/arena.md": in_arena,
    "docs/results/cliff.md": in_cliff,
    "docs/results/curiosity.md": in_curiosity,
    "docs/results/doorkey.md": in_doorkey,
    "docs/understand/when-not.md": in_when_not,
    "docs/which-delay.md": in_which_delay,
}


@pytest.mark.parametrize("name", QUOTES)
def test_no_figure_in_the_text_is_stale(name: str) -> None:
    text = page(name)
    assert [fragment for fragment in QUOTES[name]() if fragment not in text] == []


def test_the_findings_on_the_first_screen_are_those_of_the_results() -> None:
    """Each condition is the finding of the card with that name; one that is new needs a condition here."""
    of = OF.summaries
    episodes = {
        s: figure.mean for s in ("im", *REPAID) if (figure := figure_of_claims(of["cliff"], CONVERGED.label, s))
    }
    found = {
        s: f.mean for s in ("none", "im", *REPAID) if (f := figure_of_claims(of["long-cliff"], FIRST_ARRIVAL.label, s))
    }
    learned = {s: [run["settled_step"] for run in RUNS if run["scheme"] == s] for s in ("grm-10", "pbim")}
    held = {
        "cliff": max(episodes[s] for s in REPAID) <= 0.5 * episodes["im"]
        and any(not run["optimal"] for run in runs_of(group_of(of["cliff"]), *REPAID)),
        "long-cliff": found["im"] > max(found[s] for s in REPAID) and min(found.values()) >= 0.9 * found["none"],
        "doorkey": all(learned["grm-10"]) and not any(learned["pbim"]),
        "reach": bool(in_reach()),
        "delay": bool(in_which_delay()),
        "curiosity": bool(in_curiosity())
        and not any(solved(runs).any() for (_, s), runs in OF.curiosity.items() if s == "im"),
        "arena": bool(in_arena()),
    }
    assert held == dict.fromkeys(CARDS, True)


def test_the_findings_that_reproduce_prints_are_those_of_the_results() -> None:
    """Each condition is the sentence of the finding with that name."""
    value = {f.experiment: [f.value(OF.summaries[f.experiment], s) for s in f.schemes] for f in FINDINGS}
    number = {name: [float(one.strip("%").replace(",", "")) for one in own] for name, own in value.items()}
    held = {
        "cliff": number["cliff"][1] > 8 * number["cliff"][0] and number["cliff"][2] <= 1.1 * number["cliff"][0],
        "doorkey": number["doorkey"][1] > 3 * number["doorkey"][0] and number["doorkey"][2] < number["doorkey"][0],
        "reach": number["reach"][2] >= 95 > max(number["reach"][:2]),
    }
    assert held == dict.fromkeys((finding.experiment for finding in FINDINGS), True)
