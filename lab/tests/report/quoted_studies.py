"""What the pages say of the studies and of Stable-Baselines3, said again from the committed runs."""

from functools import cache
from pathlib import Path

import numpy as np

from payback_lab.experiments.arena.measures import solved_steps
from payback_lab.experiments.arena.setting import parse_setting
from payback_lab.experiments.hosts.setting import BONUSES as READY
from payback_lab.experiments.hosts.setting import EPISODIC
from payback_lab.experiments.hosts.verdicts import solved as hosts_solved
from payback_lab.experiments.studies.analysis import safe_ranges
from payback_lab.experiments.studies.safe_range import ALPHAS, CENTRED
from payback_lab.experiments.studies.safe_range import METHODS as SAFE_METHODS
from payback_lab.experiments.studies.verdicts import of_safe_range
from payback_lab.report.docs import Committed
from payback_lab.report.hosts import ready_name
from payback_lab.report.study_results import Results
from payback_lab.statistics import mean_estimate

OF = Committed(Path(__file__).parents[2] / "results")


def deep_shares(bonus: str, figure: str = "sampled_solved") -> dict[str, list[float]]:
    """Return the share solved of each of three seeds on DoorKey-16x16, by method."""
    results = Results("depth", OF.folder)
    found: dict[str, list[float]] = {}
    for cell in results.study.cells:
        setting = parse_setting(cell.setting)
        own = list(results.finished.get((cell.setting, cell.method), {}).values())
        if setting.task == "DoorKey-16x16" and setting.bonus == bonus and len(own) == 3:
            found[cell.method] = [run[figure] for run in own]
    return found


def in_counts() -> dict[str, list[float]]:
    """Return those with counts of the simulator's state."""
    return deep_shares("counts")


def in_depth() -> list[str]:
    """Return what depth.md says of DoorKey-16x16."""
    counts, views = (
        {method: f"{100 * np.mean(own):.0f} %" for method, own in deep_shares(bonus).items()}
        for bonus in ("counts", "views")
    )
    return [
        f"never repaid, solves {counts['im-centred']} of episodes after 6 million steps, GRM-adv "
        f"{counts['grm-adv-300-0.99']} and two critics {counts['two-critics-0.99']}, in 3 of 3 seeds each; the raw "
        f"bonus solves {counts['im']}, GRM {counts['grm-30']}",
        f"GRM-adv and two critics solve {views['grm-adv-300-0.99']} and {views['two-critics-0.99']}, the raw bonus "
        f"{views['im']}, GRM {views['grm-30']}",
        "solved to {} and {}, the final agent solves {} and {}".format(*of_collapse()[0], *of_collapse()[1]),
    ]


def of_collapse() -> tuple[list[str], list[str]]:
    """Return the best share in training and the final one of both forms taken back; all their runs collapse."""
    backs = ("grm-adv-300-0.99-back", "two-critics-0.99-back")
    best, final = deep_shares("counts", "best_training_solved"), in_counts()
    assert all(high - low >= 0.5 for m in backs for high, low in zip(best[m], final[m], strict=True))
    return [f"{100 * np.mean(best[m]):.0f} %" for m in backs], [f"{100 * np.mean(final[m]):.0f} %" for m in backs]


def in_decomposition() -> list[str]:
    """Return what the page on the advantage side says of collapses."""
    best, final = of_collapse()
    return [f"from {best[0]} and {best[1]} of a hundred episodes in training to {final[0]} and {final[1]} at the end"]


def in_advantage_side() -> list[str]:
    """Return what the how-to page says of both studies."""
    counts = {method: f"{100 * np.mean(own):.0f} %" for method, own in in_counts().items()}
    own, grm = (
        f"{solved_steps(OF.hosts.cell('DoorKey-8x8', 'episodic-count', method)).mean() / 1e3:.0f}"
        for method in ("grm-adv-30-0.95-lone", "grm-30")
    )
    return [
        f"it solves {counts['im-centred']} of episodes, and the two forms",
        f"solve {counts['grm-adv-300-0.99']} and {counts['two-critics-0.99']} of episodes after 6 million steps",
        f"as soon as GRM, {own} against {grm} thousand steps",
    ]


def of_ready(episodic: bool) -> str:
    """Say how many runs of the episodic, or of the lifetime, bonuses solve DoorKey-8x8."""
    runs = [run for bonus in READY if (bonus in EPISODIC) is episodic for run in OF.hosts.ready(bonus)]
    return f"{hosts_solved(runs)} of {len(runs)}"


SAFE = (0.005, 0.02, 0.08)


DOOR, CORRIDOR = "DoorKey-11x11", "KeyCorridorS3R3"


@cache
def views(task: str) -> dict[tuple[str, float], float]:
    """Return the share of a task that is solved with counts of the view, three seeds, by method and α."""
    found = {}
    for (name, method), runs in Results("safe-range", OF.folder).finished.items():
        setting = parse_setting(name)
        if setting.task == task and len(runs) == 3:
            found[method, setting.alpha] = float(np.mean([run["sampled_solved"] for run in runs.values()]))
    return found


def solved_views(*tasks: str) -> dict[str, tuple[float, ...]]:
    """Return at which α each method that has three seeds everywhere solves these tasks."""
    keys = sorted(set[tuple[str, float]].intersection(*(set(views(task)) for task in tasks)))
    solves = {(m, a) for m, a in keys if all(views(task)[m, a] >= 0.95 for task in tasks)}
    return {method: tuple(a for m, a in keys if m == method and (m, a) in solves) for method, _ in keys}


