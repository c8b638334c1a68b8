"""What docs/predictions.md predicts of the arena, as claims; the runs choose the cells that they need.

The claims are about each method's own α and about four tasks, which earlier runs choose.
"""

from collections.abc import Mapping

from payback_lab.claims.decide import Claim, Claims
from payback_lab.claims.evidence import Cell
from payback_lab.claims.rules import Rule, all_of, lower, not_established
from payback_lab.experiments.arena.chosen import ALPHA, FIRST, cell_of, chosen_alpha, chosen_tasks
from payback_lab.experiments.arena.config import ArenaConfig
from payback_lab.experiments.arena.finished import finished_runs
from payback_lab.experiments.arena.rules import (
    OVER,
    SCORE,
    SHARE,
    STEPS,
    found,
    if_found,
    lies_between,
    long_episodes_fail,
    more_than,
    not_significantly_different,
    smaller_delay_helps,
    solved,
)
from payback_lab.experiments.arena.setting import parse_setting
from payback_lab.experiments.arena.study import DELAYS, OWN_LIMIT, SWEPT_LIMITS, WITHOUT_TV, limited
from payback_lab.methods import title
from payback_lab.runs import Result

DOORKEY, TV = FIRST
LONGEST = SWEPT_LIMITS[-1]
FAR = 10
"""How many times the fewest steps the raw bonus was predicted to exceed."""
OPEN = ("the third task", "the fourth task")
"""Stand for the tasks that the screening has not chosen yet."""
NOTE = "Predicted before the runs."
SOLVED = f"{NOTE} Solved: in the median seed at least 95 % of 1,000 episodes of the trained agent reach the goal."
BETTER = (
    f"{NOTE} Better: the interval of the probability of improvement in the score, over all tasks together, lies above "
    "one half. GRM is that with D = 30."
)
NEAR = f"{NOTE} By the mean length over the fewest steps, an episode that is not solved counting with the limit."

UNLESS = "Holds unless the interval tells the contrary."
FIRST_SEEDS = "By seeds 0 to 2, also where a cell has more."
IF_FOUND = "Open where the goal is found neither with the TV nor without it."


class _Cells:
    """Name cells by task and method; the α is the method's own, 0.02 while it has not been chosen."""

    def __init__(self, results: Mapping[str, Result]) -> None:
        finished = finished_runs({**result.summary, "id": name} for name, result in results.items())
        self._finished = finished
        self.tasks = chosen_tasks(finished) or (*FIRST, *OPEN)

    def alpha(self, method: str) -> float:
        return chosen_alpha(self._finished, method) or ALPHA

    def at(self, task: str, method: str) -> Cell:
        return (task if task in OPEN else cell_of(task, self.alpha(method))), method

    def everywhere(self, method: str) -> tuple[Cell, ...]:
        return tuple(self.at(task, method) for task in self.tasks)

    def delays(self, limit: int) -> dict[int, Cell]:
        return {int(d.removeprefix("grm-")): (limited(self.alpha(d), limit), d) for d in DELAYS}


def arena_claims(results: Mapping[str, Result]) -> Claims:
    """Return the claims, about the cells that the results so far choose."""
    cells = _Cells(results)
    stated = (*_on_doorkey(cells), *_between(cells), *_late(cells), *_noisy(cells), *_long(cells))
    return Claims(
        experiment="arena",
        full=ArenaConfig().total_steps,
        stated=stated,
        title=setting_title,
    )


def setting_title(setting: str) -> str:
    """Write a setting in words, without α.

    >>> setting_title("DoorKey-11x11_a0.02_g0.995_t303"), setting_title("DoorKey-11x11_a0.02_g0.995_rnd")
    ('DoorKey-11x11, limit 303', 'DoorKey-11x11, RND')
    """
    if setting in OPEN:
        return setting
    parsed = parse_setting(setting)
    limit = f"limit {parsed.max_steps}" if parsed.max_steps else ""
    return ", ".join(filter(None, (parsed.task, limit, "RND" if parsed.bonus == "rnd" else "")))


