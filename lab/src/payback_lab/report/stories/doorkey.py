"""DoorKey on the first screen."""

from dataclasses import replace

from payback_lab.experiments.doorkey.printed import HIGH, MIDDLE, SETTINGS, TABLE
from payback_lab.methods import is_raw
from payback_lab.report.dots import Panel, panel_of_group
from payback_lab.report.stories.figures import group_of, mean, plain_groups, runs, share
from payback_lab.report.story import Story
from payback_lab.report.summary import Summary

LENGTH, LEARNT = "mean_length", "settled_step"


def grm_learns(summary: Summary) -> str | None:
    """Say how GRM with D = 10 ends beside the baselines."""
    middle = [group_of(summary, MIDDLE)]
    ours, raw, none = (mean(runs(middle, scheme), LENGTH) for scheme in ("grm-10", "im", "none"))
    if ours is None or raw is None or none is None:
        return None
    learnt = share(runs(plain_groups(summary), "grm-10", "grm-10-raw"), LEARNT)
    return (
        f"GRM with D = 10 learns in {learnt} runs; its episodes end at {ours:.0f} steps, those of the raw bonus at "
        f"{raw:.0f}, without a bonus at {none:.0f}."
    )


def pbim_does_not(summary: Summary) -> str | None:
    """Say in how many runs PBIM learns, and its largest repayment."""
    own = runs(plain_groups(summary), "pbim", "pbim-raw")
    largest = min((run["largest_repayment"] for run in own if run.get("largest_repayment") is not None), default=None)
    if largest is None:
        return None
    return (
        f"PBIM learns in {share(own, LEARNT)}: it repays at the last step, with interest, up to {-largest:.0f} at "
        "once; the goal is worth 1."
    )


def against_the_paper(summary: Summary) -> str | None:
    """Say where the baselines differ from the paper's."""
    groups = [group_of(summary, setting) for setting in (MIDDLE, HIGH)]
    none = runs([groups[0]], "none")
    lengths = [mean(runs([group], "im"), LENGTH) for group in groups]
    if not none or None in lengths:
        return None
    printed = [TABLE[setting]["im"].length for setting in (MIDDLE, HIGH)]
    return (
        f"Unlike in the paper, no bonus learns at γ = 0.995 too, in {share(none, LEARNT)} runs, and the raw one ends "
        f"at {lengths[0]:.0f} and {lengths[1]:.0f} steps, not {printed[0]:.1f} and {printed[1]:.1f}."
    )


def conclusion(summary: Summary) -> str | None:
    """Conclude if GRM learns in every run and PBIM in none."""
    groups = plain_groups(summary)
    ours, theirs = runs(groups, "grm-10", "grm-10-raw"), runs(groups, "pbim", "pbim-raw")
    if not ours or not theirs or not all(run[LEARNT] for run in ours) or any(run[LEARNT] for run in theirs):
        return None
    return "Repay within the next tens of steps (GRM), not at the end of a long episode (PBIM)."


def picture(summary: Summary) -> Panel | None:
    """Draw N̄ by scheme with the paper's value, at the middle setting if it is there."""
    groups = [group_of(summary, setting) for setting in (MIDDLE, *SETTINGS)]
    group = next((g for g in groups if g), None)
    if group is None:
        return None
    drawn = panel_of_group(summary, group, LENGTH)
    rows = tuple(row for row in drawn.rows if not is_raw(row.scheme))
    return replace(drawn, rows=rows, title="Final length, and the paper's as a mark")


STORY = Story(
    "Which bonus learns sooner, and to which policy?",
    (grm_learns, pbim_does_not, against_the_paper),
    conclusion,
    picture,
)