def in_safe_range() -> list[str]:
    """Return what the page says of centring, of repayment and of taking the bonus back."""
    finished = Results("safe-range", OF.folder).finished
    raw, two, _ = CENTRED
    both = solved_views(DOOR, CORRIDOR)
    assert (both["grm-30"], both[raw], both["im"]) == (SAFE[1:2], SAFE[1:], ())
    door, corridor = ({key: f"{100 * own:.0f} %" for key, own in views(task).items()} for task in (DOOR, CORRIDOR))
    rows = {row.method: row for row in safe_ranges(finished, (*SAFE_METHODS, *CENTRED))}
    assert [rows[m].safe for m in (two, "grm-adv-300-0.99", "two-critics-0.99")] == [SAFE, SAFE[1:], ()]
    own = {row.method: row for row in safe_ranges(finished)}
    assert [len(row.safe) for row in own.values()] == [0, 0, 3, 1, 1, 2, 2, 0, 1]
    assert not any(share >= 0.95 for (method, _), share in views(CORRIDOR).items() if method == "pies")
    chance = {one.text: one.measured.split("probability ")[-1] for one in of_safe_range(finished)}
    not_better = "grm-adv is not better than centred two critics"
    collapsed = sum(own[f"{m}-0.99-back"].collapsed for m in ("grm-adv-300", "two-critics"))
    return [
        f"at no α of five, at most {raw_corridor()}",
        f"with a score of {rows[raw].scores[0.02].format('.2f')}. GRM with D = 30, which repays the same F − F̄, has "
        f"{rows['grm-30'].scores[0.02].format('.2f')} there",
        f"all five α GRM scores higher with probability {chance['GRM-30 is better than the centred raw bonus.']}",
        f"solves {door['grm-30', 0.02]} of DoorKey-11x11 and {corridor['grm-30', 0.02]} of KeyCorridorS3R3",
        f"centred two critics with probability {chance[f'{not_better}.']}, and with "
        f"{chance[f'{not_better}, both taken back.']} where both are taken back",
        f"{collapsed} of 60 runs of GRM-adv and two critics collapsed",
    ]


def raw_corridor() -> str:
    """Return how much of KeyCorridorS3R3 the raw bonus solves at its best α."""
    own = [share for (method, _), share in views(CORRIDOR).items() if method == "im"]
    assert len(own) == len(ALPHAS)
    return f"{100 * max(own):.0f} %"


def in_first_screen() -> str:
    """Return what README says of both tasks."""
    ours = [f"{100 * views(task)['grm-30', 0.02]:.0f} %" for task in (DOOR, CORRIDOR)]
    return (
        f"GRM solves {ours[0]} of DoorKey 11×11 and {ours[1]} of KeyCorridorS3R3; at any of five α a raw bonus solves "
        f"at most {raw_corridor()} of the latter"
    )


def in_key_corridor() -> dict[str, tuple[int, str]]:
    """Return how many of three seeds solve KeyCorridorS3R3 in Stable-Baselines3, and when, by method."""
    found = {}
    for method in ("none", "im", "grm-30", "grm-adv-30-0.95-lone"):
        own = OF.hosts.cell("KeyCorridorS3R3", "episodic-count", method)
        assert len(own) == 3
        found[method] = hosts_solved(own), mean_estimate(solved_steps(own) / 1e3).format(".0f")
    return found


def in_hosts() -> list[str]:
    """Return what is said of KeyCorridorS3R3, and of the ready bonuses together."""
    (none, _), (raw, raw_steps), (grm, grm_steps), (adv, adv_steps) = in_key_corridor().values()
    corridor = (
        f"solves it in {adv} of 3 seeds, after {adv_steps} thousand steps; GRM in {grm} of 3, after {grm_steps}, "
        f"the raw bonus with the best of three α in {raw} of 3, after {raw_steps}, no bonus in {none} of 3"
    )
    runs = {m: OF.hosts.cell("MountainCar", "episodic-count", m) for m in in_key_corridor()}
    solving = {method: hosts_solved(own) for method, own in runs.items()}
    assert {len(own) for own in runs.values()} == {3}
    assert solving == {"none": 1, "im": 0, "grm-30": 0, "grm-adv-30-0.95-lone": 0}
    reached = np.mean([run["sampled_solved"] for run in runs["grm-adv-30-0.95-lone"]])
    flag = f"reach the flag in {100 * reached:.0f} % of episodes"
    return [
        corridor,
        flag,
        f"The five episodic bonuses solve {of_ready(True)} runs, the six lifetime ones {of_ready(False)}",
    ]


def in_bonuses() -> list[str]:
    """Return what each ready bonus reached in Stable-Baselines3."""
    assert OF.hosts.chosen.grm == "grm-30"
    rows = []
    for bonus in READY:
        own = OF.hosts.ready(bonus)
        steps = f", {solved_steps(own).mean() / 1000:.0f} k" if hosts_solved(own) else ""
        rows.append(f"| `{ready_name(bonus)}` | {hosts_solved(own)} of {len(own)}{steps} |")
    return [*rows, f"solved {of_ready(False)} runs, the five episodic ones {of_ready(True)}"]


def in_sb3() -> str:
    """Say when EpisodicCount's runs in Stable-Baselines3 solve DoorKey-8x8, and how many do."""
    runs = {method: OF.hosts.cell("DoorKey-8x8", "episodic-count", method) for method in ("grm-30", "im", "none")}
    ours, raw = (
        f"{mean_estimate(solved_steps(runs[m]) / 1e3).format('.0f')} thousand steps ({hosts_solved(runs[m])} of 3 seeds"
        for m in ("grm-30", "im")
    )
    raw = raw.replace(" steps", "").replace(" seeds", "")
    assert {len(own) for own in runs.values()} == {3}
    return (
        f"GRM solves it after {ours}, untuned), a raw bonus with the best of three α after {raw}), "
        f"no bonus in {hosts_solved(runs['none'])} of 3"
    )
