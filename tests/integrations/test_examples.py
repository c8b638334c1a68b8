"""The examples run, and learn what they set out to learn."""

import importlib.util
import sys
from pathlib import Path
from unittest.mock import MagicMock

import gymnasium as gym
import numpy as np
import pytest

import payback
from payback.check.advantage import advantage_by_loops

pytest.importorskip("torch")
pytest.importorskip("minigrid")
EXAMPLES = Path(__file__).parents[2] / "examples"
SIZE = ["--steps", "1024", "--envs", "4", "--rollout", "32"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::payback.InterestWarning"),
    pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rollouts(*line):
    """Train on eight rollouts of 32 × 4 rows, and return what each update saw."""
    kept = []
    load("ppo_rnd_minigrid").main([*SIZE, *line], keep=keep_in(kept))
    assert len(kept) == 8
    return kept


def keep_in(kept):
    return lambda rows: kept.append({name: x.numpy().copy() for name, x in rows.items()})


def killed(*line, after=3):
    """Train like `rollouts`, and die in an update, with a checkpoint of those before."""

    def keep(rows):
        seen.append(rows)
        if len(seen) > after:
            raise KeyboardInterrupt

    seen = []
    with pytest.raises(KeyboardInterrupt):
        load("ppo_rnd_minigrid").main([*SIZE, *line], keep=keep)


def resumed(*line, after=3):
    kept = []
    load("ppo_rnd_minigrid").main([*SIZE, *line], keep=keep_in(kept))
    assert len(kept) == 8 - after
    return kept


def column(kept, name):
    return np.concatenate([rows[name] for rows in kept])


def test_gymnasium_q_learning_learns_the_lake():
    assert load("gymnasium_q_learning").main() > 0.8


def test_ppo_rnd_minigrid_learns():
    assert load("ppo_rnd_minigrid").main(["--steps", "20000"]) > 0.85


def test_ppo_rnd_minigrid_pays_the_same_in_both_forms():
    """Step by step and rollout by rollout, over rollout boundaries; the learners differ by rounding only."""
    step, rollout = (rollouts("--form", form) for form in ("step", "rollout"))
    np.testing.assert_array_equal(column(step, "dones"), column(rollout, "dones"))
    np.testing.assert_allclose(column(step, "rewards"), column(rollout, "rewards"), atol=1e-4)
    assert column(step, "dones").sum() > 4
    assert np.abs(column(step, "rewards")).max() > 0.001


@pytest.mark.parametrize("method", ["none", "raw", "grm-adv"])
def test_ppo_rnd_minigrid_learns_with_every_method(method):
    assert load("ppo_rnd_minigrid").main(["--steps", "20000", "--method", method]) > 0.85


def test_grm_adv_leaves_the_rewards_to_the_task():
    kept = rollouts("--method", "grm-adv", "--novelty", "count")
    rewards, dones = column(kept, "rewards"), column(kept, "dones")
    assert dones.any()
    assert not rewards[~dones].any()


def test_grm_leaves_each_episode_its_discounted_return():
    """A success in step n of Empty-5x5 pays 1 − 0.9n/100, and the time limit of 100 steps 0."""
    kept, seen = rollouts("--method", "grm", "--novelty", "count"), 0
    rewards, dones = column(kept, "rewards").astype(float), column(kept, "dones")
    assert np.abs(rewards[~dones]).max() > 0.1
    for lane, ends in zip(rewards.T, dones.T, strict=True):
        for episode in np.split(lane, np.flatnonzero(ends) + 1)[:-1]:
            n = len(episode)
            paid = 0.99 ** (n - 1) * (1 - 0.009 * n) if n < 100 else 0
            assert np.dot(0.99 ** np.arange(n), episode) == pytest.approx(paid, abs=1e-4)
            seen += 1
    assert seen > 4


@pytest.mark.parametrize("method", ["none", "raw", "grm", "grm-adv"])
def test_the_loops_advantages_are_the_definitions(method):
    kept = rollouts("--method", method, "--novelty", "count", "--bonus", "0.5")
    earlier, ends = np.zeros(0), 0
    for k, rows in enumerate(kept):
        after = np.concatenate((rows["values"][1:], rows["last_values"][None]))
        heads = [{"values": rows["values"][..., n], "next_values": after[..., n]} for n in range(after.shape[-1])]
        # GAE of the task is A^I's definition with λ_I = 1 and no fading.
        plain = {"gamma": 0.99, "delay": None, "lam": 1.0, "center": False}
        expected, _ = advantage_by_loops(rows["rewards"], rows["dones"], **plain, **heads[0])
        assert len(heads) == 1 + (method == "grm-adv")
        if method == "grm-adv":
            F, weight = 0.5 * rows["bonuses"], payback.taken_back(k / len(kept))
            form = {"gamma": 0.99, "delay": 10, "lam": 0.95, "earlier": earlier}
            added, _ = advantage_by_loops(F, rows["dones"], **form, **heads[1])
            expected, earlier = expected + weight * added, np.append(earlier, F)
            assert (weight == 1) == (k <= 5)
            assert np.abs(added).max() > 0.1
        np.testing.assert_allclose(rows["advantages"], expected, atol=1e-5)
        ends += rows["dones"].sum()
    assert ends > 4


@pytest.mark.parametrize("method", ["raw", "grm", "grm-adv"])
def test_a_bonus_of_zero_is_plain_ppo_to_the_bit(method):
    plain = rollouts("--method", "none", "--novelty", "count")
    zero = rollouts("--method", method, "--novelty", "count", "--bonus", "0")
    for name in ("rewards", "dones", "bonuses", "advantages"):
        np.testing.assert_array_equal(column(zero, name), column(plain, name))
    np.testing.assert_array_equal(column(zero, "values")[..., :1], column(plain, "values"))
    assert not column(zero, "values")[..., 1:].any()


@pytest.mark.parametrize("method", ["grm", "grm-adv"])
def test_a_run_is_repeatable(method):
    first, second, other = (rollouts("--method", method, "--seed", seed) for seed in "110")
    for name in first[0]:
        np.testing.assert_array_equal(column(first, name), column(second, name))
    assert (column(first, "values") != column(other, "values")).any()


@pytest.fixture
def border_env():
    """Episodes of 32 steps, the rollout's length, that begin alike: too large for its goal to be reached."""
    gym.register("Border-v0", "minigrid.envs:EmptyEnv", kwargs={"size": 19, "max_steps": 32})
    yield "Border-v0"
    gym.registry.pop("Border-v0")


@pytest.mark.parametrize("method", ["grm", "grm-adv"])
def test_a_killed_run_goes_on_to_the_bit_where_all_episodes_ended(method, border_env, tmp_path):
    """Networks, optimiser, RND, F̄, generator and progress are those of the checkpoint: so is all that follows."""
    line = ("--method", method, "--env", border_env)
    file = ("--checkpoint", str(tmp_path / "run.npz"))
    whole = rollouts(*line)
    killed(*line, *file)
    later = resumed(*line, *file)
    assert column(whole, "dones")[31::32].all()
    assert column(whole, "dones").sum() == 4 * 8
    for name in whole[0]:
        np.testing.assert_array_equal(column(whole[3:], name), column(later, name))
    assert resumed(*line, *file, after=8) == []  # a finished run is only reported


def test_a_run_that_goes_on_owes_nothing_of_its_cut_episodes(tmp_path):
    line = ("--novelty", "count", "--env", "MiniGrid-Empty-Random-6x6-v0", "--checkpoint", str(tmp_path / "run.npz"))
    killed(*line)
    before = payback.load_state(tmp_path / "run.npz")
    assert payback.owed(payback.grm(0.99, 10), before["loans"][-1]).all()
    kept, seen = resumed(*line), 0
    rewards, dones = column(kept, "rewards").astype(float), column(kept, "dones")
    for lane, ends in zip(rewards.T, dones.T, strict=True):
        if ends.any():
            n = np.flatnonzero(ends)[0] + 1
            paid = 0.99 ** (n - 1) * (1 - 0.9 * n / 144) if n < 144 else 0
            assert np.dot(0.99 ** np.arange(n), lane[:n]) == pytest.approx(paid, abs=1e-4)
            seen += 1
    assert seen > 1


def test_a_run_that_goes_on_draws_new_episodes(tmp_path):
    """Its generators go on in their streams, by few numbers: no layout of the first updates comes again."""
    line = ("--novelty", "count", "--env", "MiniGrid-Empty-Random-6x6-v0", "--checkpoint", str(tmp_path / "run.npz"))
    killed(*line, after=7)
    before = payback.load_state(tmp_path / "run.npz")["generators"]
    resumed(*line, after=7)
    for one, other in zip(before, payback.load_state(tmp_path / "run.npz")["generators"], strict=True):
        stream = np.random.PCG64()
        stream.state = one
        assert other["state"] in [stream.advance(1).state["state"] for _ in range(40)]


def test_another_runs_checkpoint_or_a_damaged_one_is_refused(tmp_path, capsys):
    main, file = load("ppo_rnd_minigrid").main, tmp_path / "run.npz"
    line = [*SIZE, "--checkpoint", str(file)]
    killed("--checkpoint", str(file), after=1)
    for more, words in ((["--seed", "1"], "--seed 0"), (["--method", "none", "--lam", "1"], "--method grm --lam 0.95")):
        with pytest.raises(SystemExit, match=rf"run\.npz was trained with {words}; pass that, or name another file"):
            main([*line, *more])
    whole = file.read_bytes()
    for damaged in (whole[:-30], b"", b"\x80\x04K\x01."):  # the last is a pickle
        file.write_bytes(damaged)
        with pytest.raises(SystemExit, match=r"run\.npz is not a state that save_state wrote, or is damaged"):
            main(line)
    for foreign in (payback.grm(0.99, 3).init(np.zeros(4)), {"run": "CartPole-v1 with grm"}):
        payback.save_state(file, foreign)
        with pytest.raises(SystemExit, match="is not a checkpoint of this script"):
            main(line)
    for wrong in ([*line, "--compare"], ["--checkpoint", str(tmp_path / "none" / "run.npz")]):
        with pytest.raises(SystemExit) as refused:
            main(wrong)
        assert refused.value.code == 2
        assert "--checkpoint keeps one run" in capsys.readouterr().err


def test_the_curves_are_drawn(tmp_path):
    pytest.importorskip("altair")
    example = load("ppo_rnd_minigrid")
    asked = example.arguments(["--steps", "4096", "--runs", str(tmp_path / "runs.json")])
    example.compare(asked, tmp_path / "curves.svg", least=0)
    drawn = (tmp_path / "curves.svg").read_text()
    assert all(name in drawn for name in ("none", "raw, α = 0.", "grm, α = 0.02", "grm-adv, α = 0.02"))
    example.train = None  # a second call makes no run again
    example.compare(asked, tmp_path / "again.svg", least=0)


def test_the_page_quotes_the_committed_comparison(tmp_path, capsys):
    pytest.importorskip("altair")
    example, runs = load("ppo_rnd_minigrid"), EXAMPLES / "ppo_rnd_minigrid.json"
    example.train = None  # every run is in the file
    example.compare(example.arguments(["--seeds", "3", "--runs", str(runs)]), tmp_path / "curves.svg")
    printed = [line for line in capsys.readouterr().out.splitlines() if ": solved in" in line]
    page = (EXAMPLES.parent / "docs" / "results" / "hosts.md").read_text()
    assert len(printed) == 4
    assert [line for line in printed if line not in page] == []


def test_solved_is_where_the_return_stays_high():
    solved_step = load("ppo_rnd_minigrid").solved_step
    assert solved_step([(1, 0.95), (2, 0.5), (3, 0.85), (4, 0.95)]) == 3
    assert solved_step([(1, 0.95), (2, 0.5)]) is None


def test_the_curves_of_the_jax_example_are_drawn(tmp_path, monkeypatch):
    """Its tests are in test_gymnax_environments.py, in an environment without altair; drawing needs no gymnax."""
    pytest.importorskip("altair")
    for name in ("gymnax", "gymnax.wrappers", "optax"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    points = [{"method": "grm, α = 0.05", "steps": steps, "return": 1.0} for steps in (1, 2)]
    load("purejaxrl_style").draw(points, tmp_path / "curves.svg")
    assert "grm, α = 0.05" in (tmp_path / "curves.svg").read_text()
