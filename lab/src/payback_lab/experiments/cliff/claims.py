"""What the paper states about cliff walking (`sec:cw`), claim by claim, and how each is decided."""

import numpy as np

from payback_lab.claims.decide import Claim, Claims
from payback_lab.claims.rules import all_of, between, lower, ratio_at_most
from payback_lab.experiments.cliff.measures import (
    AT_OPTIMUM,
    BONUS_LEFT,
    CONVERGED,
    EARLY_LENGTH,
    GREEDY_RETURN,
    MOVES,
    OPTIMAL,
    RETURN,
    arrows,
    cells_of,
    every_seed,
    longer_is_better_in_training,
    matters_more_with_delay,
    rise_and_fall,
    shortest_path_is,
    suboptimal,
    trained,
)
from payback_lab.learners.q_learning.config import QLearning
from payback_lab.methods import SCHEMES

ABLATIONS = {
    "cumulative-mean": {"mean_horizon": None},
    "wide-rnd": {"rnd_hidden": (64, 64), "rnd_rate": 1e-2},
}
"""Settings that were looked at and not chosen: F̄ over all of training, and a wider RND that learns faster."""


RAW = ("pbim-raw", "grm-1-raw", "grm-10-raw")
NORMALISED = ("pbim", "grm-1", "grm-10")
CURIOUS = SCHEMES[1:]
ALL = cells_of(*SCHEMES)
GRID = QLearning().cliff
WHEN_CONVERGED = (
    "Converged: the 100-episode mean return is at 90 % of no IM's final level; a seed that never is counts as the "
    "last episode."
)

ZERO = "F per step in the last tenth of training; effectively zero: below a tenth of what a move costs."

