"""Whether another matching beats GRM with D = 10, on made-up results whose verdicts are known."""

import pytest

from payback_lab.experiments.doorkey.claims import CLAIMS, STATED, SURE
from payback_lab.experiments.doorkey.measures import LENGTH, MIDDLE
from payback_lab.runs import Result
from payback_lab.statistics import welch

from .doorkey_story import run, story


def matching(scheme: str, settled: float | None, length: float, seeds: int = 3) -> dict[str, Result]:
    return {f"doorkey/{MIDDLE}/{scheme}/seed{k}": run(k, MIDDLE, scheme, settled, length) for k in range(seeds)}


@pytest.mark.parametrize(
    ("settled", "length", "verdicts"),
    [
        (0.5, 30.0, ["holds", "holds"]),
        (2.0, 40.0, ["does not hold", "does not hold"]),
        (None, 635.0, ["does not hold", "does not hold"]),
        (1.5, 37.1, ["undecided", "undecided"]),
    ],
)
def test_another_matching_is_held_against_ten(settled, length, verdicts):
    told = CLAIMS.decide(story() | matching("grm-30", settled, length))[len(STATED) :]
    assert [c.statement.split("“")[1] for c in told] == [
        "GRM D = 30” ends in a better policy than GRM D = 10.",
        "GRM D = 30” learns sooner than GRM D = 10.",
    ]
    assert all(c.question == "other-matchings" and c.where == "ours" and not c.plain for c in told)
    assert [c.verdict for c in told] == verdicts, [c.here for c in told]


def test_one_of_six_matchings_is_not_better_by_the_skin_of_its_teeth():
    results = story(length={(MIDDLE, "grm-10"): 37.1}, seeds=3)
    # Below on every bootstrap draw, but one of six looks so at this p.
    results |= matching("grm-30", 1.5, 36.9)
    (ends, _) = CLAIMS.decide(results)[len(STATED) :]
    p = welch(*(CLAIMS.gather(results).values((MIDDLE, s), LENGTH) for s in ("grm-30", "grm-10")))
    assert SURE < p < 0.05
    assert ends.verdict == "undecided"


def test_a_matching_needs_three_seeds():
    told = CLAIMS.decide(story() | matching("when", None, 635.0, seeds=2))[len(STATED) :]
    assert [c.verdict for c in told] == ["undecided", "undecided"]
    assert all(c.note.startswith("Too few seeds") for c in told)
