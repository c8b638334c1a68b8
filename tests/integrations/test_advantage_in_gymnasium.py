"""grm_adv on Gymnasium's vectors in each autoreset mode, against the definition."""

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import payback
from payback.check.advantage import advantage_by_loops

from .gymnasium_vectors import GAMMA, MODES, B, drive

DELAY, LAM, T = 3, 0.8, 25
pytestmark = pytest.mark.gymnasium


def rollouts(walk, mode):
    """Return three rollouts of (F, dones, truncated, valid), (T, B) each; F is of an episode's own last observation."""
    envs, rows = SyncVectorEnv([walk] * B, autoreset_mode=mode), []
    for step in drive(envs, mode, 3 * T):
        reached, done = step["next_obs"].copy(), step["terminated"] | step["truncated"]
        for k in np.flatnonzero(done) if mode is AutoresetMode.SAME_STEP else ():
            reached[k] = step["info"]["final_obs"][k]
        F = np.abs(reached - step["obs"]).sum(axis=-1).astype(float)
        rows.append((F, done, step["truncated"], ~step["reset_row"]))
    columns = [np.stack(column) for column in zip(*rows, strict=True)]
    return [[column[k * T : (k + 1) * T] for column in columns] for k in range(3)]


@pytest.mark.parametrize("on_truncation", ["settle", "carry"])
@pytest.mark.parametrize("mode", MODES)
def test_it_is_what_the_definition_says(mode, on_truncation, walk):
    """Terminated and truncated episodes over the borders of three rollouts, with F̄ of the transitions alone."""
    estimator = payback.grm_adv(GAMMA, DELAY, LAM, on_truncation=on_truncation)
    state, earlier, resets = estimator.init(np.zeros(B)), np.zeros(0), 0
    for F, dones, truncated, valid in rollouts(walk, mode):
        state, added, _ = estimator.estimate(state, F, dones, truncated, valid)
        given = {"truncated": truncated, "valid": valid, "on_truncation": on_truncation, "earlier": earlier}
        expected, _ = advantage_by_loops(F, dones, gamma=GAMMA, delay=DELAY, lam=LAM, **given)
        np.testing.assert_allclose(added, expected, atol=1e-12)
        earlier, resets = np.append(earlier, F[valid]), resets + (~valid).sum()
        assert truncated.any()
        assert (dones & ~truncated).any()
    assert (resets > 0) == (mode is AutoresetMode.NEXT_STEP)
    assert float(state.mean) == pytest.approx(earlier.mean())
