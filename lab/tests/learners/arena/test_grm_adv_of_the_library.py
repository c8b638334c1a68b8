"""The library's `grm_adv` and the lab's advantage-side methods are the same, to rounding."""

import jax.numpy as jnp
import numpy as np
import pytest

import payback
from payback_lab.learners.arena.advantage_side import BACK_END, BACK_LEAST, BACK_START
from payback_lab.learners.arena.estimates import estimated
from payback_lab.learners.arena.named import method_of
from payback_lab.learners.arena.schedule import shrink
from payback_lab.methods import parse_advantage_side

from .test_arena_estimates import CONFIG, rollout

pytestmark = pytest.mark.slow

NAMES = ["grm-adv-3-0.7", "grm-adv-300-0.9", "grm-adv-3-0.7-lone", "two-critics-0.8", "two-critics-0.8-back"]


@pytest.mark.parametrize("name", NAMES)
def test_the_lab_estimates_what_the_library_does(name):
    form, share = parse_advantage_side(name), 0.8
    made = rollout(1 + form.critic)
    method = method_of(name, CONFIG)
    theirs = method.estimates((), method.zeta(jnp.asarray(share)), made)
    # The lab's transform centres while it collects, so that its rollout holds F − F̄ already.
    estimator = payback.grm_adv(CONFIG.gamma, form.delay, form.lam, center=False, gae_lambda=CONFIG.gae_lambda)
    critic = {"values": made.seen.value[:, 1], "last_values": made.last_value[1]} if form.critic else {}
    weight = payback.taken_back(share) if form.taken_back else 1.0
    ours = estimator.estimate((), made.events.shaped, made.events.done.astype(bool), weight=weight, **critic)
    task = estimated(CONFIG, made, made.reward, 0)
    np.testing.assert_allclose(ours.advantage, theirs.advantage[0] - task, rtol=1e-4, atol=2e-6)
    if form.critic:
        np.testing.assert_allclose(ours.target, theirs.target[1], rtol=1e-5, atol=1e-6)


def test_the_bonus_is_taken_back_as_in_the_lab():
    for share in (0.0, BACK_START, 0.7, 0.8, 0.87, BACK_END, 1.0):
        theirs = float(shrink(share, BACK_START, BACK_END, BACK_LEAST))
        assert payback.taken_back(share) == pytest.approx(theirs, rel=1e-4)
