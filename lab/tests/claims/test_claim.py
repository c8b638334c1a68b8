"""A claim out of a summary, whenever that was written."""

import json
from pathlib import Path

import pytest

from payback_lab.claims.claim import DecidedClaim, read_claim, stored_claim
from payback_lab.experiments import load

RESULTS = Path(__file__).parents[2] / "results"


def stored(experiment: str) -> list[dict]:
    return json.loads((RESULTS / experiment / "summary.json").read_text())["claims"]


@pytest.mark.parametrize("experiment", ["cliff", "long-cliff", "doorkey"])
def test_committed_claims_keep_every_word(experiment):
    for before in stored(experiment):
        claim = read_claim(before)
        assert claim.text == (before["sentence"] if "ablation" not in before else claim.text)
        kept = ("where", "paper", "here", "verdict", "note")
        assert [getattr(claim, name) for name in kept] == [before[name] for name in kept]


@pytest.mark.parametrize("experiment", ["cliff", "long-cliff", "doorkey"])
def test_committed_claims_have_the_labels_of_their_experiment(experiment):
    """A claim is of an ablation, or of a question, that the experiment has; and of none if its text has no name."""
    claimed = load(experiment).claimed
    for before in stored(experiment):
        claim = read_claim(before)
        assert claim.ablation in (None, *claimed.ablated)
        assert claim.question in (None, *claimed.questions)
        paper = [one.statement for one in claimed.stated]
        assert claim.plain == (claim.text in paper)


def test_a_claim_is_read_as_it_was_written():
    for claim in (
        DecidedClaim("fig:x", "a: b", "1", "2", "holds", "n"),
        DecidedClaim("fig:x", "IM is slow.", "", "", "undecided", ablation="wide-rnd"),
        # With the fields there, words before the statement are its own.
        DecidedClaim("ours", "wide-rnd: is a name.", "", "", "holds", question="other-matchings"),
    ):
        assert read_claim(json.loads(json.dumps(stored_claim(claim)))) == claim


def test_only_the_papers_own_are_plain():
    one = DecidedClaim("", "IM is slow.", "", "", "holds")
    assert one.plain
    assert not DecidedClaim("", "IM is slow.", "", "", "holds", ablation="wide-rnd").plain
    assert not DecidedClaim("", "IM is slow.", "", "", "holds", question="other-matchings").plain
