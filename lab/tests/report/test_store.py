"""Runs made on another day are added to a committed summary, and nothing is lost or counted twice."""

from dataclasses import replace

import numpy as np
import pytest

from payback_lab import records
from payback_lab.claims.claim import DecidedClaim
from payback_lab.report.store import merged
from payback_lab.report.summary import Summary, summarise
from payback_lab.user_error import UserError


class Counting:
    """The fake experiment, whose only claim is how many results it was given."""

    def __init__(self, fake) -> None:
        self._fake = fake

    def __getattr__(self, name: str):
        return getattr(self._fake, name)

    def claims(self, results) -> list[DecidedClaim]:
        assert all("greedy_return" in result.summary for result in results.values())
        return [DecidedClaim("", "", "", str(len(results)), "holds")]


@pytest.fixture
def parts(fake, found: dict[str, records.Record]) -> tuple[Counting, dict[str, records.Record]]:
    return Counting(fake), {name: record for name, record in found.items() if record.run.scheme in ("none", "im")}


def only(experiment, found, *seeds: int) -> Summary:
    return summarise(experiment, {i: r for i, r in found.items() if r.identity["seed"] in seeds})


def test_two_days_make_one_summary(parts) -> None:
    experiment, found = parts
    whole, both = (
        summarise(experiment, found),
        merged(experiment, only(experiment, found, 2), only(experiment, found, 0, 1)),
    )
    assert [group.name for group in both.groups] == [group.name for group in whole.groups]
    for ours, theirs in zip(both.groups, whole.groups, strict=True):
        assert ours.runs == theirs.runs
        for scheme, curves in theirs.curves.items():
            for column, curve in curves.items():
                np.testing.assert_array_equal(ours.curves[scheme][column], curve)
    assert both.claims[0].here == whole.claims[0].here == "12"


def test_a_run_of_both_is_the_new_one_and_counted_once(parts) -> None:
    experiment, found = parts
    old = only(experiment, found, 0, 1)
    group = old.groups[0]
    stale = replace(group, runs=[{**run, "greedy_return": -1.0} for run in group.runs])
    both = merged(experiment, only(experiment, found, 1), replace(old, groups=(stale, *old.groups[1:])))
    assert [(r["seed"], r["greedy_return"] == -1.0) for r in both.groups[0].runs if r["scheme"] == "im"] == [
        (0, True),
        (1, False),
    ]
    assert both.claims[0].here == "8"


def test_runs_of_another_kind_are_refused(parts) -> None:
    experiment, found = parts
    old = only(experiment, found, 0)
    other = replace(old.groups[0], config={**old.groups[0].config, "drift": 9.0})
    with pytest.raises(UserError, match="made with another config"):
        merged(experiment, only(experiment, found, 1), replace(old, groups=(other,)))
