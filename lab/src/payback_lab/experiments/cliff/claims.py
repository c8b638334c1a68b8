"""What the paper states about cliff walking (`sec:cw`), sentence by sentence, and how each is decided."""

from collections.abc import Mapping

import numpy as np

from payback_lab.claims.evidence import bonus_left, converged, early_length, figure
from payback_lab.claims.verdicts import Sentence, arrows, both, decided, every_seed, lower, times, within
from payback_lab.experiments.cliff.verdicts import (
    grid_facts,
    longer_is_better_in_training,
    matters_more_with_delay,
    rise_and_fall,
    suboptimal,
)
from payback_lab.learners.q_learning.config import QLearning
from payback_lab.methods import SCHEMES
from payback_lab.running.plan import Claim, Result

RAW = ("pbim-raw", "grm-1-raw", "grm-10-raw")
NORMALISED = ("pbim", "grm-1", "grm-10")
CURIOUS = SCHEMES[1:]
OPTIMAL = ("none", "grm-1", "grm-1-raw")
CONVERGED = (
    "Converged: the 100-episode mean return is at 90 % of no IM's final level; a seed that never is counts as the "
    "last episode."
)

ZERO = "F per step in the last tenth of training; effectively zero: below a tenth of what a move costs."

RATE = Sentence(
    "sec:cw",
    "The three normalised methods converge at a rate very similar to no IM's.",
    "",
    ("none", *NORMALISED),
    times(converged, NORMALISED, "none", at_most=2),
    f"Very similar: at most 2 times as late. {CONVERGED}",
)
SLOWEST = Sentence(
    "sec:cw",
    "Vanilla RND (im) is the slowest to converge.",
    "",
    SCHEMES,
    lower(converged, [s for s in SCHEMES if s != "im"], ["im"]),
    CONVERGED,
)
CONSISTENT = Sentence(
    "small_cliffwalker_test",
    "No IM and the two GRM with D = 1 consistently reach the optimum: return 88, length 13.",
    "88, 13",
    OPTIMAL,
    every_seed(OPTIMAL),
    "Consistently: in every seed.",
)
MAP = Sentence(
    "Q_values",
    "The most common actions are optimal for no IM, PBIM, both GRM D = 1 and normalised GRM D = 10, "
    "not for the others.",
    "13 moves",
    SCHEMES,
    arrows(("none", "pbim", "grm-1", "grm-1-raw", "grm-10"), ("im", "pbim-raw", "grm-10-raw")),
)
SENTENCES = (
    Sentence("fig:cw", "The shortest path takes 13 moves and returns 88.", "13, 88", (), grid_facts),
    Sentence(
        "sec:cw",
        "No IM is the fastest to converge.",
        "",
        SCHEMES,
        lower(converged, ["none"], CURIOUS),
        CONVERGED,
    ),
    Sentence(
        "sec:cw",
        "No IM converges in around 500 episodes.",
        "≈ 500",
        ("none",),
        within(converged, ["none"], 250, 1000),
        f"Around: within a factor of 2. {CONVERGED}",
    ),
    Sentence("sec:cw", "No IM reaches the optimal policy.", "", ("none",), every_seed(["none"]), "In every seed."),
    RATE,
    Sentence(
        "sec:cw",
        "The three normalised methods converge to the optimal policy.",
        "",
        NORMALISED,
        every_seed(NORMALISED),
        "In every seed, with ε = 0.",
    ),
    Sentence(
        "sec:cw",
        "IM and the methods without normalisation converge at a slower rate.",
        "",
        ("none", "im", *RAW, *NORMALISED),
        lower(converged, ["none", *NORMALISED], ["im", *RAW]),
        f"Slower than no IM and than each normalised method. {CONVERGED}",
    ),
    Sentence(
        "sec:cw",
        "IM and the methods without normalisation converge to a suboptimal policy.",
        "< 88",
        ("im", *RAW),
        suboptimal("im", *RAW),
        "Greedy return with ε = 0, below that of the shortest path on average. Elsewhere the paper calls GRM D = 1 "
        "without normalisation optimal.",
    ),
    SLOWEST,
    Sentence(
        "sec:cw",
        "Vanilla RND obtains returns like the others' at around 4,000 episodes.",
        "≈ 4,000",
        ("none", "im"),
        within(converged, ["im"], 2000, 8000),
        f"Around: within a factor of 2. {CONVERGED}",
    ),
    Sentence(
        "sec:cw",
        "PBIM and GRM without normalisation converge much faster than vanilla RND.",
        "",
        ("none", "im", *RAW),
        times(converged, RAW, "im", at_most=0.5),
        f"Much faster: in at most half the episodes. {CONVERGED}",
    ),
    Sentence(
        "sec:cw",
        "Of these, GRM with D = 1 is only slightly distracted and reaches optimality reasonably well.",
        "",
        ("none", *RAW),
        both(
            lower(converged, ["grm-1-raw"], ["pbim-raw", "grm-10-raw"]),
            within(figure("optimal"), ["grm-1-raw"], 0.5, 1),
        ),
        f"Decided as: it converges before the other two, and is optimal in at least half of the seeds. {CONVERGED}",
    ),
    Sentence(
        "sec:cw",
        "Normalisation is key, the more so the larger D.",
        "",
        ("none", *NORMALISED, *RAW),
        matters_more_with_delay,
        f"By which factor convergence is later without it; PBIM stands for the largest D. {CONVERGED}",
    ),
    Sentence(
        "sec:cw",
        "Episodes are short at first, grow longer, and become shorter again.",
        "",
        SCHEMES,
        rise_and_fall,
        "Mean length: first 20 episodes → longest 100 → last 100.",
    ),
    Sentence(
        "fig:lengthsmall",
        "The methods without normalisation explore for much longer.",
        "",
        (*NORMALISED, *RAW),
        both(*(lower(early_length, [s], [f"{s}-raw"]) for s in NORMALISED)),
        "Mean episode length over the first fifth of training, each beside its normalised form.",
    ),
    Sentence(
        "sec:cw",
        "Methods with a higher return in training have a higher final episode length.",
        "",
        SCHEMES,
        longer_is_better_in_training,
        "Over the eight schemes, last tenth of training.",
    ),
    CONSISTENT,
    Sentence(
        "small_cliffwalker_test",
        "The other methods take longer and so obtain less.",
        "< 88",
        ("im", "pbim", "pbim-raw", "grm-10", "grm-10-raw"),
        suboptimal("im", "pbim", "pbim-raw", "grm-10", "grm-10-raw"),
        "Elsewhere the paper says that normalised PBIM and GRM D = 10 converge to the optimum.",
    ),
    Sentence(
        "small_cliffwalker_test",
        "Most notably GRM with D = 10 without normalisation.",
        "",
        SCHEMES,
        lower(figure("greedy_return"), ["grm-10-raw"], [s for s in SCHEMES if s != "grm-10-raw"]),
        "Decided as: its greedy return is below every other's.",
    ),
    MAP,
    Sentence(
        "sec:cw, footnote",
        "With the rate 1e-6 the RND reward does not become effectively zero.",
        "",
        CURIOUS,
        within(bonus_left, CURIOUS, 0.1, np.inf),
        f"{ZERO} At first it is about 25.",
    ),
)
VANISHES = Sentence(
    "sec:cw, footnote",
    "With a higher rate the RND reward becomes effectively zero.",
    "",
    CURIOUS,
    within(bonus_left, CURIOUS, 0, 0.1),
    ZERO,
)
ABLATED = {
    "cumulative-mean": (RATE, SLOWEST, CONSISTENT, MAP),
    "wide-rnd": (RATE, SLOWEST, CONSISTENT, MAP, VANISHES),
}
"""What is decided again under each ablation."""


def claims(results: Mapping[str, Result]) -> list[Claim]:
    """Decide every sentence, then some of them again under each ablation that was run."""
    return decided(results, "cliff", QLearning(), SENTENCES, ABLATED)
