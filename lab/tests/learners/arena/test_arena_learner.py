"""The arena's learner: with one head of each kind it is the paper's to the bit; what is paid, and what is lost."""

import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import payback
from payback_lab.environments.doorkey.rules import make_doorkey
from payback_lab.environments.minigrid.layouts import draw_layouts, make_task
from payback_lab.learners.arena.bonus import count_bonus
from payback_lab.learners.arena.config import ArenaPPO
from payback_lab.learners.arena.environment import minigrid_environment
from payback_lab.learners.arena.heads import Heads, act_all, initial_network
from payback_lab.learners.arena.named import method_of
from payback_lab.learners.arena.rollout import Setting, advance, initial_actors
from payback_lab.learners.arena.train import make_train
from payback_lab.learners.arena.update import loss
from payback_lab.learners.ppo import train as paper
from payback_lab.learners.ppo.actor_critic import initial_parameters
from payback_lab.learners.ppo.config import PPO
from payback_lab.learners.ppo.lstm import HIDDEN, Memory
from payback_lab.learners.ppo.rollout import doorkey_environment
from payback_lab.learners.ppo.update import Batch
from payback_lab.methods import transform_of

pytestmark = pytest.mark.slow

TABULAR = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "tabular.py")))
SMALL = {"gamma": 0.99, "alpha": 0.02, "environments": 8, "steps": 32, "batch": 64, "epochs": 2}


def test_one_policy_and_one_critic_are_the_papers_learner_to_the_bit(compiles_fast) -> None:
    environment = doorkey_environment(make_doorkey(5, max_steps=20))
    config = ArenaPPO(**SMALL, total_steps=256 * 4)
    ours = make_train(config, method_of("grm-10", config), environment, count_bonus(environment, 0.02))
    theirs = paper.make_train(PPO(**SMALL), environment, transform_of("grm-10", 0.99))
    one, other = ours.init(jax.random.key(3)), theirs.init(jax.random.key(3))
    for _ in range(3):
        (one, told), (other, record) = ours.update(one), theirs.update(other)
    np.testing.assert_array_equal(one.learner.parameters, other.learner.parameters)
    assert told.episodes > 0
    assert (told.steps, told.episodes, told.window_mean) == (record.steps, record.episodes, record.window_mean)
    assert told.solved == record.episodes - record.truncated
    np.testing.assert_array_equal(
        (told.bonus, told.shaped, told.residual), (record.bonus, record.shaped, record.residual)
    )


def test_more_heads_leave_the_papers_network_as_it_is() -> None:
    key = jax.random.key(1)
    first, more = initial_parameters(key), initial_network(Heads(2, 3), key)
    np.testing.assert_array_equal(more.tops[:HIDDEN], first.tops[:HIDDEN])
    np.testing.assert_array_equal(more.tops[2 * HIDDEN : 3 * HIDDEN], first.tops[HIDDEN:])
    np.testing.assert_array_equal(more.policy[:7], first.policy)
    np.testing.assert_array_equal(more.value[:1], first.value)
    for name in ("tops", "policy", "value"):
        np.testing.assert_allclose(np.linalg.norm(getattr(more, name), axis=1), 1, rtol=1e-5)
    assert len(np.unique(more.tops[:, 0])) == 5 * HIDDEN


