"""The paper's approximations of GRM with D = 1 (`sec:d1explanation`) beside the measured mean of F'.

Without the mean: F' ≈ −(1−γ)/γ · F. With it: F' ≈ (1−γ)/γ · (F̄ − F). Both take F_t ≈ F_{t−1}. But a mean over
whole episodes needs no such thing: F'_0 = G_0, F'_t = G_t − G_{t−1}/γ and, at the last step, F'_{N−1} = −G_{N−2}/γ add
up to −(1−γ)/γ · Σ_{t<N−1} G_t, G being F or F − F̄, whatever G does. Only each episode's last G, which is repaid at
once, is left out.
"""

import numpy as np

from payback_lab.claims.claim import combined, in_range, positive
from payback_lab.claims.evidence import Evidence, figure
from payback_lab.claims.rules import Decision, rule
from payback_lab.experiments.doorkey.measures import PAIRS, SETTINGS, title
from payback_lab.methods import parse_scheme
from payback_lab.runs import Result
from payback_lab.statistics import bootstrap_interval, stratified_interval

CLOSE = 0.1
"""How far measured and approximated mean may lie apart, as a share of the latter."""
ORDER = 10**0.5
"""What counts as an order of magnitude: on a logarithmic scale nearer to 10 than to 1."""
ENDS = (
    "≈: within 10 %, by the interval of the ratio over seeds; means over all steps. An episode's F' has the "
    "discounted sum 0: what is paid in full at its start is taken back at its end. Without discount it adds "
    "up to −(1−γ)/γ of all its G (F, or F − F̄) but the last, which is repaid at once, whatever F does in between. So "
    "the mean does not show that F_t ≈ F_{t−1}; the records hold no mean of the steps between the ends. With ends: the "
    "approximation without each last step, where F is α at the goal and about 0 at the time limit."
)


def measured(run: Result) -> float:
    """Return the mean of F' over all of training."""
    return figure(run, "mean_shaped")


def approximated(run: Result, gamma: float, centred: bool) -> float:
    """Return what the paper puts in its place: −(1−γ)/γ · F, or (1−γ)/γ · (F̄ − F), on average."""
    average = figure(run, "mean_average") if centred else 0.0
    return (1 - gamma) / gamma * (average - figure(run, "mean_bonus"))


def with_ends(run: Result, alpha: float, gamma: float, centred: bool) -> float:
    """Return the same without the last step of every episode: α there at the goal, about 0 at the time limit."""
    at_ends = figure(run, "average_at_ends") if centred else 0.0
    left_out = alpha * figure(run, "goals_per_step") - at_ends
    return approximated(run, gamma, centred) + (1 - gamma) / gamma * left_out


@rule
def close_to_approximation(evidence: Evidence, scheme: str) -> Decision:
    """Decide whether at every setting the mean of F' is within 10 % of the approximation of it."""
    centred = not parse_scheme(scheme)[2]
    texts, verdicts = [], []
    for setting in SETTINGS:
        (alpha, gamma), runs = PAIRS[setting], evidence.cells[setting, scheme]
        here = np.array([measured(run) for run in runs])
        paper = np.array([approximated(run, gamma, centred) for run in runs])
        ends = np.array([with_ends(run, alpha, gamma, centred) for run in runs])
        low, high = _ratio(here, paper)
        verdicts.append(in_range(low, high, 1 - CLOSE, 1 + CLOSE))
        texts.append(
            f"{title(setting)} F' {_small(here)}, approximated {_small(paper)}: "
            f"{_of(here, paper):.2f} × [{low:.2f}, {high:.2f}]; with ends {_small(ends)}: {_of(here, ends):.2f} ×"
        )
    return ". ".join(texts), combined(verdicts)


def order_of_magnitude(evidence: Evidence) -> Decision:
    """Decide whether the mean of F' is nearer to zero by an order of magnitude with F̄ than without."""
    texts, verdicts = [], []
    for setting in SETTINGS:
        raw, centred = (np.array([measured(r) for r in evidence.cells[setting, s]]) for s in ("grm-1-raw", "grm-1"))
        bounds = stratified_interval([raw, centred], lambda d: abs(d[0].mean(1)) - ORDER * abs(d[1].mean(1)))
        verdicts.append(positive(*(float(bound) for bound in bounds)))
        texts.append(f"{title(setting)} {_small(raw)} without, {_small(centred)} with")
    return "; ".join(texts), combined(verdicts)


def always_negative(evidence: Evidence) -> Decision:
    """Decide whether the mean of F' without F̄ is negative."""
    texts, verdicts = [], []
    for setting in SETTINGS:
        runs = evidence.cells[setting, "grm-1-raw"]
        values = np.array([measured(run) for run in runs])
        low, high = (float(bound) for bound in bootstrap_interval(values))
        share = np.mean([figure(run, "negative_share") for run in runs])
        verdicts.append(positive(-high, -low))
        texts.append(f"{title(setting)} {_small(values)}, below 0 in {share:.0%} of the updates")
    return "; ".join(texts), combined(verdicts)


def _ratio(here: np.ndarray, paper: np.ndarray) -> tuple[float, float]:
    """Bound the ratio of two means of the same seeds."""
    pairs = np.stack([here, paper], axis=1)
    low, high = stratified_interval([pairs], lambda draws: _of(draws[0][..., 0], draws[0][..., 1], axis=1))
    return float(low), float(high)


def _of(one: np.ndarray, other: np.ndarray, axis: int | None = None) -> np.ndarray:
    """Divide two means; NaN by zero."""
    top, bottom = one.mean(axis), other.mean(axis)
    return np.divide(top, np.where(bottom == 0, np.nan, bottom))


def _small(values: np.ndarray) -> str:
    """Write a mean of small numbers with its interval, in units of 1e-6."""
    low, high = bootstrap_interval(values)
    mean, low, high = (f"{round(1e6 * float(x), 1) + 0.0:,.1f}" for x in (values.mean(), low, high))
    return f"{mean} [{low}, {high}]e-6"
