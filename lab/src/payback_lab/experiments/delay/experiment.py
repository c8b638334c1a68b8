"""Which delay: how much of a bonus a learner with GAE(λ) feels, and how soon it learns DoorKey 11×11.

What is predicted, and by which figure it is judged, was written down before the runs: docs/predictions.md.
"""

from itertools import combinations

from payback_lab.claims.decide import Claim, Claims
from payback_lab.claims.evidence import Cell, cells
from payback_lab.claims.rules import Rule
from payback_lab.experiments.delay.felt import NAMES
from payback_lab.experiments.delay.ordering import (
    learns_between,
    learns_last,
    most_and_few_learn,
    never_learn,
    none_orders_across,
    orders_across,
    orders_better,
    orders_within,
)
from payback_lab.experiments.doorkey.sized import (
    ONE_SEED_FIRST,
    THREE_MILLION,
    PlannedCell,
    SizedDoorKey,
    parse_sized_setting,
)

LAMBDAS = (0.95, 0.8, 0.99, 1.0)
SCHEMES = ("none", "grm-3", "grm-10", "grm-30", "grm-100", "geometric-0.9")
LONG = ("grm-300", "grm-600")
"""Delays beyond what a λ of 0.95 can distinguish: what is left is their interest."""


def setting(lam: float) -> str:
    """Return the setting of a λ.

    >>> setting(0.8), setting(1.0)
    ('s11-a0.02-g0.995-l0.8', 's11-a0.02-g0.995-l1')
    """
    return f"s11-a0.02-g0.995-l{lam:g}"


TWO_MORE = {
    0.95: ("grm-10", "grm-30", "grm-100", "geometric-0.9"),
    0.8: ("grm-3", "grm-10", "grm-100", "geometric-0.9"),
    0.99: ("grm-30",),
}
"""By λ, the schemes that three seeds left undecided, which get five: the rule stands in docs/predictions.md."""


def _seeds(lam: float, scheme: str) -> int:
    return 5 if scheme in TWO_MORE.get(lam, ()) else 3


CELLS = (
    *(PlannedCell(setting(lam), scheme, _seeds(lam, scheme)) for lam in LAMBDAS for scheme in SCHEMES),
    *(PlannedCell(setting(0.95), scheme) for scheme in LONG),
)


ALL: tuple[Cell, ...] = tuple((cell.setting, cell.scheme) for cell in CELLS)
LOW, MIDDLE, HIGH, ONE = (setting(lam) for lam in (0.8, 0.95, 0.99, 1.0))
DELAYS = ("grm-3", "grm-10", "grm-30", "grm-100")
GEOMETRIC = "geometric-0.9"
OUTCOME = (
    "Outcome of a cell: the median over seeds of the step from which on the mean length of 100 updates stays below "
    "189; never is later than every number."
)
NOTE = f"Predicted before the runs. {OUTCOME}"


def asked(statement: str, needs: tuple[Cell, ...], rule: Rule, note: str = OUTCOME) -> Claim:
    """Make one claim of ours."""
    return Claim("ours", statement, needs, rule, note)


ORDERINGS = (
    *(
        asked(
            f"{NAMES[name]} orders the cells within each λ.",
            ALL,
            orders_within(name, ALL),
            f"Orders: a rank correlation of at least .9 at each λ at which two or more cells learn. {OUTCOME}",
        )
        for name in NAMES
    ),
    *(
        asked(
            f"{NAMES[name]} orders the cells across λ.",
            ALL,
            orders_across(name, ALL),
            "Orders: a rank correlation over all 26 cells of at least .9, and of at least .8 at the lower end of its "
            f"95 % bootstrap interval. {OUTCOME}",
        )
        for name in NAMES
    ),
    asked("Nothing tried here predicts across λ.", ALL, none_orders_across(ALL)),
    *(
        asked(
            f"{NAMES[one]} orders the cells better than {NAMES[other]}.",
            ALL,
            orders_better(one, other, ALL),
            f"By the 95 % bootstrap interval of the difference of the two correlations over all cells. {OUTCOME}",
        )
        for other, one in combinations(NAMES, 2)
    ),
)
CELL_BY_CELL = (
    asked(
        "At λ = 0.95 the geometric matching learns between D = 30 and D = 10, as η/σ and R say.",
        cells([MIDDLE], (GEOMETRIC, "grm-10", "grm-30")),
        learns_between((MIDDLE, GEOMETRIC), (MIDDLE, "grm-30"), [(MIDDLE, "grm-10")]),
        NOTE,
    ),
    asked(
        "At λ = 0.95 the geometric matching learns between D = 10 and D = 3, as η says.",
        cells([MIDDLE], (GEOMETRIC, "grm-3", "grm-10")),
        learns_between((MIDDLE, GEOMETRIC), (MIDDLE, "grm-10"), [(MIDDLE, "grm-3")]),
        f"The rival of the sentence before. {OUTCOME}",
    ),
    asked(
        "At λ = 0.8 the geometric matching learns before every delay, as η/σ and R say.",
        cells([LOW], (GEOMETRIC, *DELAYS)),
        learns_between((LOW, GEOMETRIC), None, cells([LOW], DELAYS)),
        NOTE,
    ),
    asked(
        "At λ = 0.8 the geometric matching learns between D = 10 and D = 3, as η says.",
        cells([LOW], (GEOMETRIC, "grm-3", "grm-10")),
        learns_between((LOW, GEOMETRIC), (LOW, "grm-10"), [(LOW, "grm-3")]),
        f"The rival of the sentence before. {OUTCOME}",
    ),
    asked(
        "At λ = 0.95 D = 300 and D = 600 learn later than D = 3 and every other matching.",
        cells([MIDDLE], (*LONG, *DELAYS, GEOMETRIC)),
        learns_last(cells([MIDDLE], LONG), cells([MIDDLE], (*DELAYS, GEOMETRIC))),
        f"{NOTE} Two cells that never learn leave it open, because 3 million steps do not tell them apart.",
    ),
    asked(
        "At λ = 1 the delays do not differ as η_T says.",
        cells([ONE], ("grm-100", "grm-10")),
        most_and_few_learn((ONE, "grm-100"), (ONE, "grm-10"), expected=False),
        f"{NOTE} They differ so if D = 100 learns in at least two thirds of its seeds and D = 10 in at most a third.",
    ),
    asked(
        "At λ = 0.99 no cell learns within 3 million steps, except perhaps D = 100.",
        cells([HIGH], ("none", "grm-3", "grm-10", "grm-30", GEOMETRIC)),
        never_learn(cells([HIGH], ("none", "grm-3", "grm-10", "grm-30", GEOMETRIC))),
        NOTE,
    ),
)
CLAIMS = Claims(
    experiment="delay",
    full=THREE_MILLION,
    stated=(*CELL_BY_CELL, *ORDERINGS),
    title=lambda name: f"λ = {parse_sized_setting(name)[3]:g}",
)


EXPERIMENT = SizedDoorKey(
    name="delay",
    title="DoorKey 11×11: which delay",
    cells=CELLS,
    notes=(
        "Not in the paper. What was predicted stands in docs/predictions.md, committed before the runs.",
        ONE_SEED_FIRST,
    ),
    claimed=CLAIMS,
)
