"""The first screen: the numbers of the runs that are shown, and nothing where they are missing."""

from dataclasses import replace
from pathlib import Path

import pytest

from payback_lab.report import store
from payback_lab.report.cards import CARDS, PLAIN, card_of
from payback_lab.report.summary import Summary

SUMMARIES = {summary.experiment: summary for summary in store.load(Path(__file__).parents[2] / "results")}


@pytest.mark.parametrize("name", CARDS)
def test_every_card_has_a_question_a_finding_a_table_and_a_picture(name: str) -> None:
    card, summary = CARDS[name], SUMMARIES[name]
    numbers = card.numbers(summary)
    assert card.question.endswith("?")
    assert card.finding.endswith(".")
    assert 3 <= len(numbers.rows) <= 5
    assert {len(row) for row in numbers.rows} == {len(numbers.header)}
    assert not [row for row in numbers.rows if "–" in row]
    assert card.picture(summary)


@pytest.mark.parametrize("name", CARDS)
def test_a_card_leaves_out_what_it_has_no_runs_of(name: str) -> None:
    bare = replace(SUMMARIES[name], groups=(), claims=())
    assert CARDS[name].numbers(bare).rows == ()
    assert CARDS[name].picture(bare) is None
    assert list(CARDS[name].charts(bare)) == []


def test_the_numbers_are_those_of_the_runs() -> None:
    doorkey = SUMMARIES["doorkey"]
    group = next(g for g in doorkey.groups if g.name == "doorkey/a0.02-g0.995")
    runs = [{**run, "settled_step": None} if run["scheme"] == "grm-10" else run for run in group.runs]
    changed = replace(doorkey, groups=(replace(group, runs=runs),))
    before, after = ({row[0]: row for row in CARDS["doorkey"].numbers(of).rows} for of in (doorkey, changed))
    assert (before["GRM D = 10"][1], after["GRM D = 10"][1]) == ("5 of 5", "0 of 5")
    assert before["IM"] == after["IM"]


def test_the_telling_grid_is_11_by_11() -> None:
    numbers = CARDS["reach"].numbers(SUMMARIES["reach"])
    assert numbers.caption.startswith("11×11 grid, 10 seeds per row")
    assert numbers.rows[-1][:3] == ("GRM D = 30", "100%", "2.8 ×")


def test_an_experiment_without_a_card_of_its_own_is_shown_plainly(summary: Summary) -> None:
    assert card_of("fake") is PLAIN
    assert PLAIN.numbers(summary).caption == "runs: 24, schemes: 8, settings: 1"
    assert PLAIN.picture(summary)
