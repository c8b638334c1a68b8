"""gymnax's own environments and wrappers with the shaping, in the hosts' environment (make test-hosts)."""

import functools
import importlib.util
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import payback
from payback.check.advantage import advantage_by_loops

pytest.importorskip("jax")
import jax
import jax.numpy as jnp

from payback.bonuses.jax import icm, rnd
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

    @pytest.mark.parametrize("make", [rnd, icm])  # icm finds the actions in the environment
    def test_cartpole_with_a_logged_extrinsic_return(self, gymnax, make):
        env, params = self.make(gymnax)
        env, bonus = gymnax.wrappers.LogWrapper(env), make(width=16, latent=8)
        env = ShapeVectorReward(env, bonus, payback.grm(0.99, 10), learner_gamma=0.99)
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


def load_example():
    spec = importlib.util.spec_from_file_location("purejaxrl_style", ROOT / "examples" / "purejaxrl_style.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


@pytest.fixture(scope="module")
def small():
    """The example with rollouts of 32 × 4 rows; each form is compiled once for all tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("gymnax.wrappers", reason="make test-hosts", exc_type=ImportError)
        example = load_example()
    example.ENVS, example.STEPS = 4, 32
    return example


@pytest.fixture(scope="module")
def run(small):
    @functools.cache
    def run(method, factor=0.05, seed=0):
        return jax.tree.map(np.asarray, small.train(jax.random.key(seed), 8, method, "CartPole-v1", factor)[1])

    return run


@pytest.mark.slow
class TestExample:
    """examples/purejaxrl_style.py, in its own training loop."""

    @pytest.mark.parametrize("method", ["none", "raw", "grm", "grm-adv"])
    def test_the_rewards_are_those_of_the_method(self, run, method):
        """CartPole pays 1 a step."""
        rows = run(method, 0.05 if method != "none" else 0.0)["rows"]
        added, bonus, done = (x.reshape(-1, 4).astype(float) for x in (rows.reward - 1, 0.05 * rows.bonus, rows.done))
        assert done.sum() > 10
        assert np.abs(bonus).max() > 0.02
        if method == "raw":
            np.testing.assert_allclose(added, bonus, atol=1e-6)
        elif method == "grm":
            assert np.abs(added).max() > 0.02
            for lane, ends in zip(added.T, done.T, strict=True):
                for episode in np.split(lane, np.flatnonzero(ends) + 1)[:-1]:
                    assert np.dot(0.99 ** np.arange(len(episode)), episode) == pytest.approx(0, abs=1e-4)
        else:
            assert not added.any()

    @pytest.mark.parametrize("method", ["grm", "grm-adv"])
    def test_the_loops_advantages_are_the_definitions(self, run, method):
        info, earlier = run(method), np.zeros(0)
        rows = info["rows"]
        assert rows.value.shape[-1] == 1 + (method == "grm-adv")
        for k in range(8):
            after = np.concatenate((rows.value[k, 1:], info["last_value"][k, None]))
            heads = [{"values": rows.value[k, ..., n], "next_values": after[..., n]} for n in range(after.shape[-1])]
            # GAE of the task is A^I's definition with λ_I = 1 and no fading.
            plain = {"gamma": 0.99, "delay": None, "lam": 1.0, "center": False}
            expected, _ = advantage_by_loops(rows.reward[k], rows.done[k], **plain, **heads[0])
            if method == "grm-adv":
                F, form = 0.05 * rows.bonus[k], {"gamma": 0.99, "delay": 10, "lam": 0.95, "earlier": earlier}
                added, _ = advantage_by_loops(F, rows.done[k], **form, **heads[1])
                expected, earlier = expected + payback.taken_back(k / 8) * added, np.append(earlier, F)
                assert k < 3 or np.abs(added).max() > 0.02  # RND pays nothing in its warm-up of 256 rows
            np.testing.assert_allclose(info["advantage"][k], expected, rtol=1e-5, atol=1e-4)

    @pytest.mark.parametrize("method", ["grm", "grm-adv"])
    def test_a_bonus_of_zero_is_plain_ppo_to_the_bit(self, run, method):
        plain, zero = run("none", 0.0), run(method, 0.0)
        for name in ("reward", "done", "bonus"):
            np.testing.assert_array_equal(getattr(zero["rows"], name), getattr(plain["rows"], name))
        np.testing.assert_array_equal(zero["advantage"], plain["advantage"])
        np.testing.assert_array_equal(zero["rows"].value[..., :1], plain["rows"].value)
        assert not zero["rows"].value[..., 1:].any()

    def test_a_run_is_repeatable(self, small, run):
        again = small.train(jax.random.key(0), 8, "grm-adv", "CartPole-v1", 0.05)[1]
        jax.tree.map(np.testing.assert_array_equal, run("grm-adv"), again)
        assert (run("grm-adv")["advantage"] != run("grm-adv", seed=1)["advantage"]).any()

    def test_a_killed_run_goes_on_to_the_bit(self, small, run, tmp_path, monkeypatch):
        """Killed in the second half, with episodes and debts open: it ends as if nothing had happened.

        The carry of grm-adv holds what GRM's does, too: the wrapper lends and repays, and nobody reads it.
        """

        def killed(*args, first=0, **options):
            return train(*args, first=first, **options) if first == 0 else 1 / 0

        file, train, asked = tmp_path / "run.npz", small.train, {"method": "grm-adv", "parts": 2}
        points = small.main(8, **asked, checkpoint=tmp_path / "whole.npz")
        monkeypatch.setattr(small, "train", killed)
        with pytest.raises(ZeroDivisionError):
            small.main(8, **asked, checkpoint=file)
        monkeypatch.setattr(small, "train", train)
        assert payback.load_state(file)["done"] == 1
        assert small.main(8, **asked, checkpoint=file) == points == small.curve(run("grm-adv"), 2)
        one, other = (payback.load_state(path) for path in (file, tmp_path / "whole.npz"))
        jax.tree.map(np.testing.assert_array_equal, one, other)
        monkeypatch.setattr(small, "curve", None)  # a finished run is only printed
        assert small.main(8, **asked, checkpoint=file) == points

    def test_another_runs_file_or_a_damaged_one_is_refused(self, small, tmp_path):
        file = tmp_path / "run.npz"
        payback.save_state(file, {"run": "CartPole-v1 with grm, seed 1"})
        with pytest.raises(SystemExit, match=r"holds the run 'CartPole-v1 with grm, seed 1', not 'asked'; pass its"):
            small.load(file, "asked", ())
        payback.save_state(file, payback.grm(0.99, 3).init(np.zeros(4)))
        with pytest.raises(SystemExit, match="holds the run None"):
            small.load(file, "asked", ())
        payback.save_state(file, {"run": "asked", "carry": [np.zeros(3)], "points": [], "done": 1})
        with pytest.raises(SystemExit, match=r"run\.npz holds"):
            small.load(file, "asked", (np.zeros(4),))
        file.write_bytes(file.read_bytes()[:-40])
        with pytest.raises(SystemExit, match=r"run\.npz is not a state that save_state wrote, or is damaged"):
            small.load(file, "asked", ())

    @pytest.mark.parametrize("more", [["--compare"], []])
    def test_a_checkpoint_needs_a_run_and_a_folder(self, small, more, tmp_path, capsys):
        with pytest.raises(SystemExit) as refused:
            small.arguments(["--checkpoint", str(tmp_path if more else tmp_path / "none" / "file"), *more])
        assert refused.value.code == 2
        assert "--checkpoint keeps one run" in capsys.readouterr().err

    def test_every_method_is_compared(self, small, run, monkeypatch):
        drawn = []
        monkeypatch.setattr(small, "draw", lambda points, path: drawn.append(points))
        points = small.compare(8, 0, "CartPole-v1")
        assert drawn == [points]
        labels = ["none", *(f"{method}, α = 0.05" for method in ("raw", "grm", "grm-adv"))]
        assert list(dict.fromkeys(p["method"] for p in points)) == labels
        (drawn,) = (p["return"] for p in points if p["method"] == labels[2] and p["steps"] == 1024)
        ended = run("grm")["returned_episode"][7]
        assert drawn == pytest.approx(run("grm")["returned_episode_returns"][7][ended].mean())

    @pytest.mark.parametrize("method", ["grm", "grm-adv"])
    def test_it_learns(self, method):
        pytest.importorskip("gymnax.wrappers", reason="make test-hosts", exc_type=ImportError)
        points = load_example().main(method=method)
        assert points[0][1] < 200
        assert points[-1][1] > 400

    def test_images_are_read(self, small):
        """The lab's MiniGrid engine, where both it and the minigrid package are installed."""
        pytest.importorskip("minigrid")
        pytest.importorskip("payback_lab")
        info = small.train(jax.random.key(0), 8, "grm-adv", "DoorKey-8x8", 0.1)[1]
        assert np.isfinite(info["advantage"]).all()
        assert np.asarray(info["rows"].bonus).min() > 0
