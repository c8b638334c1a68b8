"""What the paper states about DoorKey (`minigrid`) as a whole and of PBIM; all of its sentences decided."""

from payback_lab.claims.evidence import cells
from payback_lab.claims.rules import both, if_all_reach, lower_tested, opposite, outperforms
from payback_lab.claims.sentence import Claims, MeasuringRule, Sentence
from payback_lab.experiments.doorkey.grm_claims import GRM_SENTENCES, NORMALISED, about_sixty, no_im_fails
from payback_lab.experiments.doorkey.matching_claims import MATCHING_SENTENCES, QUESTION
from payback_lab.experiments.doorkey.measures import (
    CONVERGED,
    FULL,
    LENGTH,
    PAPER_T,
    POLICY,
    RULE,
    SAMPLED,
    SETTLED,
    SPEED,
    TESTED,
    settings_of,
)
from payback_lab.experiments.doorkey.printed import HARD, HIGH, LOW, SETTINGS, lengths, times, title
from payback_lab.experiments.doorkey.procrastination import altered_more_often, gains_more_length, gains_more_speed
from payback_lab.experiments.doorkey.rules import all_but_one, converges, fails
from payback_lab.methods import MATCHED

BASELINES = ("im", "none")


def outperform_im(setting: str) -> Sentence:
    """Ask whether the normalised methods end in a better policy than IM at one setting."""
    return Sentence(
        "table_minigrid",
        f"PBIM and GRM outperform IM at {title(setting)} in converging to an extrinsically better policy.",
        cells([setting], ("im", *NORMALISED)),
        outperforms([setting], NORMALISED, ("im",), LENGTH, SAMPLED),
        f"Decided for the normalised methods: without it PBIM does not converge in the paper's own table. {POLICY} "
        f"{TESTED}",
        paper=lengths([setting], ("im", *NORMALISED)),
    )


def pbim_improves(setting: str) -> Sentence:
    """Ask whether PBIM beats both baselines in speed and policy at one setting."""
    return Sentence(
        "minigrid, PBIM",
        f"PBIM improves both convergence time and efficiency over both baselines at {title(setting)}.",
        cells([setting], ("pbim", *BASELINES)),
        outperforms([setting], ("pbim",), BASELINES, SETTLED, LENGTH),
        f"{SPEED} Efficiency: a lower N̄. {TESTED}",
        paper=f"{times([setting], ('pbim', *BASELINES))}; {lengths([setting], ('pbim', *BASELINES))}",
    )


def normalisation_is_key(setting: str) -> Sentence:
    """Ask whether PBIM converges at one setting with the mean subtracted and does not without."""
    return Sentence(
        "minigrid, PBIM",
        f"Normalisation is key to PBIM's convergence at {title(setting)}: without it PBIM does not converge.",
        cells([setting], ("pbim", "pbim-raw")),
        both(converges((setting, "pbim")), fails((setting, "pbim-raw"))),
        CONVERGED,
        paper=times([setting], ("pbim", "pbim-raw")),
    )