def _on_doorkey(cells: _Cells) -> list[Claim]:
    rivals = [cells.at(DOORKEY, method) for method in ("grm-30", "pies", "phased")]
    raw, none, pbim = (cells.at(DOORKEY, method) for method in ("im", "none", "pbim"))
    found_note = (
        f"{NEAR} Found: in the median seed at least half of the episodes reach the goal. Predicted from trials with "
        f"α = {ALPHA:g}, judged with the raw bonus's own α."
    )
    return [
        _asked(
            f"Training without a bonus does not solve {DOORKEY}.",
            (none,),
            solved(SHARE, none, expected=False),
            SOLVED,
        ),
        _asked(
            f"The raw bonus finds the goal of {DOORKEY} but ends more than {FAR} times the fewest steps from it.",
            (raw,),
            all_of(found(SHARE, raw), more_than(OVER, raw, FAR)),
            found_note,
        ),
        *(
            _asked(
                f"{_first_letter(title(cell[1]))} solves {DOORKEY}.",
                (cell,),
                solved(SHARE, cell, expected=True),
                SOLVED,
            )
            for cell in rivals
        ),
        _asked(
            f"No interval tells GRM D = 30, PIES and phased-in repayment apart on {DOORKEY}.",
            tuple(rivals),
            not_significantly_different(SCORE, rivals),
            f"{NOTE} By the probability of improvement in the score.",
        ),
        _asked(f"PBIM does not solve {DOORKEY}.", (pbim,), solved(SHARE, pbim, expected=False), SOLVED),
    ]


def _between(cells: _Cells) -> list[Claim]:
    raw, grm = cells.everywhere("im"), cells.everywhere("grm-30")
    return [
        _asked(
            f"{title(method)} lies between the raw bonus and GRM.",
            (*raw, *own, *grm),
            lies_between(SCORE, raw, own, grm),
            BETTER,
        )
        for method in ("eipo", "hepo")
        for own in [cells.everywhere(method)]
    ]


def _late(cells: _Cells) -> list[Claim]:
    adops, grm = cells.at(DOORKEY, "adops"), cells.at(DOORKEY, "grm-30")
    later = f"{NOTE} Solved from the step on from which, to the end, 90 % of the last 100 episodes are."
    return [
        _asked(f"ADOPS solves {DOORKEY} later than GRM.", (adops, grm), lower(STEPS, [grm], [adops]), later),
        _asked(
            f"ADOPS ends no farther from the fewest steps of {DOORKEY} than GRM.",
            (adops, grm),
            not_established(lower(OVER, [grm], [adops])),
            f"{NEAR} {UNLESS}",
        ),
    ]


def _noisy(cells: _Cells) -> list[Claim]:
    found = []
    for method, words, turn in (
        ("im", "The raw bonus ends farther", False),
        ("grm-30", "GRM D = 30 does not end farther", True),
    ):
        noisy, plain = cells.at(TV, method), cells.at(WITHOUT_TV, method)
        farther = lower(OVER, [plain], [noisy])
        statement = f"{words} from the fewest steps with the noisy TV than without it."
        judged = if_found(SHARE, (noisy, plain), not_established(farther) if turn else farther)
        note = " ".join((NEAR, *([UNLESS] if turn else []), IF_FOUND))
        found.append(_asked(statement, (noisy, plain), judged, note))
    return found


def _long(cells: _Cells) -> list[Claim]:
    own, longest = cells.delays(OWN_LIMIT), cells.delays(LONGEST)
    needs = (*own.values(), *longest.values())
    fails = long_episodes_fail(SHARE, tuple(own.values()), tuple(longest.values()), expected=False)
    return [
        _asked(
            f"GRM does not fail in long episodes, {LONGEST:,} steps on {DOORKEY}.",
            needs,
            fails,
            f"{SOLVED} GRM fails if no D of 1, 10, 30 and 100 is solved there while some D is at {OWN_LIMIT:,} steps. "
            f"{FIRST_SEEDS}",
        ),
        _asked(
            "No smaller D helps in long episodes.",
            needs,
            smaller_delay_helps(SCORE, own, longest, expected=False),
            f"{NOTE} A smaller D helps if the best mean score at {LONGEST:,} steps belongs to a smaller D than at "
            f"{OWN_LIMIT:,}. {FIRST_SEEDS} D = 1 and D = 10 have another α than D = 30 and D = 100.",
        ),
    ]


def _first_letter(text: str) -> str:
    return text[0].upper() + text[1:]


def _asked(statement: str, needs: tuple[Cell, ...], rule: Rule, note: str) -> Claim:
    return Claim("ours", statement, needs, rule, note)
