"""Potential-based shaping in gymnax's form: every step of a scan pays γΦ(s′) − Φ(s), with Φ = 0 at true ends.

The walk needs JAX alone. Runs in the hosts' environment (make test-hosts).
"""

import numpy as np
import pytest

pytest.importorskip("jax")
import jax

from payback.integrations.gymnax import ShapeWithPotential

from .jax_walk import GAMMA, OldWalk, Walk, play

pytestmark = pytest.mark.host


class Vmapped:
    def __init__(self, env):
        self.reset, self.step = jax.vmap(env.reset), jax.vmap(env.step)


def first_number(obs):
    return obs[:, 0]


@pytest.mark.parametrize("walk", [Walk, OldWalk])
def test_every_step_pays_the_difference(walk):
    env = ShapeWithPotential(walk(), first_number, gamma=GAMMA)
    (obs, _, after, reward, *ends, info), _ = play(Vmapped(env))
    last = info.get("final_observation", after)[..., 0]
    over = np.logical_or.reduce(ends)
    expected = GAMMA * last * ~ends[0] - obs[..., 0]
    np.testing.assert_allclose(info["shaped"], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(reward, info["extrinsic"] + info["shaped"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(info["owed"], np.where(ends[0], 0, last), rtol=1e-5)
    assert ends[0].sum() > 20
    assert over.sum() > ends[0].sum() or len(ends) == 1


def test_bad_potentials_raise_while_they_are_traced():
    key = jax.random.key(0)
    with pytest.raises(ValueError, match=r"the potential has shape \(1, 2\), not \(1,\)"):
        ShapeWithPotential(Walk(), lambda obs: obs, gamma=GAMMA).reset(key)
    with pytest.raises(TypeError, match="potential must be a function"):
        ShapeWithPotential(Walk(), 3.0, gamma=GAMMA)
    with pytest.raises(ValueError, match="gamma"):
        ShapeWithPotential(Walk(), first_number, gamma=2.0)

    class Hides(Walk):
        def step(self, *args):
            *rest, _ = super().step(*args)
            return *rest, {}

    env = ShapeWithPotential(Hides(), first_number, gamma=GAMMA)
    _, state = env.reset(key)
    with pytest.raises(KeyError, match="needs the last observation"):
        env.step(key, state, 0)