FASTEST = Claim(
    "sec:cw",
    "No IM is the fastest to converge.",
    ALL,
    lower(CONVERGED, cells_of("none"), cells_of(*CURIOUS)),
    WHEN_CONVERGED,
)
RATE = Claim(
    "sec:cw",
    "The three normalised methods converge at a rate very similar to no IM's.",
    cells_of("none", *NORMALISED),
    ratio_at_most(CONVERGED, cells_of(*NORMALISED), ("", "none"), at_most=2),
    f"Very similar: at most 2 times as late. {WHEN_CONVERGED}",
)
SLOWEST = Claim(
    "sec:cw",
    "Vanilla RND (im) is the slowest to converge.",
    ALL,
    lower(CONVERGED, cells_of(*(s for s in SCHEMES if s != "im")), cells_of("im")),
    WHEN_CONVERGED,
)
CONSISTENT = Claim(
    "small_cliffwalker_test",
    "No IM and the two GRM with D = 1 consistently reach the optimum: return 88, length 13.",
    cells_of(*AT_OPTIMUM),
    every_seed(*AT_OPTIMUM),
    "Consistently: in every seed.",
    paper="88, 13",
)
MAP = Claim(
    "Q_values",
    "The most common actions are optimal for no IM, PBIM, both GRM D = 1 and normalised GRM D = 10, "
    "not for the others.",
    ALL,
    arrows(GRID, ("none", "pbim", "grm-1", "grm-1-raw", "grm-10"), ("im", "pbim-raw", "grm-10-raw")),
    paper="13 moves",
)
STATED = (
    Claim(
        "fig:cw",
        f"The shortest path takes {MOVES} moves and returns {RETURN}.",
        (),
        shortest_path_is(GRID, MOVES, RETURN),
        paper=f"{MOVES}, {RETURN}",
    ),
    FASTEST,
    Claim(
        "sec:cw",
        "No IM converges in around 500 episodes.",
        cells_of("none"),
        between(CONVERGED, cells_of("none"), 250, 1000),
        f"Around: within a factor of 2. {WHEN_CONVERGED}",
        paper="≈ 500",
    ),
    Claim("sec:cw", "No IM reaches the optimal policy.", cells_of("none"), every_seed("none"), "In every seed."),
    RATE,
    Claim(
        "sec:cw",
        "The three normalised methods converge to the optimal policy.",
        cells_of(*NORMALISED),
        every_seed(*NORMALISED),
        "In every seed, with ε = 0.",
    ),
    Claim(
        "sec:cw",
        "IM and the methods without normalisation converge at a slower rate.",
        cells_of("none", "im", *RAW, *NORMALISED),
        lower(CONVERGED, cells_of("none", *NORMALISED), cells_of("im", *RAW)),
        f"Slower than no IM and than each normalised method. {WHEN_CONVERGED}",
    ),
    Claim(
        "sec:cw",
        "IM and the methods without normalisation converge to a suboptimal policy.",
        cells_of("im", *RAW),
        suboptimal(GRID, "im", *RAW),
        "Greedy return with ε = 0, below that of the shortest path on average. Elsewhere the paper calls GRM D = 1 "
        "without normalisation optimal.",
        paper="< 88",
    ),
    SLOWEST,
    Claim(
        "sec:cw",
        "Vanilla RND obtains returns like the others' at around 4,000 episodes.",
        cells_of("none", "im"),
        between(CONVERGED, cells_of("im"), 2000, 8000),
        f"Around: within a factor of 2. {WHEN_CONVERGED}",
        paper="≈ 4,000",
    ),
    Claim(
        "sec:cw",
        "PBIM and GRM without normalisation converge much faster than vanilla RND.",
        cells_of("none", "im", *RAW),
        ratio_at_most(CONVERGED, cells_of(*RAW), ("", "im"), at_most=0.5),
        f"Much faster: in at most half the episodes. {WHEN_CONVERGED}",
    ),
    Claim(
        "sec:cw",
        "Of these, GRM with D = 1 is only slightly distracted and reaches optimality reasonably well.",
        cells_of("none", *RAW),
        all_of(
            lower(CONVERGED, cells_of("grm-1-raw"), cells_of("pbim-raw", "grm-10-raw")),
            between(OPTIMAL, cells_of("grm-1-raw"), 0.5, 1),
        ),
        "Decided as: it converges before the other two, and is optimal in at least half of the seeds. "
        f"{WHEN_CONVERGED}",
    ),
    Claim(
        "sec:cw",
        "Normalisation is key, the more so the larger D.",
        cells_of("none", *NORMALISED, *RAW),
        matters_more_with_delay,
        f"By which factor convergence is later without it; PBIM stands for the largest D. {WHEN_CONVERGED}",
    ),
    Claim(
        "sec:cw",
        "Episodes are short at first, grow longer, and become shorter again.",
        ALL,
        rise_and_fall,
        "Mean length: first 20 episodes → longest 100 → last 100.",
    ),
    Claim(
        "fig:lengthsmall",
        "The methods without normalisation explore for much longer.",
        cells_of(*NORMALISED, *RAW),
        all_of(*(lower(EARLY_LENGTH, cells_of(s), cells_of(f"{s}-raw")) for s in NORMALISED)),
        "Mean episode length over the first fifth of training, each beside its normalised form.",
    ),
    Claim(
        "sec:cw",
        "Methods with a higher return in training have a higher final episode length.",
        ALL,
        longer_is_better_in_training,
        "Over the eight schemes, last tenth of training.",
    ),
    CONSISTENT,
    Claim(
        "small_cliffwalker_test",
        "The other methods take longer and so obtain less.",
        cells_of("im", "pbim", "pbim-raw", "grm-10", "grm-10-raw"),
        suboptimal(GRID, "im", "pbim", "pbim-raw", "grm-10", "grm-10-raw"),
        "Elsewhere the paper says that normalised PBIM and GRM D = 10 converge to the optimum.",
        paper="< 88",
    ),
    Claim(
        "small_cliffwalker_test",
        "Most notably GRM with D = 10 without normalisation.",
        ALL,
        lower(GREEDY_RETURN, cells_of("grm-10-raw"), cells_of(*(s for s in SCHEMES if s != "grm-10-raw"))),
        "Decided as: its greedy return is below every other's.",
    ),
    MAP,
    Claim(
        "sec:cw, footnote",
        "With the rate 1e-6 the RND reward does not become effectively zero.",
        cells_of(*CURIOUS),
        between(BONUS_LEFT, cells_of(*CURIOUS), 0.1, np.inf),
        f"{ZERO} At first it is about 25.",
    ),
)
VANISHES = Claim(
    "sec:cw, footnote",
    "With a higher rate the RND reward becomes effectively zero.",
    cells_of(*CURIOUS),
    between(BONUS_LEFT, cells_of(*CURIOUS), 0, 0.1),
    ZERO,
)
CLAIMS = Claims(
    experiment="cliff",
    full=QLearning().episodes,
    unit="episodes",
    trained=trained,
    stated=STATED,
    ablated={
        "cumulative-mean": (RATE, SLOWEST, CONSISTENT, MAP),
        "wide-rnd": (RATE, SLOWEST, CONSISTENT, MAP, VANISHES),
    },
    # No IM has nothing to ablate.
    untouched=dict.fromkeys(ABLATIONS, ("none",)),
    notes_say_seeds=False,
)
