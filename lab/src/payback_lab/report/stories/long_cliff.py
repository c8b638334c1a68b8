"""Long cliff walking on the first screen."""

from payback_lab.experiments.cliff.measures import FIRST_ARRIVAL
from payback_lab.methods import SCHEMES
from payback_lab.report.stories.cliff import picture
from payback_lab.report.stories.figures import claimed, group_of, mean, runs, share
from payback_lab.report.story import Story
from payback_lab.report.summary import Summary


def arrivals(summary: Summary) -> dict[str, float] | None:
    """Return the mean episode of the first arrival by scheme; None if one is not known."""
    found = {scheme: claimed(summary, FIRST_ARRIVAL.label, scheme) for scheme in SCHEMES}
    return None if None in found.values() else {scheme: figure.mean for scheme, figure in found.items() if figure}


def found_when(summary: Summary) -> str | None:
    """Say when the goal is found first."""
    first = arrivals(summary)
    if first is None:
        return None
    return (
        f"The goal is 51 moves away; without a bonus it is found after {first['none']:,.0f} episodes, with the raw "
        f"bonus after {first['im']:,.0f}."
    )


def repaid_found_when(summary: Summary) -> str | None:
    """Say when the repaid and normalised bonuses find it."""
    first = arrivals(summary)
    if first is None:
        return None
    found = [first[scheme] for scheme in ("pbim", "grm-1", "grm-10")]
    return f"Repaid and normalised, after {min(found):,.0f} to {max(found):,.0f}: about as without."


def ends_alike(summary: Summary) -> str | None:
    """Say how the schemes end."""
    group = group_of(summary)
    returns = [mean(runs([group], scheme), "greedy_return") for scheme in SCHEMES]
    there = [value for value in returns if value is not None]
    if group is None or len(there) < len(SCHEMES):
        return None
    return (
        f"All end alike, with a greedy return of {min(there):.1f} to {max(there):.1f} where 50 is possible; "
        f"{share(group.runs, 'optimal')} runs are optimal."
    )


def conclusion(summary: Summary) -> str | None:
    """Conclude from the first arrivals."""
    first = arrivals(summary)
    if first is None or first["im"] < first["none"] or min(first.values()) < 0.9 * first["none"]:
        return None
    return "RND as the paper has it finds no goal sooner here, repaid or not; where it delays, repayment cures it."


STORY = Story("Does a bonus help to find a far goal?", (found_when, repaid_found_when, ends_alike), conclusion, picture)
