"""The arithmetic behind two explanations on DoorKey: when waiting pays, and the mean of F' with D = 1."""

import numpy as np
import pytest

import payback
from payback_lab.experiments.doorkey.delay_one import approximated, measured, with_ends
from payback_lab.experiments.doorkey.figures import training_means
from payback_lab.experiments.doorkey.measures import PAIRS
from payback_lab.experiments.doorkey.rules import waiting_pays
from payback_lab.runs import Result


def test_waiting_pays_where_the_whole_sum_says_so():
    for alpha, gamma in PAIRS.values():
        for n in range(1, 12):
            t = np.arange(640)
            gains = np.cumsum(gamma**t * (alpha / (n + t + 1) - (1 - gamma)))
            assert waiting_pays(alpha, gamma, n) == bool((gains > 1e-12).any())


@pytest.mark.parametrize("centred", [False, True])
def test_the_mean_of_d1_follows_from_the_episodes_ends(centred):
    """F is pure noise, far from F_t ≈ F_{t−1}, and yet the mean is what the approximation says, less the last steps."""
    alpha, gamma, steps, rows = 0.02, 0.995, 128, 16
    rng = np.random.default_rng(0)
    transform = payback.grm(gamma, 1, center=centred)
    state, columns = transform.init(np.zeros(rows)), {name: [] for name in ("episodes", "truncated", "bonus", "shaped")}
    for update in range(300):
        done = rng.random((steps, rows)) < 1 / (40 - update / 10)
        # Less and less is paid as training goes on, as when an agent learns to go straight.
        bonus = np.where(done, alpha, rng.exponential(alpha / (1 + update / 100), (steps, rows)))
        state, shaped = payback.shape_rollout(transform, state, bonus, done)
        for name, value in zip(columns, (done.sum(), 0, bonus.mean(), shaped.mean()), strict=True):
            columns[name].append(value)
    curve = {"steps": np.arange(1, 301) * steps * rows, **{name: np.array(values) for name, values in columns.items()}}
    result = Result({}, summary=training_means(curve))
    assert measured(result) == pytest.approx(with_ends(result, alpha, gamma, centred), rel=0.02)
    assert measured(result) != pytest.approx(approximated(result, gamma, centred), rel=0.02)
