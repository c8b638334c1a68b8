"""Made-up DoorKey results: the paper's table told as runs, some cells otherwise."""

from collections.abc import Mapping

import numpy as np

from payback_lab.experiments.doorkey.delay_one import approximated
from payback_lab.experiments.doorkey.figures import training_means
from payback_lab.experiments.doorkey.measures import PAIRS, SETTINGS, TABLE
from payback_lab.methods import SCHEMES
from payback_lab.runs import Result

TOTAL = 10_000_384
POINTS = 40


def run(seed: int, setting: str, scheme: str, settled: float | None, length: float, **changes) -> Result:
    """Make a run that settles after so many million steps (None: never) and ends with episodes of a length.

    `changes`: `time` (T, else as settled), `total` (steps), `tilt` (F' over the approximation of it, by scheme).
    """
    rng = np.random.default_rng(seed)
    total, time, tilt = changes.get("total", TOTAL), changes.get("time", settled), changes.get("tilt", {})
    alpha, gamma = PAIRS[setting]
    columns = {
        "steps": np.linspace(0, total, POINTS + 1)[1:].astype(np.int32),
        "episodes": np.full(POINTS, int(total / POINTS / length)),
        "truncated": np.zeros(POINTS, np.int32),
        "bonus": np.linspace(0.8, 0.4, POINTS) * alpha * (1 + 0.01 * rng.random()),
        "shaped": np.zeros(POINTS),
    }
    if scheme.startswith("grm-1"):
        figures = Result({}, summary=training_means(columns))
        columns["shaped"] += tilt.get(scheme, 1.0) * approximated(figures, gamma, not scheme.endswith("-raw"))
    factor, more = 1 + 0.02 * rng.random(), 0.2 * rng.random()
    summary = {
        "mean_length": length + more,
        "sampled_length": length - 1 + more,
        "converged": time is not None,
        "convergence_step": None if time is None else int(time * factor * 1e6),
        "settled_step": None if settled is None else int(settled * factor * 1e6),
    }
    return Result({}, {}, {"trained_steps": int(columns["steps"][-1]), **training_means(columns), **summary})


def story(
    settled: Mapping[tuple[str, str], float | None] | None = None,
    length: Mapping[tuple[str, str], float] | None = None,
    seeds: int = 5,
    **changes,
) -> dict[str, Result]:
    """Tell the paper's table as results by run id, some cells otherwise."""
    results = {}
    for setting, scheme in all_cells():
        printed = TABLE[setting][scheme]
        place = setting.split("-")[1] if scheme == "none" else setting
        times = (settled or {}).get((setting, scheme), printed.time)
        steps = (length or {}).get((setting, scheme), printed.length)
        for seed in range(seeds):
            results[f"doorkey/{place}/{scheme}/seed{seed}"] = run(
                seed + 100 * SCHEMES.index(scheme), setting, scheme, times, steps, **{"time": printed.time, **changes}
            )
    return results


def all_cells():
    return [(setting, scheme) for setting in SETTINGS for scheme in SCHEMES]


def at(settings, schemes, value):
    return {(setting, scheme): value for setting in settings for scheme in schemes}
