"""What the paper states about long cliff walking (`sec:lw`), sentence by sentence, and how each is decided."""

from collections.abc import Mapping

import numpy as np

from payback_lab.claims.evidence import Evidence, figure, first_arrival
from payback_lab.claims.verdicts import (
    Decide,
    Decision,
    Sentence,
    all_of,
    arrows,
    decided,
    interval_of_gap,
    lower,
    not_negative,
    positive,
    said,
    within,
)
from payback_lab.environments.cliff import path_return, shortest_path
from payback_lab.learners.q_learning.config import LongQLearning
from payback_lab.methods import SCHEMES
from payback_lab.running.plan import Claim, Result

BEST = ("none", "grm-1", "grm-1-raw", "grm-10", "pbim")
REST = ("im", "pbim-raw", "grm-10-raw")
WORSE = ("pbim", "grm-10", "grm-10-raw")
BETTER = ("none", "im", "pbim-raw", "grm-1", "grm-1-raw")
MATTERS = "The order of training returns was seen to change with the step size, which the paper does not give."
LAST = "Mean over the last tenth of training."


def grid_facts(evidence: Evidence) -> Decision:
    """Compare the shortest path by breadth-first search with the one that is printed."""
    path = shortest_path(evidence.cliff)
    here = len(path) - 1, path_return(evidence.cliff, path)
    return f"{here[0]} moves, return {here[1]:.0f}", "holds" if here == (52, 49) else "does not hold"


def at_most_one_more(evidence: Evidence) -> Decision:
    """Decide whether each of the rest needs at most one step more than the best ones on average."""
    values = {scheme: evidence.figure(scheme, "greedy_length") for scheme in (*BEST, *REST)}
    best = np.concatenate([values[scheme] for scheme in BEST])
    gaps = {scheme: interval_of_gap(values[scheme], best) for scheme in REST}
    texts = [f"{s} {values[s].mean() - best.mean():+.1f} [{low:+.1f}, {high:+.1f}]" for s, (low, high) in gaps.items()]
    return "; ".join(texts), all_of(not_negative(1 - high, 1 - low) for low, high in gaps.values())


def together(measure: str, sign: int) -> Decide:
    """Decide whether the best ones together lie above (sign 1) or below (−1) the rest together."""

    def decide(evidence: Evidence) -> Decision:
        values = {scheme: evidence.figure(scheme, measure) for scheme in (*BEST, *REST)}
        best, rest = (np.concatenate([values[scheme] for scheme in group]) for group in (BEST, REST))
        low, high = interval_of_gap(sign * best, sign * rest)
        gap = f"{sign * (best.mean() - rest.mean()):.2f} [{low:.2f}, {high:.2f}]"
        here = f"{best.mean():.1f} against {rest.mean():.1f}, better by {gap}. {said(values)}"
        return here, positive(low, high)

    return decide


SENTENCES = (
    Sentence(
        "sec:lw",
        "The shortest path takes 52 steps and returns 49.",
        "52, 49",
        (),
        grid_facts,
        "By breadth-first search; the last move pays 100 and no −1.",
    ),
    Sentence(
        "sec:lw",
        "ε-greedy exploration has trouble finding the goal; the IM methods find it sooner.",
        "",
        SCHEMES,
        lower(first_arrival, SCHEMES[1:], ["none"]),
        "First training episode that reaches the goal.",
    ),
    Sentence(
        "fig:returnlarge",
        "In the long run GRM with D = 1 has the highest return in training.",
        "",
        SCHEMES,
        lower(figure("final_return"), [s for s in SCHEMES if not s.startswith("grm-1-") and s != "grm-1"], ["grm-1"]),
        f"{LAST} {MATTERS}",
    ),
    Sentence(
        "fig:returnlarge",
        "It is followed by no IM, then by PBIM without normalisation and RND.",
        "",
        ("none", "im", "pbim-raw"),
        lower(figure("final_return"), ["pbim-raw", "im"], ["none"]),
        f"{LAST} {MATTERS}",
    ),
    Sentence(
        "fig:returnlarge",
        "GRM with D = 10 and PBIM do not reach the training return of the others.",
        "",
        SCHEMES,
        lower(figure("final_return"), WORSE, BETTER),
        f"{LAST} {MATTERS}",
    ),
    Sentence(
        "fig:lengthlarge",
        "GRM with D = 10 and PBIM achieve the shortest episodes in training.",
        "",
        SCHEMES,
        lower(figure("final_length"), WORSE, BETTER),
        f"{LAST} A short episode may also be a fall.",
    ),
    Sentence(
        "fig:returnlarge_test",
        "No IM, both GRM D = 1, normalised GRM D = 10 and normalised PBIM reap the highest reward.",
        "",
        SCHEMES,
        together("greedy_return", 1),
        "Decided as: the five together against the other three together.",
    ),
    Sentence(
        "fig:returnlarge_test",
        "Their reward hovers around 48.",
        "≈ 48",
        BEST,
        within(figure("greedy_return"), BEST, 47, 49),
        "Around: within 1. The paper takes 49 for the optimum; it is 50.",
    ),
    Sentence(
        "fig:lengthlarge_test",
        "These models require the fewest steps to the goal.",
        "",
        SCHEMES,
        together("greedy_length", -1),
        "Decided as: the five together against the other three together.",
    ),
    Sentence(
        "fig:lengthlarge_test",
        "The other models require at most 1 more step on average.",
        "≤ 1",
        SCHEMES,
        at_most_one_more,
    ),
    Sentence(
        "large-Q_values",
        "The most common actions are optimal for PBIM and for GRM D = 10 without normalisation, not for the others.",
        "",
        SCHEMES,
        arrows(("pbim", "grm-10-raw"), [s for s in SCHEMES if s not in ("pbim", "grm-10-raw")]),
        "The optimum is 51 moves.",
    ),
)
ABLATED = SENTENCES[2:6] + SENTENCES[-1:]
"""What is decided again under each ablation: the order in training, and the final maps."""


def claims(results: Mapping[str, Result]) -> list[Claim]:
    """Decide every sentence, then some of them again under each ablation that was run."""
    full = LongQLearning()
    return decided(results, "long-cliff", full, SENTENCES, dict.fromkeys(("cumulative-mean", "wide-rnd"), ABLATED))
