"""The claims about DoorKey: the paper's as a whole and about PBIM, and ours about other matchings."""

from payback_lab.claims.decide import Claim, Claims
from payback_lab.claims.evidence import cells
from payback_lab.claims.rules import (
    MeasuringRule,
    all_of,
    lower_at_level,
    lower_tested,
    negated,
    outperforms,
    undecided_unless_reached,
)
from payback_lab.experiments.doorkey.grm_claims import GRM_CLAIMS, NORMALISED, about_sixty, no_im_fails
from payback_lab.experiments.doorkey.measures import (
    CONVERGED,
    FULL,
    HARD,
    HIGH,
    LENGTH,
    LOW,
    MIDDLE,
    PAPER_T,
    POLICY,
    RULE,
    SAMPLED,
    SETTINGS,
    SETTLED,
    SPEED,
    TESTED,
    lengths,
    settings_of,
    times,
    title,
)
from payback_lab.experiments.doorkey.rules import (
    all_but_one,
    altered_more_often,
    converges,
    fails,
    gains_more_length,
    gains_more_speed,
)
from payback_lab.methods import MATCHED, OTHERS, TITLES

QUESTION = "other-matchings"
TEN = "grm-10"
SURE = 0.05 / len(OTHERS)
"""Each of six matchings may look better by chance."""
MATCHING_RULE = (
    f"Holds at p < 0.05 / {len(OTHERS)}, since {len(OTHERS)} matchings are tried; does not hold if the 95 % bootstrap "
    "interval of the difference is on the other side. p: Welch's one-sided test over seeds, not over the 1,000 points "
    "of one run. P: probability of improvement, the share of pairs of seeds. The rule was written when one seed of "
    "each had been seen."
)


def ends_better(scheme: str) -> Claim:
    """Ask whether a matching ends in a better policy than GRM with D = 10."""
    return Claim(
        "ours",
        f"At {title(MIDDLE)} the matching “{TITLES[scheme]}” ends in a better policy than GRM D = 10.",
        cells([MIDDLE], (scheme, TEN)),
        all_of(*(lower_at_level(measure, (MIDDLE, scheme), (MIDDLE, TEN), SURE) for measure in (LENGTH, SAMPLED))),
        f"{POLICY} {MATCHING_RULE}",
    )


def learns_sooner(scheme: str) -> Claim:
    """Ask whether a matching learns sooner than GRM with D = 10."""
    return Claim(
        "ours",
        f"At {title(MIDDLE)} the matching “{TITLES[scheme]}” learns sooner than GRM D = 10.",
        cells([MIDDLE], (scheme, TEN)),
        lower_at_level(SETTLED, (MIDDLE, scheme), (MIDDLE, TEN), SURE),
        f"{SPEED} {MATCHING_RULE}",
    )


MATCHING_CLAIMS = tuple(ask(scheme) for ask in (ends_better, learns_sooner) for scheme in OTHERS)


BASELINES = ("im", "none")


def outperform_im(setting: str) -> Claim:
    """Ask whether the normalised methods end in a better policy than IM at one setting."""
    return Claim(
        "table_minigrid",
        f"PBIM and GRM outperform IM at {title(setting)} in converging to an extrinsically better policy.",
        cells([setting], ("im", *NORMALISED)),
        outperforms([setting], NORMALISED, ("im",), LENGTH, SAMPLED),
        f"Decided for the normalised methods: without it PBIM does not converge in the paper's own table. {POLICY} "
        f"{TESTED}",
        paper=lengths([setting], ("im", *NORMALISED)),
    )


def pbim_improves(setting: str) -> Claim:
    """Ask whether PBIM beats both baselines in speed and policy at one setting."""
    return Claim(
        "minigrid, PBIM",
        f"PBIM improves both convergence time and efficiency over both baselines at {title(setting)}.",
        cells([setting], ("pbim", *BASELINES)),
        outperforms([setting], ("pbim",), BASELINES, SETTLED, LENGTH),
        f"{SPEED} Efficiency: a lower N̄. {TESTED}",
        paper=f"{times([setting], ('pbim', *BASELINES))}; {lengths([setting], ('pbim', *BASELINES))}",
    )


def normalisation_is_key(setting: str) -> Claim:
    """Ask whether PBIM converges at one setting with the mean subtracted and does not without."""
    return Claim(
        "minigrid, PBIM",
        f"Normalisation is key to PBIM's convergence at {title(setting)}: without it PBIM does not converge.",
        cells([setting], ("pbim", "pbim-raw")),
        all_of(converges((setting, "pbim")), fails((setting, "pbim-raw"))),
        CONVERGED,
        paper=times([setting], ("pbim", "pbim-raw")),
    )


