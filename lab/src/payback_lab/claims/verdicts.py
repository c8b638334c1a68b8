"""How a sentence of the paper is decided: every comparison by its 95 % bootstrap interval over seeds.

A sentence about several schemes holds if each of its comparisons does, does not hold if one is contradicted, and
is undecided otherwise. A verb such as "around" or "much" is given a number, and the claim's note says which.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from payback_lab.claims.evidence import Evidence, Measure, gather
from payback_lab.environments.cliff import shortest_path
from payback_lab.learners.q_learning.config import QLearning
from payback_lab.policy import kind, majority, walk
from payback_lab.running.plan import Claim, Result, Verdict
from payback_lab.statistics import bootstrap_interval, stratified_interval

FEWEST = 3
"""With fewer seeds an interval says nothing."""

Decision = tuple[str, Verdict]
"""What was measured, in words, and the verdict."""
Decide = Callable[[Evidence], Decision]
Bound = float | np.ndarray


@dataclass(frozen=True)
class Sentence:
    """Hold one sentence of the paper and how it is decided."""

    where: str
    sentence: str
    paper: str
    needs: tuple[str, ...]
    """The schemes it is about."""
    decide: Decide
    note: str = ""


def claim(sentence: Sentence, evidence: Evidence, label: str = "") -> Claim:
    """Decide a sentence; undecided when runs, seeds or episodes are wanting. `label` names an ablation."""
    text = f"{label}: {sentence.sentence}" if label else sentence.sentence
    missing = [scheme for scheme in sentence.needs if scheme not in evidence.runs]
    if missing:
        return Claim(sentence.where, text, sentence.paper, f"not run: {', '.join(missing)}", "undecided", sentence.note)
    here, verdict = sentence.decide(evidence)
    lacking = _lacking(sentence, evidence)
    if lacking:
        return Claim(sentence.where, text, sentence.paper, here, "undecided", f"{lacking} {sentence.note}".strip())
    return Claim(sentence.where, text, sentence.paper, here, verdict, sentence.note)


def decided(
    results: Mapping[str, Result],
    experiment: str,
    full: QLearning,
    sentences: Sequence[Sentence],
    ablated: Mapping[str, Sequence[Sentence]],
) -> list[Claim]:
    """Decide the sentences on an experiment's results by run id, then some again under each ablation that was run."""
    main = gather(results, experiment, full.cliff, full.episodes)
    claims = [claim(sentence, main) for sentence in sentences]
    # No IM has nothing to ablate: its own runs serve where the ablation's are not there.
    unshaped = {scheme: runs for scheme, runs in main.runs.items() if scheme == "none"}
    for name, again in ablated.items():
        evidence = gather(results, f"{experiment}+{name}", full.cliff, full.episodes, unshaped)
        if set(evidence.runs) - {"none"}:
            claims += [claim(sentence, evidence, label=name) for sentence in again]
    return claims


def lower(measure: Measure, ones: Sequence[str], others: Sequence[str]) -> Decide:
    """Decide whether each of `ones` is lower on average than each of `others`."""

    def decide(evidence: Evidence) -> Decision:
        values = {scheme: measure(evidence, scheme) for scheme in (*ones, *others)}
        gaps = [interval_of_gap(values[other], values[one]) for one in ones for other in others]
        return said(values), all_of(positive(*gap) for gap in gaps)

    return decide


def times(measure: Measure, ones: Sequence[str], reference: str, at_most: float) -> Decide:
    """Decide whether each of `ones` is on average at most so many times the reference."""

    def decide(evidence: Evidence) -> Decision:
        base = measure(evidence, reference)
        values = {scheme: measure(evidence, scheme) for scheme in ones}
        ratios = [interval_of_ratio(value, base) for value in values.values()]
        here = "; ".join(f"{scheme} {ratio_with_interval(value, base)}" for scheme, value in values.items())
        return here, all_of(not_negative(at_most - high, at_most - low) for low, high in ratios)

    return decide


def within(measure: Measure, schemes: Sequence[str], lowest: float, highest: float) -> Decide:
    """Decide whether the mean of each scheme lies between two numbers."""

    def decide(evidence: Evidence) -> Decision:
        values = {scheme: measure(evidence, scheme) for scheme in schemes}
        verdicts = []
        for value in values.values():
            low, high = bootstrap_interval(value)
            verdicts += [not_negative(low - lowest, high - lowest), not_negative(highest - high, highest - low)]
        return said(values), all_of(verdicts)

    return decide