def paid(name: str, zeta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return F, F' and the ends of episodes of 60 steps under a method, actions by chance."""
    method, environment = method_of(name, TABULAR.CONFIG), TABULAR.ENVIRONMENT
    setting = Setting(TABULAR.CONFIG, method.heads, environment, count_bonus(environment, 0.5), method.transform)
    control = method.control(method.init(), jnp.float32(zeta))
    actions = jax.random.bernoulli(jax.random.key(2), 0.8, (60, TABULAR.CONFIG.environments)).astype(jnp.int32)

    def step(actors, action):
        after, _, events = advance(setting, control, actors, action, jnp.zeros((1, TABULAR.CONFIG.environments)))
        return after, (events.bonus, events.shaped, events.done)

    return jax.device_get(lax.scan(step, initial_actors(setting, jax.random.key(0)), actions)[1])


def shaped(scheme: str, bonus: np.ndarray, done: np.ndarray) -> np.ndarray:
    transform = transform_of(scheme, TABULAR.CONFIG.gamma)
    assert transform is not None
    bonus = bonus.astype(np.float64)
    return payback.shape_rollout(transform, transform.init(bonus[0]), bonus, done)[1]


CENTRED = ("two-critics-0.9-centred-back", "grm-adv-3-0.9", "grm-adv-3-0.9-flat-lone-back")
PAID = ("none", "im", "pies", "phased", "pbim", "grm-10", "adops", "two-critics-0.9", *CENTRED)


@pytest.mark.parametrize("name", PAID)
@pytest.mark.filterwarnings("ignore::payback.InterestWarning")
def test_what_is_paid_in_a_rollout(name: str) -> None:
    """Against the library's block form in float64; ζ = 0.4."""
    bonus, found, done = paid(name, 0.4)
    assert done.sum() > 40
    assert (bonus > 0).any()
    center = payback.center()
    centred = payback.shape_rollout(center, center.init(bonus[0].astype(np.float64)), bonus.astype(np.float64), done)[1]
    wanted = {
        "none": lambda: 0 * bonus,
        "im": lambda: bonus,
        "adops": lambda: bonus,  # F₂ is added when the rollout is there
        # The advantage is made of these: f_t, repayment and weight come with the estimates.
        "two-critics-0.9": lambda: bonus,
        **dict.fromkeys(CENTRED, lambda: centred),
        "pies": lambda: 0.6 * bonus,
        "phased": lambda: 0.6 * bonus + 0.4 * shaped("grm-30", bonus, done),
    }.get(name, lambda: shaped(name, bonus, done))
    np.testing.assert_allclose(found, wanted(), rtol=2e-4, atol=2e-5)


def test_the_loss_adds_up_policies_and_critics() -> None:
    """Against NumPy on the network's own answers: two policies, three critics, one of them not trained everywhere."""
    config, heads, n = PPO(**SMALL), Heads(2, 3), 8
    rng = np.random.default_rng(0)
    p = initial_network(heads, jax.random.key(0))
    image = tuple(jnp.asarray(rng.integers(0, 9, (7, 7, n)), jnp.uint8) for _ in range(3))
    memory = jnp.zeros((2 * HIDDEN, n // config.recurrence))
    numbers = rng.normal(size=(2 + 3 + 2 + 3 + 3, n)).astype(np.float32)
    numbers[0], numbers[1] = 1, np.log(1 / 7) + 0.3 * numbers[1]
    numbers[10:] = rng.integers(0, 2, (3, n))
    action, weight = rng.integers(0, 7, n), np.full(n, 1 / n, np.float32)
    batch = Batch(image, memory, jnp.asarray(numbers), jnp.asarray(action), jnp.asarray(weight))
    found, (_, gain) = loss(config, heads, p, batch)
    start = Memory(memory[:HIDDEN], memory[HIDDEN:])
    logits, values, _ = act_all(heads, p, image, start, jnp.ones((config.recurrence, n // config.recurrence)))

    def surrogate(logits, advantage):
        log_probs = np.asarray(logits) - np.log(np.exp(np.asarray(logits)).sum(axis=0))
        ratio = np.exp(log_probs[action, np.arange(n)] - numbers[1])
        entropy = -(np.exp(log_probs) * log_probs).sum(axis=0)
        return np.minimum(ratio * advantage, np.clip(ratio, 0.8, 1.2) * advantage), entropy

    total = 0.0
    for k in range(2):
        gains, entropy = surrogate(logits[k], numbers[5 + k])
        total += -gains.mean() - config.entropy_weight * entropy.mean()
    for k in range(3):
        value, old, target, counts = np.asarray(values[k]), numbers[2 + k], numbers[7 + k], numbers[10 + k]
        near = old + np.clip(value - old, -0.2, 0.2)
        total += config.value_weight * (counts * np.maximum((value - target) ** 2, (near - target) ** 2)).mean()
    np.testing.assert_allclose(found, total, rtol=1e-4)
    np.testing.assert_allclose(gain, surrogate(logits[0], numbers[6])[0].mean(), rtol=1e-4, atol=1e-6)


def test_an_end_in_lava_is_no_solution() -> None:
    task, layouts = make_task("LavaCrossingS9N1"), draw_layouts("LavaCrossingS9N1", 20)
    environment = minigrid_environment(task, layouts)
    step = jax.jit(environment.step)
    state = environment.start(jax.random.uniform(jax.random.key(0), (2, 64)))
    lost = np.zeros(64, bool)
    for n in range(60):
        action = jax.random.randint(jax.random.key(n), (64,), 0, 3)
        state, reward, terminated, truncated = step(state, action)
        np.testing.assert_array_equal(terminated, reward > 0)
        lost |= np.asarray(truncated)
    assert lost.any()
    assert task.max_steps > 60


def test_what_contradicts_itself_is_refused() -> None:
    config = ArenaPPO(**SMALL, total_steps=256)
    environment = doorkey_environment(make_doorkey(5))
    other = method_of("grm-10", replace(config, gamma=0.9))
    with pytest.raises(ValueError, match=r"shaping's γ is 0.9 and the learner's 0.99"):
        make_train(config, other, environment, count_bonus(environment, 0.02))
    with pytest.raises(ValueError, match='There is no method "eppo": choose among none, im, pies'):
        method_of("eppo", config)
    with pytest.raises(ValueError, match="HEPO's two policies act in half of them each"):
        method_of("hepo", replace(config, environments=1, batch=32, total_steps=32))
    for wrong in ({"fade_end": 1.5}, {"adopes_start": 0.7}, {"total_steps": 100}, {"eipo_rate": 0.0}, {"gamma": 1.2}):
        with pytest.raises(ValueError, match=r"ζ rises|total_steps|eipo_rate|gamma"):
            replace(config, **wrong)
