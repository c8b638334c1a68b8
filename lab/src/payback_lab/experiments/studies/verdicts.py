"""What docs/predictions.md says of the studies before their runs, decided from the committed runs."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from payback_lab.claims.claim import Verdict
from payback_lab.experiments.arena.config import ADV, ADVANTAGE_SIDE, TWO
from payback_lab.experiments.arena.finished import SEEDS, Figures, Finished, seeds_of
from payback_lab.experiments.arena.measures import scores, shares
from payback_lab.experiments.studies import depth, learned, safe_range
from payback_lab.experiments.studies.analysis import Reached, SafeRange, reached, safe_ranges
from payback_lab.experiments.studies.study import Cell, setting_of
from payback_lab.over_tasks import Estimate, probability_of_improvement

BACK = tuple(method for method in ADVANTAGE_SIDE if method.endswith("-back"))
FEW = 0.1
""" "Few runs collapse": at most this share of them."""


Comparison = Literal["better", "not better", "alike"]
"""The interval of the probability of improvement lies above one half, does not, or holds it."""


class Judged(NamedTuple):
    """Hold one prediction and how it came out."""

    text: str
    verdict: Verdict
    measured: str


def of_safe_range(finished: Finished) -> list[Judged]:
    """Judge the predictions of "The safe range"."""
    methods = safe_range.METHODS
    rows = {row.method: row for row in safe_ranges(finished)}
    by_task = {t: {row.method: row for row in safe_ranges(finished, tasks=(t,))} for t in safe_range.TASKS}
    # A score is safe beside the best of all methods, so that every sentence needs all of them.
    enough = all(m in rows and min(full(rows[m]).values()) >= SEEDS for m in methods)

    def safe(method: str, task: str | None = None) -> set[float]:
        own = (rows if task is None else by_task[task]).get(method)
        return set(own.safe) if own else set()

    doorkey, corridor = safe_range.TASKS
    judged = [
        ("The raw bonus is safe at 0.00125 and 0.005 at most.", safe("im") <= {0.00125, 0.005}, _said(safe("im"))),
        (
            "GRM-30 is safe at 0.02 on DoorKey and not on KeyCorridor.",
            0.02 in safe("grm-30", doorkey) and 0.02 not in safe("grm-30", corridor),
            f"DoorKey {_said(safe('grm-30', doorkey))}; KeyCorridor {_said(safe('grm-30', corridor))}",
        ),
        (
            "GRM-10 is safe at 0.08 on KeyCorridor only.",
            0.08 in safe("grm-10", corridor) - safe("grm-10", doorkey),
            f"DoorKey {_said(safe('grm-10', doorkey))}; KeyCorridor {_said(safe('grm-10', corridor))}",
        ),
        (
            "Neither GRM-10 nor GRM-30 is free of tuning.",
            all(m in rows and rows[m].needs_tuning != "no" for m in depth.GRM),
            "; ".join(f"{m}: {len(safe(m))} of 5 safe" for m in depth.GRM),
        ),
        (
            "grm-adv and two critics are safe at 0.02 and 0.08 at least.",
            all({0.02, 0.08} <= safe(m) for m in (ADV, TWO)),
            "; ".join(f"{m}: {_said(safe(m))}" for m in (ADV, TWO)),
        ),
        (
            "Taken back, both are safe wherever they are without it.",
            all(safe(m) <= safe(f"{m}-back") for m in (ADV, TWO)),
            "; ".join(f"{m}: {_said(safe(m))}" for m in BACK),
        ),
        ("Taken back, both are safe at 0.32 too.", all(0.32 in safe(m) for m in BACK), ""),
    ]
    return [*_decided(judged, enough), *_of_back(rows, finished), *_of_centred(finished)]


def _of_back(rows: dict[str, SafeRange], finished: Finished) -> list[Judged]:
    own = [rows[m] for m in BACK if m in rows]
    enough = len(own) == len(BACK) and all(min(full(row).values()) >= SEEDS for row in own)
    collapsed, runs = sum(row.collapsed for row in own), sum(row.runs for row in own)
    text = "grm-adv and two critics do not differ significantly where both are taken back."
    few = ("Few runs that are taken back collapse.", collapsed <= FEW * runs, f"{collapsed} of {runs} runs")
    return [*_decided([few], enough), _compared(finished, text, enough, "alike", "grm-adv", *BACK)]


def _of_centred(finished: Finished) -> list[Judged]:
    """Judge what was predicted of centring alone."""
    methods = (*safe_range.METHODS, *safe_range.CENTRED)
    rows = {row.method: row for row in safe_ranges(finished, methods)}
    enough = all(m in rows and min(full(rows[m]).values()) >= SEEDS for m in methods)
    raw, two, back = safe_range.CENTRED
    safe = [set(rows[m].safe) if m in rows else set() for m in (two, back)]
    both = ("Centred two critics, taken back or not, are safe at 0.02 and 0.08.", all({0.02, 0.08} <= a for a in safe))
    adv = "grm-adv is not better than centred two critics"
    grm = "GRM-30 is better than the centred raw bonus."
    return [
        *_decided([(*both, "; ".join(map(_said, safe)))], enough),
        _compared(finished, f"{adv}.", enough, "not better", "grm-adv", ADV, two),
        _compared(finished, f"{adv}, both taken back.", enough, "not better", "grm-adv", f"{ADV}-back", back),
        _compared(finished, grm, enough, "better", "GRM-30", "grm-30", raw),
    ]


def _compared(
    finished: Finished, text: str, enough: bool, expected: Comparison, name: str, own: str, rival: str
) -> Judged:
    """Judge how a method, called `name`, compares with its rival over both tasks and all α."""
    if not enough:
        return decided(text, False)
    cells = [(task, alpha) for task in safe_range.TASKS for alpha in safe_range.ALPHAS]
    found = [
        [scores(task, seeds_of(finished, setting_of(task, alpha), method)) for task, alpha in cells]
        for method in (own, rival)
    ]
    return compared(text, name, probability_of_improvement(*found), expected)


def full(row: SafeRange) -> dict[float, int]:
    """Return the smallest number of seeds at every α, 0 where there are none."""
    return {alpha: row.seeds.get(alpha, 0) for alpha in safe_range.ALPHAS}


Cells = dict[tuple[str, str, str], list[Figures]]
"""(task, bonus, method) → its runs."""


def depth_cells(cells: Iterable[Cell], finished: Finished) -> Cells:
    """Return the runs of every cell of `depth`, those of other lengths of a rollout left out."""
    named = {setting: (task, bonus) for task, bonus, _ in depth.TASKS for setting in _settings(cells, task, bonus)}
    return {
        (*named[cell.setting], cell.method): seeds_of(finished, cell.setting, cell.method)
        for cell in cells
        if cell.setting in named
    }


def _settings(cells: Iterable[Cell], task: str, bonus: str) -> set[str]:
    from payback_lab.experiments.arena.setting import parse_setting

    parsed = {cell.setting: parse_setting(cell.setting) for cell in cells}
    return {name for name, s in parsed.items() if (s.task, s.bonus, s.rollout) == (task, bonus, None)}


def of_depth(cells: Sequence[Cell], finished: Finished) -> list[Judged]:
    """Judge the predictions of "Depth"."""
    runs = depth_cells(cells, finished)
    grm = next((cell.method for cell in cells if cell.method in depth.GRM), depth.GRM[-1])

    def got(task: str, method: str, bonus: str = "views") -> Reached | None:
        own = runs.get((task, bonus, method), [])
        return reached(own) if len(own) >= SEEDS else None

    def solved(
        text: str, tasks: Sequence[str], methods: Sequence[str], right: Callable, bonus: str = "views"
    ) -> Judged:
        there = {(t, m): got(t, m, bonus) for t in tasks for m in methods}
        known = {key: one for key, one in there.items() if one is not None}
        many = sum(one.solved for one in known.values())
        measured = f"{many} of {len(known)} solved" if known else ""
        verdict = ("holds" if right(many, len(known)) else "does not hold") if len(known) == len(there) else "undecided"
        return Judged(text, verdict, measured)

    every, none, some = (lambda n, of: n == of), (lambda n, of: n == 0), (lambda n, of: n > 0)
    deepest = ("KeyCorridorS6R3", "MultiRoom-N12-S10", "ObstructedMaze-2Dlh")
    large = "DoorKey-16x16"
    return [
        solved(f"Two critics and grm-adv solve {large} with counts.", (large,), ADVANTAGE_SIDE, every, "counts"),
        solved(f"The raw bonus and GRM do not solve {large} with counts.", (large,), ("im", grm), none, "counts"),
        solved(
            "All advantage-side forms solve KeyCorridorS4R3 and MultiRoom-N6.",
            ("KeyCorridorS4R3", "MultiRoom-N6"),
            ADVANTAGE_SIDE,
            every,
        ),
        solved("One of them at least solves KeyCorridorS5R3.", ("KeyCorridorS5R3",), ADVANTAGE_SIDE, some),
        solved(
            "None of them solves KeyCorridorS6R3, MultiRoom-N12-S10 or ObstructedMaze-2Dlh.",
            deepest,
            ADVANTAGE_SIDE,
            none,
        ),
        _taking_back_loses(got),
        _longer_rollout(runs, cells, finished),
        solved(f"The centred raw bonus solves {large} with counts.", (large,), ("im-centred",), every, "counts"),
    ]


def _taking_back_loses(got: Callable[..., Reached | None]) -> Judged:
    found = {(t, b, m): got(t, m, b) for t, b, _ in depth.TASKS for m in BACK}
    known = {key: one for key, one in found.items() if one is not None}
    lost = [
        f"{task} ({bonus}), {method}" for (task, bonus, method), one in known.items() if one.found and not one.solved
    ]
    complete = len(known) == len(found)
    verdict: Verdict = "holds" if lost else "does not hold" if complete else "undecided"
    return Judged("Taking back loses at least one cell that is found.", verdict, "; ".join(lost))


def _longer_rollout(runs: Cells, cells: Sequence[Cell], finished: Finished) -> Judged:
    """Decide whether 128 steps have the higher final share, by the probability of improvement over both methods."""
    task, bonus, _ = depth.ROLLOUT_TASK
    longer = [
        c
        for m in depth.ROLLOUT_METHODS
        for c in cells
        if c.method == m and f"{task}_" in c.setting and "_n256" in c.setting
    ]
    ones = [runs.get((task, bonus, cell.method), []) for cell in longer]
    others = [seeds_of(finished, cell.setting, cell.method) for cell in longer]
    text = "A rollout of 256 steps is not worse than 128."
    if not longer or any(len(own) < SEEDS for own in (*ones, *others)):
        return Judged(text, "undecided", "")
    chance = probability_of_improvement(list(map(shares, ones)), list(map(shares, others)))
    return Judged(text, "does not hold" if chance.low > 0.5 else "holds", f"128 beats 256 with {chance.format('.2f')}")


def of_learned(finished: Finished, chosen: learned.Choices) -> list[Judged]:
    """Judge the predictions of "Learned bonuses"."""

    def runs(task: str, bonus: str, method: str) -> list[Figures]:
        alpha = chosen.alphas.get((bonus, method))
        return [] if alpha is None else seeds_of(finished, setting_of(task, alpha, bonus), method)

    def solved(bonus: str, method: str) -> list[str] | None:
        """Return the tasks that are solved; None while seeds are missing."""
        own = {task: runs(task, bonus, method) for task in learned.TASKS}
        if any(len(seeds) < SEEDS for seeds in own.values()):
            return None
        return [task for task, seeds in own.items() if (one := reached(seeds)) and one.solved]

    alone, views = solved("rnd", "grm-30"), solved("rnd-views", "grm-30")
    means = {
        bonus: float(np.mean([shares(runs(task, bonus, "grm-30")).mean() for task in learned.TASKS]))
        for bonus in ("noveld", "e3b", "icm", "rnd")
        if solved(bonus, "grm-30") is not None
    }
    raw = {bonus: solved(bonus, "im") for bonus in learned.BONUSES}
    pairs = {bonus: (solved(bonus, chosen.form or ""), solved(bonus, "grm-30")) for bonus in learned.BONUSES}
    noisy = learned.TASKS[-1]
    return [
        decided("With RND alone GRM-30 solves nothing.", alone is not None, not alone, _tasks(alone)),
        decided(
            "With `rnd-views` GRM-30 solves DoorKey-11x11.",
            views is not None,
            "DoorKey-11x11" in (views or ()),
            _tasks(views),
        ),
        decided(
            "NovelD and E3B suit GRM-30 better than ICM and RND, by the mean share solved over the tasks.",
            len(means) == 4,
            len(means) == 4 and min(means["noveld"], means["e3b"]) > max(means["icm"], means["rnd"]),
            "; ".join(f"{bonus} {mean:.2f}" for bonus, mean in means.items()),
        ),
        decided(
            "No raw bonus solves the noisy TV.",
            None not in raw.values(),
            not any(noisy in (tasks or ()) for tasks in raw.values()),
            ", ".join(bonus for bonus, tasks in raw.items() if noisy in (tasks or ())) or "none does so far",
        ),
        decided(
            "The advantage-side form solves at least as many tasks as GRM-30 with every bonus.",
            all(None not in pair for pair in pairs.values()),
            all(len(own or ()) >= len(other or ()) for own, other in pairs.values()),
            "; ".join(
                f"{b} {len(own)} : {len(o)}" for b, (own, o) in pairs.items() if own is not None and o is not None
            ),
        ),
    ]


def _decided(judged: Iterable[tuple[str, bool, str]], enough: bool) -> list[Judged]:
    return [decided(text, enough, right, measured) for text, right, measured in judged]


def decided(text: str, enough: bool, right: bool = False, measured: str = "") -> Judged:
    """Judge one prediction; undecided while not all of its cells have three seeds."""
    return Judged(text, ("holds" if right else "does not hold") if enough else "undecided", measured if enough else "")


def compared(text: str, name: str, chance: Estimate, expected: Comparison) -> Judged:
    """Judge a sentence on how likely `name` scores higher than its rival."""
    better, worse = chance.low > 0.5, chance.high < 0.5
    right = {"better": better, "not better": not better, "alike": not (better or worse)}[expected]
    return decided(text, True, right, f"{name} scores higher with probability {chance.format('.2f')}")


def _said(alphas: Iterable[float]) -> str:
    return f"safe at {', '.join(f'{alpha:g}' for alpha in sorted(alphas)) or 'no α'}"


def _tasks(tasks: Sequence[str] | None) -> str:
    return "" if tasks is None else ", ".join(tasks) or "none"
