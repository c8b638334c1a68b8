"""Cliff walking on the first screen."""

from payback_lab.experiments.cliff.measures import CONVERGED
from payback_lab.report.stories.figures import claimed, curves, group_of, runs, share
from payback_lab.report.story import Drawing, Story
from payback_lab.report.summary import Summary

NORMALISED = ("pbim", "grm-1", "grm-10")


def converged(summary: Summary, *schemes: str) -> list[float] | None:
    """Return the mean episodes to convergence; None if one is not known."""
    found = [claimed(summary, CONVERGED.label, scheme) for scheme in schemes]
    return None if None in found else [figure.mean for figure in found if figure]


def raw_bonus_delays(summary: Summary) -> str | None:
    """Say how much later the raw bonus converges."""
    found = converged(summary, "none", "im")
    if found is None:
        return None
    return (
        f"The bonus does not help here: Q-learning converges after {found[0]:,.0f} episodes without it, after "
        f"{found[1]:,.0f} with it."
    )


def repaid_does_not(summary: Summary) -> str | None:
    """Say when the repaid bonuses converge."""
    found = converged(summary, *NORMALISED)
    if found is None:
        return None
    pbim, one, ten = found
    return f"Repaid and normalised, it costs little: {pbim:,.0f} (PBIM), {one:,.0f} (GRM D = 1), {ten:,.0f} (D = 10)."


def not_all_optimal(summary: Summary) -> str | None:
    """Say how many seeds end optimal."""
    group = group_of(summary)
    if group is None or not all(runs([group], scheme) for scheme in ("none", *NORMALISED)):
        return None
    plain, *repaid = (share(runs([group], scheme), "optimal") for scheme in ("none", *NORMALISED))
    return f"The final policy is optimal in {plain} seeds without a bonus, but in {', '.join(repaid)} with these."


def conclusion(summary: Summary) -> str | None:
    """Conclude from the episodes to convergence."""
    found = converged(summary, "none", "im", *NORMALISED)
    if found is None or max(found[2:]) > 0.5 * found[1]:
        return None
    return "Repayment takes away most of the harm that a useless bonus does, not all of it."


def picture(summary: Summary) -> Drawing | None:
    """Draw the returns of the baselines and of two repaid bonuses."""
    return curves(group_of(summary), ("none", "im", "pbim", "grm-10"), "Return by episode")


STORY = Story(
    "Does an unhelpful bonus keep Q-learning from the optimum?",
    (raw_bonus_delays, repaid_does_not, not_all_optimal),
    conclusion,
    picture,
)