def every_seed(schemes: Sequence[str]) -> Decide:
    """Decide whether the greedy policy of every seed takes a shortest path."""

    def decide(evidence: Evidence) -> Decision:
        optimal = {scheme: evidence.figure(scheme, "optimal") for scheme in schemes}
        texts = [f"{scheme} {int(x.sum())} of {len(x)} seeds{_share(x)}" for scheme, x in optimal.items()]
        return "; ".join(texts), "holds" if all(x.all() for x in optimal.values()) else "does not hold"

    return decide


def arrows(optimal: Sequence[str], not_optimal: Sequence[str]) -> Decide:
    """Decide whether the most common actions over seeds lead along a shortest path in just these schemes."""

    def decide(evidence: Evidence) -> Decision:
        shortest = len(shortest_path(evidence.cliff)) - 1
        lengths = {scheme: walked(evidence, scheme) for scheme in (*optimal, *not_optimal)}
        texts = [f"{scheme} {length} moves" if length else f"{scheme} never" for scheme, length in lengths.items()]
        right = all(lengths[s] == shortest for s in optimal) and all(lengths[s] != shortest for s in not_optimal)
        return f"to the goal: {', '.join(texts)}", "holds" if right else "does not hold"

    return decide


def walked(evidence: Evidence, scheme: str) -> int | None:
    """Follow the most common action of each cell; return the moves to the goal, None if it is not reached."""
    action = majority(np.stack([run.arrays["q"] for run in evidence.runs[scheme]])).action
    cells = walk(action)
    return len(cells) - 1 if kind(*cells[-1], *action.shape) == "goal" else None


def both(*parts: Decide) -> Decide:
    """Decide a sentence of several parts."""

    def decide(evidence: Evidence) -> Decision:
        decisions = [part(evidence) for part in parts]
        return ". ".join(here for here, _ in decisions), all_of(verdict for _, verdict in decisions)

    return decide


def positive(low: Bound, high: Bound) -> Verdict:
    """Say whether a quantity with this interval is above zero; a constant zero is not."""
    return "holds" if low > 0 else "does not hold" if high < 0 or low == high == 0 else "undecided"


def not_negative(low: Bound, high: Bound) -> Verdict:
    """Say whether a quantity with this interval is at least zero."""
    return "holds" if low >= 0 else "does not hold" if high < 0 else "undecided"


def all_of(verdicts: Iterable[Verdict]) -> Verdict:
    """Join verdicts: one contradiction decides, one doubt leaves it open."""
    found = set(verdicts)
    return "does not hold" if "does not hold" in found else "undecided" if "undecided" in found else "holds"


def said(values: dict[str, np.ndarray]) -> str:
    """Say the mean of each scheme with its interval."""
    return "; ".join(f"{scheme} {mean_with_interval(value)}" for scheme, value in values.items())


def mean_with_interval(value: np.ndarray) -> str:
    """Say a mean over seeds and its 95 % interval.

    >>> mean_with_interval(np.array([88.0, 88.0]))
    '88 [88, 88]'
    """
    digits = 0 if abs(value.mean()) >= 200 else 1 if abs(value.mean()) >= 1 else 3
    low, high = bootstrap_interval(value)
    mean, low, high = (
        f"{round(float(x), digits) + 0.0:,.{digits}f}".removesuffix(".0") for x in (value.mean(), low, high)
    )
    return f"{mean} [{low}, {high}]"


def interval_of_gap(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Bound the difference of two means, one − other."""
    low, high = stratified_interval([one, other], lambda draws: draws[0].mean(1) - draws[1].mean(1))
    return float(low), float(high)


def interval_of_ratio(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Bound the ratio of two means, one / other."""
    low, high = stratified_interval([one, other], lambda draws: draws[0].mean(1) / draws[1].mean(1))
    return float(low), float(high)


def ratio_with_interval(one: np.ndarray, other: np.ndarray) -> str:
    """Say how many times the other's mean one's is."""
    low, high = interval_of_ratio(one, other)
    return f"{one.mean() / other.mean():.2f} × [{low:.2f}, {high:.2f}]"


def _share(x: np.ndarray) -> str:
    low, high = bootstrap_interval(x)
    return f" [{low:.0%}, {high:.0%}]"


def _lacking(sentence: Sentence, evidence: Evidence) -> str:
    """Say why the runs there are cannot decide, "" if they can."""
    for scheme in sentence.needs:
        runs = evidence.runs[scheme]
        if len(runs) < FEWEST:
            return f"Too few seeds: {len(runs)} of {scheme}, {FEWEST} are needed."
        trained = len(runs[0].columns["return"])
        if trained < evidence.episodes:
            return f"Cut short: {trained:,} of {evidence.episodes:,} episodes."
    return ""