PBIM_AT_LOW = (
    Sentence(
        "minigrid, PBIM",
        f"At {title(LOW)} PBIM does not improve convergence time over IM.",
        cells([LOW], ("pbim", "im")),
        opposite(lower_tested(SETTLED, [(LOW, "pbim")], [(LOW, "im")])),
        f"Does not hold if PBIM is faster. {SPEED} {TESTED}",
        paper=times([LOW], ("pbim", "im")),
    ),
    Sentence(
        "minigrid, PBIM",
        f"At {title(LOW)} PBIM with and without normalisation converges more quickly than no IM.",
        cells([LOW], ("pbim", "pbim-raw", "none")),
        outperforms([LOW], ("pbim", "pbim-raw"), ("none",), SETTLED),
        f"{SPEED} {TESTED}",
        paper=times([LOW], ("pbim", "pbim-raw", "none")),
    ),
)
SENTENCES = (
    Sentence(
        "procrastination_condition",
        "The higher α and γ, the oftener the bonus alters the optimal policy.",
        (),
        altered_more_often,
        "By arithmetic: after how many visits n to its tile standing still pays more than going on. It counts waiting "
        "only, not walking about.",
    ),
    *(outperform_im(setting) for setting in SETTINGS),
    Sentence(
        "fig:025-full",
        f"At {title(HIGH)} all but one of our methods converge faster than IM.",
        cells([HIGH], ("im", *MATCHED)),
        all_but_one(HIGH, MATCHED, "im"),
        f"Holds if at least five of the six are faster, does not if two are not. {SPEED} {TESTED}",
        paper=times([HIGH], ("im", *MATCHED)),
    ),
    Sentence(
        "frame_results",
        "By how much our methods converge faster than IM grows with how often the optimum is altered.",
        cells(HARD, ("im", *MATCHED)),
        MeasuringRule(gains_more_speed, (SETTLED,)),
        f"The factor IM / method in settled steps, its geometric mean over those of the six that settle in every seed, "
        f"at α = 0.025 against α = 0.02. If IM does not settle, its factor is a lower bound, which may leave this "
        f"open. {SPEED} {RULE}",
        paper=times(HARD, ("im", *MATCHED)),
    ),
    Sentence(
        "frame_results",
        "By how much our methods end better than IM grows with how often the optimum is altered.",
        cells(HARD, ("im", *MATCHED)),
        MeasuringRule(gains_more_length, (LENGTH,)),
        f"N̄ of IM − N̄ of the method, on average over those of the six that settle in every seed, at α = 0.025 against "
        f"α = 0.02. {RULE}",
        paper=lengths(HARD, ("im", *MATCHED)),
    ),
    Sentence(
        "minigrid",
        "At γ = 0.995 all normalised methods outperform both baselines in speed and final policy.",
        cells(HARD, (*BASELINES, *NORMALISED)),
        outperforms(HARD, NORMALISED, BASELINES, SETTLED, LENGTH),
        f"{SPEED} Final policy: a lower N̄. {TESTED}",
        paper=f"{times(HARD, (*BASELINES, *NORMALISED))}; {lengths(HARD, (*BASELINES, *NORMALISED))}",
    ),
    Sentence(
        "minigrid",
        f"At {title(LOW)} not all normalised methods outperform both baselines in speed and final policy.",
        cells([LOW], (*BASELINES, *NORMALISED)),
        opposite(outperforms([LOW], NORMALISED, BASELINES, SETTLED, LENGTH)),
        f"Holds if one of the comparisons is contradicted. {SPEED} Final policy: a lower N̄. {TESTED}",
        paper=f"{times([LOW], (*BASELINES, *NORMALISED))}; {lengths([LOW], (*BASELINES, *NORMALISED))}",
    ),
    Sentence(
        "table_minigrid",
        f"At {title(LOW)} the best method, GRM D = 10 without normalisation, still outperforms IM.",
        cells([LOW], ("grm-10-raw", "im")),
        outperforms([LOW], ("grm-10-raw",), ("im",), SETTLED),
        f"Decided by speed: the paper's own N̄ is 37.4 against 37.3. {SPEED} {TESTED}",
        paper=times([LOW], ("grm-10-raw", "im")),
    ),
    Sentence(
        "minigrid, footnote",
        f"At {title(LOW)} GRM D = 10 learns to reach the goal before IM does, though its T is later.",
        cells([LOW], ("grm-10", "im")),
        both(
            lower_tested(SETTLED, [(LOW, "grm-10")], [(LOW, "im")]),
            if_all_reach(
                PAPER_T, cells([LOW], ("im", "grm-10")), lower_tested(PAPER_T, [(LOW, "im")], [(LOW, "grm-10")])
            ),
        ),
        f"Reaches the goal: settles. T: the first point below the run's own N̄; a run has none if one episode of its "
        f"last 1,000 points is truncated, and with such a run T decides nothing. {SPEED} {TESTED}",
        paper=times([LOW], ("grm-10", "im")),
    ),
    Sentence(
        "table_minigrid",
        f"At {title(LOW)} all but one of the normalised methods converge more quickly than no IM.",
        cells([LOW], ("none", *NORMALISED)),
        all_but_one(LOW, NORMALISED, "none"),
        f"Holds if at least two of the three are faster, does not if two are not. Of all six methods the paper's table "
        f"has two that are slower. {SPEED} {TESTED}",
        paper=times([LOW], ("none", *MATCHED)),
    ),
    *(pbim_improves(setting) for setting in HARD),
    *(normalisation_is_key(setting) for setting in HARD),
    *PBIM_AT_LOW,
    *GRM_SENTENCES,
)
CLAIMS = Claims(
    experiment="doorkey",
    full=FULL,
    sentences=SENTENCES,
    ablated={
        "plain-settlement": (
            *(ask(setting) for setting in HARD for ask in (pbim_improves, normalisation_is_key)),
            *PBIM_AT_LOW,
        ),
        "learner-discount-0.99": tuple(about_sixty(setting) for setting in HARD),
        "entropy-0.001": tuple(ask(setting) for setting in HARD for ask in (no_im_fails, about_sixty)),
    },
    # Without a loan there is no settlement to change.
    untouched={"plain-settlement": ("none", "im")},
    questions={QUESTION: MATCHING_SENTENCES},
    title=title,
    settings_of=settings_of,
)
