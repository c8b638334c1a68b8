"""gymnax's own environments and wrappers with the shaping, in the hosts' environment (make test-hosts)."""

import importlib.util
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import payback

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

from payback.bonuses.jax import rnd
from payback.integrations.gymnax import ShapeReward, ShapeVectorReward, check_episodes

B = 5
ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.host,
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
]


class TestGymnax:
    """The wrappers around gymnax's own environments and wrappers."""

    @pytest.fixture(autouse=True)
    def gymnax(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pytest.importorskip("gymnax.wrappers", reason="make test-hosts", exc_type=ImportError)
            return sys.modules["gymnax"]

    def make(self, gymnax, name="CartPole-v1", limit=20):
        env, params = gymnax.make(name)
        return env, params.replace(max_steps_in_episode=limit)

    def run(self, env, params, steps=100):
        keys = jax.random.split(jax.random.key(0), B)
        _, state = env.reset(keys, params)

        def one(state, key):
            action = jax.random.randint(key, (B,), 0, env.num_actions)
            obs, state, *out = env.step(jax.random.split(key, B), state, action, params)
            return state, (obs, *out)

        return jax.tree.map(np.asarray, jax.lax.scan(one, state, jax.random.split(jax.random.key(1), steps))[1])

    def test_cartpole_with_a_logged_extrinsic_return(self, gymnax):
        env, params = self.make(gymnax)
        transform = payback.grm(0.99, 10)
        env = ShapeVectorReward(gymnax.wrappers.LogWrapper(env), rnd(width=16, latent=8), transform, learner_gamma=0.99)
        _, reward, terminated, truncated, info = self.run(env, params)
        assert terminated.sum() > 15
        assert not truncated.any()
        assert info["truncated"].sum() > 3
        assert (info["extrinsic"] == 1).all()
        np.testing.assert_array_equal(info["returned_episode"], terminated)
        # CartPole pays 1 a step: LogWrapper, inside, measures the length of each episode, whatever the bonus.
        np.testing.assert_array_equal(info["returned_episode_returns"], info["returned_episode_lengths"])
        assert np.abs(reward - 1).max() > 0.1
        assert check_episodes(info) == 0

    def test_the_log_wrapper_may_be_outside(self, gymnax):
        env, params = self.make(gymnax)
        shaped = ShapeReward(
            env, lambda o, a, n, i: jnp.abs(n[:, 0]), payback.pbim(1.0, center=False), learner_gamma=1.0
        )
        logged = gymnax.wrappers.LogWrapper(shaped)
        _, state = logged.reset(jax.random.key(0), params)
        for t in range(30):
            _, state, *_, info = logged.step(jax.random.key(t), state, 0, params)
            if info["returned_episode"]:
                break
        # With γ = 1 loans and repayments add up to nothing: the shaped return is the extrinsic one.
        assert float(info["returned_episode_returns"]) == pytest.approx(t + 1, abs=1e-4)

    def test_the_legacy_step_has_five_values(self, gymnax):
        env, params = self.make(gymnax)
        old = gymnax.wrappers.LegacyStepAPIWrapper(env)
        shaped = ShapeVectorReward(old, lambda o, a, n, i: jnp.abs(n[:, 0]), payback.grm(0.99, 3), learner_gamma=0.99)
        _, _, done, info = self.run(shaped, params)
        assert done.sum() > 15
        # Its info tells time limits apart all the same, and has the last observation.
        assert info["truncated"].sum() > 3
        np.testing.assert_allclose(info["intrinsic"], np.abs(info["final_observation"][..., 0]))
        assert check_episodes(info) == 0

    def test_the_space_has_room_for_the_debt(self, gymnax):
        env, params = self.make(gymnax)
        shaped = ShapeVectorReward(env, "discount", payback.grm(0.99, 3), observe_debt=True, learner_gamma=0.99)
        space = shaped.observation_space(params)
        assert space.shape == (5,)
        obs, *_ = self.run(shaped, params, 20)
        assert obs.shape[-1] == 5
        assert shaped.num_actions == 2

    @pytest.mark.parametrize("method", ["grm", "grm-adv"])
    def test_the_example_learns(self, gymnax, method):
        spec = importlib.util.spec_from_file_location("purejaxrl_style", ROOT / "examples" / "purejaxrl_style.py")
        example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(example)
        early, late = example.main(method=method)
        assert early < 200
        assert late > 400
