"""The learner on tasks with a known answer, each of which takes one ability; and a run that stops and goes on."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import payback
from payback_lab.learners.checkpoint import load_checkpoint, save_checkpoint
from payback_lab.learners.ppo.actor_critic import act
from payback_lab.learners.ppo.config import PPO
from payback_lab.learners.ppo.lstm import HIDDEN, Memory
from payback_lab.learners.ppo.play import evaluate, play
from payback_lab.learners.ppo.rollout import image_of
from payback_lab.learners.ppo.train import Trainer, make_train
from payback_lab.learners.ppo.update import unflatten
from payback_lab.user_error import UserError

pytestmark = pytest.mark.slow

PROBES = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "probes.py")))
CONFIG = PPO(gamma=0.9, alpha=0.01, steps=32, batch=128, entropy_weight=0.003, learning_rate=4e-4)
ABOUT = {"seed": 0, "config": "probes"}


@pytest.fixture(scope="module")
def trainer() -> Trainer:
    return make_train(CONFIG, PROBES.PROBES, payback.grm(CONFIG.gamma, delay=1))


@pytest.fixture(scope="module")
def trained(trainer):
    """Return the network after 200 updates, 102,400 steps."""
    train = trainer.init(jax.random.key(0))
    for _ in range(200):
        train, _ = trainer.update(train)
    return unflatten(train.learner.parameters)


@pytest.fixture(scope="module")
def seen(trained):
    """Return what the network thinks along episodes of each kind and cue: kind → values (steps, cues), actions."""
    kinds = jnp.repeat(jnp.arange(4), 2)
    state = PROBES.State(kinds, jnp.arange(8) % 2, jnp.zeros(8, jnp.int32))
    memory = Memory(jnp.zeros((HIDDEN, 8)), jnp.zeros((HIDDEN, 8)))
    values, actions = [], []
    for _ in range(max(PROBES.LENGTHS)):
        logits, value, memory = act(trained, image_of(PROBES.observe(state).T), memory, jnp.ones(8))
        values.append(value)
        actions.append(jnp.argmax(logits, axis=0))
        state, *_ = PROBES.step(state, actions[-1])
    values, actions = np.array(values), np.array(actions)
    return {k: (values[:n, 2 * k : 2 * k + 2], actions[:n, 2 * k : 2 * k + 2]) for k, n in enumerate(PROBES.LENGTHS)}


def test_advantage_the_right_action_is_taken(seen):
    values, actions = seen[PROBES.CHOICE]
    assert actions.tolist() == [[0, 1]]
    np.testing.assert_allclose(values, 1, atol=0.15)


def test_memory_the_cue_is_recalled(seen):
    values, actions = seen[PROBES.RECALL]
    assert actions[2].tolist() == [0, 1]
    np.testing.assert_allclose(values, np.transpose([PROBES.right_values(0.9)[PROBES.RECALL]] * 2), atol=0.15)


def test_bootstrapping_the_last_reward_reaches_the_first_value(seen):
    values, _ = seen[PROBES.CHAIN]
    np.testing.assert_allclose(values, np.transpose([PROBES.right_values(0.9)[PROBES.CHAIN]] * 2), atol=0.15)


def test_bootstrapping_nothing_comes_after_a_time_limit(seen):
    values, _ = seen[PROBES.LIMIT]
    np.testing.assert_allclose(values, np.transpose([PROBES.right_values(0.9)[PROBES.LIMIT]] * 2), atol=0.15)


def test_playing_gives_each_kind_its_length(trained):
    played = jax.device_get(play(PROBES.PROBES, trained, jax.random.key(0), episodes=64, steps=6, greedy=True))
    kinds = played.states.kind[0]
    np.testing.assert_array_equal(played.active.sum(axis=0), np.array(PROBES.LENGTHS)[kinds])
    np.testing.assert_array_equal(played.solved, kinds != PROBES.LIMIT)
    score = evaluate(PROBES.PROBES, trained, jax.random.key(0), episodes=64, steps=6, greedy=True)
    assert score.length == pytest.approx(np.array(PROBES.LENGTHS)[kinds].mean())
    assert score.solved == pytest.approx((kinds != PROBES.LIMIT).mean())


def test_greedy_play_takes_the_likeliest_action_and_sampled_play_does_not_always(trained, trainer):
    fresh = unflatten(trainer.init(jax.random.key(0)).learner.parameters)
    both = [
        jax.device_get(play(PROBES.PROBES, fresh, jax.random.key(1), episodes=64, steps=5, greedy=greedy))
        for greedy in (True, False)
    ]
    assert len(np.unique(both[0].action[0])) < len(np.unique(both[1].action[0])) == 7


def test_a_run_that_stops_goes_on_to_the_bit(trainer, tmp_path):
    train = trainer.init(jax.random.key(5))
    train, _ = trainer.update(train)
    save_checkpoint(tmp_path / "run.npz", train, {"steps": np.array([512])}, ABOUT)
    straight = [trainer.update(train)]
    straight.append(trainer.update(straight[-1][0]))

    loaded, columns = load_checkpoint(tmp_path / "run.npz", trainer.init(jax.random.key(0)), ABOUT)
    assert columns["steps"].tolist() == [512]
    resumed = [trainer.update(loaded)]
    resumed.append(trainer.update(resumed[-1][0]))
    for one, other in zip(jax.tree.leaves(straight), jax.tree.leaves(resumed), strict=True):
        np.testing.assert_array_equal(one, other)
    assert list(tmp_path.iterdir()) == [tmp_path / "run.npz"]
    assert trainer.update._cache_size() == 1, "first, later and resumed updates share one compilation"


def test_seeds_differ(trainer):
    one, other = (trainer.update(trainer.init(jax.random.key(seed)))[0] for seed in (0, 1))
    assert (one.learner.parameters != other.learner.parameters).mean() > 0.9


@pytest.mark.parametrize("damage", ["cut", "other run", "other state", "no file"])
def test_a_checkpoint_that_does_not_fit_is_refused_and_kept(trainer, tmp_path, damage):
    path, train, about = tmp_path / "run.npz", trainer.init(jax.random.key(0)), dict(ABOUT)
    save_checkpoint(path, train, {}, ABOUT)
    content = path.read_bytes()
    if damage == "cut":
        content = content[: len(content) // 2]
        path.write_bytes(content)
    if damage == "other run":
        about["seed"] = 1
    if damage == "other state":
        train = train._replace(lengths=jnp.zeros(3))
    if damage == "no file":
        with pytest.raises(FileNotFoundError):
            load_checkpoint(tmp_path / "none.npz", train, about)
        return
    word = {"cut": "damaged", "other run": "seed was 0, now 1", "other state": "version"}[damage]
    with pytest.raises(UserError, match=word):
        load_checkpoint(path, train, about)
    assert path.read_bytes() == content