PBIM_AT_LOW = (
    Claim(
        "minigrid, PBIM",
        f"At {title(LOW)} PBIM does not improve convergence time over IM.",
        cells([LOW], ("pbim", "im")),
        negated(lower_tested(SETTLED, [(LOW, "pbim")], [(LOW, "im")])),
        f"Does not hold if PBIM is faster. {SPEED} {TESTED}",
        paper=times([LOW], ("pbim", "im")),
    ),
    Claim(
        "minigrid, PBIM",
        f"At {title(LOW)} PBIM with and without normalisation converges more quickly than no IM.",
        cells([LOW], ("pbim", "pbim-raw", "none")),
        outperforms([LOW], ("pbim", "pbim-raw"), ("none",), SETTLED),
        f"{SPEED} {TESTED}",
        paper=times([LOW], ("pbim", "pbim-raw", "none")),
    ),
)
STATED = (
    Claim(
        "procrastination_condition",
        "The higher α and γ, the oftener the bonus alters the optimal policy.",
        (),
        altered_more_often,
        "By arithmetic: after how many visits n to its tile standing still pays more than going on. It counts waiting "
        "only, not walking about.",
    ),
    *(outperform_im(setting) for setting in SETTINGS),
    Claim(
        "fig:025-full",
        f"At {title(HIGH)} all but one of our methods converge faster than IM.",
        cells([HIGH], ("im", *MATCHED)),
        all_but_one(HIGH, MATCHED, "im"),
        f"Holds if at least five of the six are faster, does not if two are not. {SPEED} {TESTED}",
        paper=times([HIGH], ("im", *MATCHED)),
    ),
    Claim(
        "frame_results",
        "By how much our methods converge faster than IM grows with how often the optimum is altered.",
        cells(HARD, ("im", *MATCHED)),
        MeasuringRule(gains_more_speed, (SETTLED,)),
        f"The factor IM / method in settled steps, its geometric mean over those of the six that settle in every seed, "
        f"at α = 0.025 against α = 0.02. If IM does not settle, its factor is a lower bound, which may leave this "
        f"open. {SPEED} {RULE}",
        paper=times(HARD, ("im", *MATCHED)),
    ),
    Claim(
        "frame_results",
        "By how much our methods end better than IM grows with how often the optimum is altered.",
        cells(HARD, ("im", *MATCHED)),
        MeasuringRule(gains_more_length, (LENGTH,)),
        f"N̄ of IM − N̄ of the method, on average over those of the six that settle in every seed, at α = 0.025 against "
        f"α = 0.02. {RULE}",
        paper=lengths(HARD, ("im", *MATCHED)),
    ),
    Claim(
        "minigrid",
        "At γ = 0.995 all normalised methods outperform both baselines in speed and final policy.",
        cells(HARD, (*BASELINES, *NORMALISED)),
        outperforms(HARD, NORMALISED, BASELINES, SETTLED, LENGTH),
        f"{SPEED} Final policy: a lower N̄. {TESTED}",
        paper=f"{times(HARD, (*BASELINES, *NORMALISED))}; {lengths(HARD, (*BASELINES, *NORMALISED))}",
    ),
    Claim(
        "minigrid",
        f"At {title(LOW)} not all normalised methods outperform both baselines in speed and final policy.",
        cells([LOW], (*BASELINES, *NORMALISED)),
        negated(outperforms([LOW], NORMALISED, BASELINES, SETTLED, LENGTH)),
        f"Holds if one of the comparisons is contradicted. {SPEED} Final policy: a lower N̄. {TESTED}",
        paper=f"{times([LOW], (*BASELINES, *NORMALISED))}; {lengths([LOW], (*BASELINES, *NORMALISED))}",
    ),
    Claim(
        "table_minigrid",
        f"At {title(LOW)} the best method, GRM D = 10 without normalisation, still outperforms IM.",
        cells([LOW], ("grm-10-raw", "im")),
        outperforms([LOW], ("grm-10-raw",), ("im",), SETTLED),
        f"Decided by speed: the paper's own N̄ is 37.4 against 37.3. {SPEED} {TESTED}",
        paper=times([LOW], ("grm-10-raw", "im")),
    ),
    Claim(
        "minigrid, footnote",
        f"At {title(LOW)} GRM D = 10 learns to reach the goal before IM does, though its T is later.",
        cells([LOW], ("grm-10", "im")),
        all_of(
            lower_tested(SETTLED, [(LOW, "grm-10")], [(LOW, "im")]),
            undecided_unless_reached(
                PAPER_T, cells([LOW], ("im", "grm-10")), lower_tested(PAPER_T, [(LOW, "im")], [(LOW, "grm-10")])
            ),
        ),
        f"Reaches the goal: settles. T: the first point below the run's own N̄; a run has none if one episode of its "
        f"last 1,000 points is truncated, and with such a run T decides nothing. {SPEED} {TESTED}",
        paper=times([LOW], ("grm-10", "im")),
    ),
    Claim(
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
    *GRM_CLAIMS,
)
CLAIMS = Claims(
    experiment="doorkey",
    full=FULL,
    stated=STATED,
    ablated={
        "plain-settlement": (
            *(ask(setting) for setting in HARD for ask in (pbim_improves, normalisation_is_key)),
            *PBIM_AT_LOW,
        ),
        "learner-discount-0.99": tuple(about_sixty(setting) for setting in HARD),
        "entropy-0.001": tuple(ask(setting) for setting in HARD for ask in (no_im_fails, about_sixty)),
    },
    # Without repayment there is no settlement to change.
    untouched={"plain-settlement": ("none", "im")},
    questions={QUESTION: MATCHING_CLAIMS},
    title=title,
    settings_of=settings_of,
)
