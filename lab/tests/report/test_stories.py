"""What the first screen says: the committed figures, and nothing where they are missing."""

from dataclasses import replace
from pathlib import Path

import pytest

from payback_lab.report import store
from payback_lab.report.stories import STORIES, story_of
from payback_lab.report.stories.figures import plain_groups, runs
from payback_lab.report.summary import Summary

SUMMARIES = {summary.experiment: summary for summary in store.load(Path(__file__).parents[2] / "results")}


def told(summary: Summary) -> str:
    story = story_of(summary.experiment)
    sentences = (*(sentence(summary) for sentence in story.sentences), story.conclusion(summary))
    return " ".join(filter(None, sentences))


@pytest.mark.parametrize("name", [name for name in STORIES if name in SUMMARIES])
def test_every_committed_experiment_has_three_sentences_a_conclusion_and_a_picture(name: str) -> None:
    story, summary = STORIES[name], SUMMARIES[name]
    assert [bool(sentence(summary)) for sentence in story.sentences] == [True] * 3
    assert story.conclusion(summary)
    assert story.picture(summary)


@pytest.mark.parametrize("name", [name for name in STORIES if name in SUMMARIES])
def test_a_story_leaves_out_what_it_has_no_figures_for(name: str) -> None:
    bare = replace(SUMMARIES[name], groups=(), claims=())
    assert STORIES[name].conclusion(bare) is None
    assert STORIES[name].picture(bare) is None
    assert "None" not in told(bare)


def changed(summary: Summary, scheme: str, **figures) -> Summary:
    """Return the summary as if all runs of a scheme had other figures."""
    groups = [
        replace(group, runs=[{**run, **figures} if run["scheme"] == scheme else run for run in group.runs])
        for group in summary.groups
    ]
    return replace(summary, groups=tuple(groups))


def test_the_sentences_are_those_of_the_figures() -> None:
    doorkey = SUMMARIES["doorkey"]
    normalised, raw = (len(runs(plain_groups(doorkey), scheme)) for scheme in ("pbim", "pbim-raw"))
    assert f"PBIM learns in 0 of {normalised + raw}:" in told(doorkey)
    learns = changed(doorkey, "pbim", settled_step=5000)
    assert f"PBIM learns in {normalised} of {normalised + raw}:" in told(learns)
    assert "not at the end of a long episode" in told(doorkey)
    assert "not at the end of a long episode" not in told(learns)


def test_a_conclusion_needs_its_premise() -> None:
    reach = SUMMARIES["reach"]
    assert "a bonus that is repaid learns" in told(reach)
    assert "a bonus that is repaid learns" not in told(changed(reach, "im", settled_step=5000))


def test_the_grid_with_the_most_seeds_is_told_of() -> None:
    reach = SUMMARIES["reach"]
    groups = [replace(group, runs=[run for run in group.runs if run["seed"] == 0]) for group in reach.groups]
    assert "On the 11×11 grid" in told(reach)
    assert "On the 10×10 grid" in told(replace(reach, groups=tuple(groups)))  # the smallest of those with one seed


def test_an_experiment_without_a_story_is_told_plainly(summary: Summary) -> None:
    assert told(summary) == "24 runs of 8 schemes at 1 setting."
    one = replace(summary, groups=(replace(summary.groups[0], runs=summary.groups[0].runs[:1]),))
    assert told(one) == "1 run of 1 scheme at 1 setting."
    assert story_of("fake").picture(summary)
