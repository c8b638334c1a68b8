"""The auditor beside one pass of numpy.cumsum over the same column, as ratios measured side by side in one run.

    python benchmarks/audit.py

In memory, float32, rows grouped by environment. The bound is 4 times cumsum. Short episodes cost most, and long ones
that must be judged from their end as well.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import payback
from payback import audit

GAMMA, B, T, ROUNDS = 0.99, 16, 500_000, 7
BOUND = 4.0


def log(mean_length: int) -> dict[str, Any]:
    """A lawful log of B environments, environment by environment."""
    rng = np.random.default_rng(0)
    F = rng.normal(size=(T, B)).astype(np.float32)
    dones = rng.random((T, B)) < 1 / mean_length
    match = payback.match_after(GAMMA, 10)
    _, shaped = payback.shape_rollout(match, match.init(F[0]), F, dones)
    columns = {"shaped": shaped, "dones": dones, "environments": np.broadcast_to(np.arange(B), (T, B))}
    return {name: np.ascontiguousarray(x.T).reshape(-1) for name, x in columns.items()}


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def ratio(columns: dict[str, Any]) -> float:
    """The auditor's least time over cumsum's, the two taken in turns."""
    pairs = [
        (seconds(lambda: audit(gamma=GAMMA, **columns)), seconds(lambda: np.cumsum(columns["shaped"])))
        for _ in range(ROUNDS)
    ]
    ours, theirs = (min(x) for x in zip(*pairs, strict=True))
    return ours / theirs


def main() -> None:
    print(f"{B * T:,} rows, float32, {B} environments; time of audit over time of numpy.cumsum (bound {BOUND:g})")
    for mean_length in (10, 50, 200, 1000):
        columns = log(mean_length)
        assert audit(gamma=GAMMA, **columns).broken == 0
        print(f"  episodes of about {mean_length:>5} steps: {ratio(columns):.2f}")


if __name__ == "__main__":
    main()
