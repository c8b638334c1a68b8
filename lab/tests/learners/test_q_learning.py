"""The jitted learner against a plain one, and what it promises: own lanes, the law, no RND where none is asked."""

import itertools
import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import payback
from payback_lab.environments.cliff import RIGHT, UP, Cliff
from payback_lab.intrinsic import rnd
from payback_lab.learners.q_learning import train as q_learning
from payback_lab.learners.q_learning.config import QLearning
from payback_lab.learners.q_learning.train import Trained, choose, epsilon, greedy_episode, make_train
from payback_lab.methods import MATCHED, SCHEMES

PLAIN = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "plain_q_learning.py")))
# Small, and with all ends within reach: falls, arrivals and the time limit.
SMALL = QLearning(
    episodes=80,
    columns=3,
    limit=12,
    step_size=0.3,
    epsilon_fall=0.02,
    rnd_scale=20.0,
    rnd_hidden=(8,),
    rnd_outputs=8,
    rnd_rate=3e-4,
)


@cache
def compiled(scheme: str) -> Callable[..., list[Trained]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(q_learning, "CHUNK", 97)  # so that training takes several, and lanes end in different ones
        return make_train(SMALL, scheme)


@cache
def trained(scheme: str) -> list[Trained]:
    return compiled(scheme)(tuple(range(10)))


def slow_but_one(schemes) -> list:
    """Each scheme is compiled for itself; `make test` has one of them."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name != "grm-10")) for name in schemes]


def same(one: Trained, other: Trained) -> bool:
    pairs = zip((*one.episodes, one.q), (*other.episodes, other.q), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("scheme", slow_but_one(["none", "im", "pbim", "grm-10"]))
def test_same_as_the_plain_learner(scheme):
    seed = 4
    ours = trained(scheme)[seed]
    rnd_key, key = jax.random.split(jax.random.key(seed))
    first = rnd.init(rnd_key, SMALL.cliff.cells, SMALL.rnd_hidden, SMALL.rnd_outputs)
    draw = jax.jit(jax.vmap(lambda t: jax.random.uniform(jax.random.fold_in(key, t), (2,))))
    draws = iter(np.asarray(draw(jnp.arange(SMALL.episodes * SMALL.limit))).tolist())
    curiosity = PLAIN.TorchRnd(_table(first.target), _network(first.predictor), SMALL.cliff.cells, SMALL.rnd_rate)
    q, episodes = PLAIN.train(SMALL, scheme, payback.center(SMALL.mean_horizon), curiosity, draws)
    length, total, bonus = map(np.array, zip(*episodes, strict=True))
    np.testing.assert_array_equal(ours.episodes.length, length)
    np.testing.assert_array_equal(ours.episodes.reward, total)
    np.testing.assert_allclose(ours.episodes.intrinsic, bonus, rtol=1e-3)
    np.testing.assert_allclose(ours.q, q, rtol=1e-3, atol=1e-2)
    ends = set(zip(length.tolist(), total.tolist(), strict=True))
    assert (SMALL.limit, -SMALL.limit) in ends, "no episode ran into the time limit"
    assert any(total > 0 for _, total in ends), "no episode arrived"


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["none", "grm-10"])
def test_a_seed_does_not_depend_on_its_neighbours(scheme):
    full = trained(scheme)
    by_steps = sorted(range(10), key=lambda seed: full[seed].episodes.length.sum())
    for seeds in [tuple(by_steps[:1]), (3, 7), (7, 100, 3, 2**32 - 1)]:
        beside = compiled(scheme)(seeds)
        assert len(beside) == len(seeds)
        assert all(same(one, full[seed]) for seed, one in zip(seeds, beside, strict=True) if seed < 10)
    assert not same(full[3], full[7])


@pytest.mark.slow
def test_a_seed_does_not_depend_on_the_chunks(monkeypatch):
    expected = trained("pbim")[1:3]
    monkeypatch.setattr(q_learning, "CHUNK", 130)
    assert all(map(same, make_train(SMALL, "pbim")((1, 2)), expected))


@pytest.mark.parametrize("scheme", slow_but_one(MATCHED))
def test_the_law_holds_inside_the_loop(scheme):
    for run in trained(scheme):
        assert (run.episodes.turnover > 0).mean() > 0.5
        assert (np.abs(run.episodes.shaped) <= 1e-5 * run.episodes.turnover).all()


@pytest.mark.slow
def test_a_broken_law_would_show(monkeypatch):
    leaky = payback.match_after(0.9, 10)  # another γ than the learner's
    monkeypatch.setattr(q_learning, "transform_of", lambda *_: leaky)
    (run,) = make_train(SMALL, "grm-10")([0])
    assert (np.abs(run.episodes.shaped) > 1e-3 * run.episodes.turnover).mean() > 0.5


@pytest.mark.slow
def test_plain_im_is_not_repaid():
    for run in trained("im"):
        np.testing.assert_allclose(run.episodes.shaped, run.episodes.turnover, rtol=1e-5)
        assert (run.episodes.intrinsic > 0).all()


@pytest.mark.slow
def test_none_does_not_pay_for_rnd(monkeypatch):
    def forbidden(*_):
        raise AssertionError("RND was called")

    monkeypatch.setattr(rnd, "init", forbidden)
    monkeypatch.setattr(rnd, "update", forbidden)
    (run,) = make_train(SMALL, "none")([0])
    assert not run.episodes.intrinsic.any()
    with pytest.raises(AssertionError, match="RND was called"):
        make_train(SMALL, "im")


@pytest.mark.slow
def test_every_scheme_trains_all_its_episodes_to_the_end():
    shares = []
    runs = compiled("grm-10-raw")([5, 6], shares.append)
    assert [len(run.episodes.reward) for run in runs] == [SMALL.episodes] * 2
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)
    assert {scheme: len(trained(scheme)[0].episodes.length) for scheme in SCHEMES} == dict.fromkeys(SCHEMES, 80)


@pytest.mark.parametrize("seeds", [[], list(range(11))])
def test_refuses_a_batch_that_does_not_fit(seeds):
    with pytest.raises(ValueError, match="A batch holds 1 to 10 seeds"):
        compiled("none")(seeds)


def test_epsilon_falls_and_stops():
    falls = [float(epsilon(QLearning(), jnp.asarray(k))) for k in (0, 1, 100, 180, 5000)]
    assert falls == pytest.approx([1, 0.995, 0.5, 0.1, 0.1])


@pytest.mark.parametrize(
    ("values", "chance", "expected"),
    [
        ([0, 0, 0, 0], 0.0, [0.25] * 4),
        ([1, 3, 3, -1], 0.0, [0, 0.5, 0.5, 0]),
        ([1, 3, 3, -1], 0.2, [0.05, 0.45, 0.45, 0.05]),
        ([5, 3, 3, -1], 1.0, [0.25] * 4),
    ],
)
def test_ties_are_broken_at_random(values, chance, expected):
    draws = jax.random.uniform(jax.random.key(0), (20_000, 2))
    actions = jax.vmap(lambda d: choose(jnp.array(values, jnp.float32), jnp.float32(chance), d))(draws)
    np.testing.assert_allclose(np.bincount(actions, minlength=4) / len(actions), expected, atol=0.015)


def test_greedy_episode():
    cliff = Cliff()
    q = np.zeros((cliff.cells, 4))
    assert greedy_episode(cliff, q) == (-50, 50)  # all equal: up for ever
    q[:, RIGHT:] = 1
    assert greedy_episode(cliff, q) == (-100, 1)  # right, down and left are equal: right
    q[cliff.start, UP] = 2
    q[cliff.start - 1, 2] = 2
    assert greedy_episode(cliff, q) == (88, 13)


def _network(layers: rnd.Layers) -> torch.nn.Sequential:
    parts = []
    for weights, biases in layers:
        linear = torch.nn.Linear(*weights.shape)
        linear.weight.data, linear.bias.data = (torch.tensor(np.asarray(x)) for x in (weights.T, biases))
        parts += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])


def _table(said: jax.Array) -> torch.nn.Linear:
    """Stand in for the target network: what it says of each one-hot input."""
    table = torch.nn.Linear(*said.shape, bias=False)
    table.weight.data = torch.tensor(np.asarray(said).T)
    return table


@pytest.mark.slow
def test_seeds_differ_in_network_and_in_draws():
    for one, other in itertools.combinations(trained("im")[:4], 2):
        assert one.episodes.intrinsic[0] != other.episodes.intrinsic[0]
        assert not np.array_equal(one.episodes.length, other.episodes.length)
