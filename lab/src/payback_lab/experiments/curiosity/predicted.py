"""What docs/predictions.md says about the curiosity runs, held against them."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from payback_lab.experiments.curiosity.comparison import Runs, compare, lengths, solved
from payback_lab.experiments.curiosity.config import FEW, PAIRED, SCHEMES

Cells = Mapping[tuple[str, str], Runs]
LASTING = ("episodic-count", "e3b", "ride")
"""Bonuses that do not fade while the agent learns."""


@dataclass(frozen=True)
class Prediction:
    """Hold a sentence, what was measured, and whether the two agree."""

    text: str
    here: str
    verdict: Literal["yes", "no", "not run yet"]


def predictions(cells: Cells) -> list[Prediction]:
    """Return every prediction with what came out; a cell of fewer than three seeds decides nothing."""
    cells = {cell: runs for cell, runs in cells.items() if len(runs) >= FEW}
    return [_most_solve(cells), _same_length(cells), _not_slower(cells), *_lasting(cells), _e3b_most(cells)]


def _most_solve(cells: Cells) -> Prediction:
    text = "Most seeds of every scheme of RND solve it, and no share differs from another."
    own = {scheme: cells[key] for scheme in SCHEMES if (key := ("rnd", scheme)) in cells}
    if len(own) < len(SCHEMES):
        return Prediction(text, "–", "not run yet")
    least = min(float(solved(runs).mean()) for runs in own.values())
    p = min(compare(one, other).p for one, other in combinations(own.values(), 2))
    return Prediction(text, f"smallest share {least:.2f}, smallest p {p:.2f}", _said(least > 0.5 and p >= 0.05))


def _same_length(cells: Cells) -> Prediction:
    text = "RND raw and with `grm-30` do not differ in final length."
    pair = _pair(cells, ("rnd", "grm-30"), ("rnd", "im"))
    if pair is None:
        return Prediction(text, "–", "not run yet")
    found = compare(*pair).length
    return Prediction(text, f"{found.said('+.1f')} steps", _said(found.low <= 0 <= found.high))


def _not_slower(cells: Cells) -> Prediction:
    text = "`grm-30` of RND is not slower than no bonus, and eight seeds do not decide whether it is faster."
    pair = _pair(cells, ("rnd", "grm-30"), ("rnd", "none"))
    if pair is None:
        return Prediction(text, "–", "not run yet")
    found = compare(*pair).steps
    here = f"{found.said('+.0f', per=1000)} thousand steps"
    return Prediction(text, here, _said(found.low <= 0 <= found.high))


def _lasting(cells: Cells) -> list[Prediction]:
    found = []
    for bonus in LASTING:
        text, longer = f"`{bonus}` ends with longer episodes raw than with `grm-30`.", _longer(cells, bonus)
        verdict = "not run yet" if longer is None else _said(longer > 0)
        found.append(Prediction(text, "–" if longer is None else f"{longer:+.1f} steps", verdict))
    return found


def _e3b_most(cells: Cells) -> Prediction:
    text = "The difference is largest with `e3b`."
    longer = {bonus: found for bonus in LASTING if (found := _longer(cells, bonus)) is not None}
    if len(longer) < len(LASTING):
        return Prediction(text, "–", "not run yet")
    most = max(longer, key=lambda bonus: longer[bonus])
    return Prediction(text, f"largest with `{most}`", _said(most == "e3b"))


def _longer(cells: Cells, bonus: str) -> float | None:
    """Return how much longer the final episodes are when the bonus is paid raw."""
    pair = _pair(cells, *((bonus, scheme) for scheme in PAIRED))
    return None if pair is None else float(lengths(pair[0]).mean() - lengths(pair[1]).mean())


def _pair(cells: Cells, one: tuple[str, str], other: tuple[str, str]) -> tuple[Runs, Runs] | None:
    return (cells[one], cells[other]) if one in cells and other in cells else None


def _said(holds: bool) -> Literal["yes", "no"]:
    return "yes" if holds else "no"
