"""A decision problem with a known answer, and tables in place of the network, so that a method learns in seconds.

At each of up to eight steps the agent may leave, for a reward of 1 that ends the episode, or stay, for a bonus of 0.2.
With γ = 0.9 it is best to leave at once: 1 against 0.9 a step later. With the raw bonus it is best to stay to the last
step: 0.2·(1 − 0.9⁷)/(1 − 0.9) + 0.9⁷ = 1.52 against 1.

Who acts, what is paid, the estimates, the losses and the multipliers are the learner's own code.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from payback.bonuses.jax import PureBonus
from payback_lab.learners.arena.bonus import Bonus
from payback_lab.learners.arena.config import ArenaPPO
from payback_lab.learners.arena.method import Method
from payback_lab.learners.arena.rollout import Actors, Collected, Setting, advance, chosen, initial_actors
from payback_lab.learners.arena.update import clipped, compared, value_error
from payback_lab.learners.ppo.rollout import Environment, sample
from payback_lab.learners.ppo.update import Learner, Rollout, adam

LEAVE, STAY = range(2)
LIMIT, BONUS = 8, 0.2
CONFIG = ArenaPPO(
    gamma=0.9, steps=16, batch=256, learning_rate=0.05, entropy_weight=0.003, total_steps=256 * 300,
    fade_start=0.0, fade_end=0.0, adopes_start=0.5, adopes_end=0.5,
)  # fmt: skip


def step(time: jax.Array, action: jax.Array) -> tuple:
    leaves, time = action == LEAVE, time + 1
    return time, leaves.astype(jnp.float32), leaves, ~leaves & (time >= LIMIT)


ENVIRONMENT = Environment(
    draws=1,
    start=lambda uniform: jnp.zeros(uniform.shape[1:], jnp.int32),
    step=step,
    observe=lambda time: time,
    cells=LIMIT + 1,
    cell=lambda time: time,
)
STAYING = Bonus(
    PureBonus(lambda key, obs: (), lambda state, obs, action, then, done: (state, BONUS * (action == STAY))),
    ENVIRONMENT.cell,
)


class Tables(NamedTuple):
    """What is trained, flat in the learner's vector: logits (P, 2, times) and values (V, times)."""

    logits: jax.Array
    values: jax.Array


def read(method: Method, vector: jax.Array) -> Tables:
    P, V = method.heads
    logits, values = jnp.split(vector, [P * 2 * (LIMIT + 1)])
    return Tables(logits.reshape(P, 2, -1), values.reshape(V, -1))


class Run(NamedTuple):
    updates: jax.Array
    learner: Learner
    actors: Actors
    state: object


def collect(method: Method, setting: Setting, control, tables: Tables, actors: Actors, key: jax.Array):
    noise = jax.random.uniform(key, (CONFIG.steps, CONFIG.environments))
    draws = jnp.zeros((1, CONFIG.environments))

    def one(actors: Actors, uniform: jax.Array) -> tuple:
        time = actors.state
        action, log_prob = sample(chosen(list(tables.logits[:, :, time]), control.acting), uniform)
        after, reward, events = advance(setting, control, actors, action, draws)
        value = tables.values[:, time]
        # The first field, the views, holds the times; there is no memory.
        seen = Rollout(time, time, actors.alive, action, log_prob, value, reward + events.shaped)
        return after, (seen, reward, events)

    after, (seen, reward, events) = lax.scan(one, actors, noise)
    last = tables.values[:, after.state]
    return after, Collected(seen, reward, events, last, after.alive, control.acting)


def loss(vector: jax.Array, method: Method, collected: Collected, estimates) -> tuple[jax.Array, jax.Array]:
    tables, time, seen = read(method, vector), collected.seen.tiles.ravel(), collected.seen
    total, gain = 0.0, 0.0
    for n, logits in enumerate(tables.logits):
        ratio, entropy = compared(logits[:, time], seen.action.ravel(), seen.log_prob.ravel())
        total = (
            total - (clipped(CONFIG, ratio, estimates.advantage[n].ravel()) + CONFIG.entropy_weight * entropy).mean()
        )
        if n == 0:
            gain = clipped(CONFIG, ratio, estimates.advantage[-1].ravel()).mean()
    for n, values in enumerate(tables.values):
        error = value_error(CONFIG, values[time], seen.value[:, n].ravel(), estimates.target[n].ravel())
        counts = 1.0 if estimates.counts is None else estimates.counts[n].ravel()
        total = total + CONFIG.value_weight * (counts * error).mean()
    return total, gain


def trainer(method: Method):
    """Return the state before the first update, and the update."""
    setting = Setting(CONFIG, method.heads, ENVIRONMENT, STAYING, method.transform)

    def init(key: jax.Array, updates: int = 0) -> Run:
        zeros = jnp.zeros((2 * method.heads.policies + method.heads.values) * (LIMIT + 1))
        learner = Learner(zeros, zeros, zeros, jnp.zeros(()))
        return Run(jnp.int32(updates), learner, initial_actors(setting, key), method.init())

    @jax.jit
    def update(run: Run, key: jax.Array) -> tuple[Run, Collected]:
        zeta = method.zeta(run.updates * CONFIG.samples / CONFIG.total_steps)
        control = method.control(run.state, zeta)
        actors, collected = collect(method, setting, control, read(method, run.learner.parameters), run.actors, key)
        estimates = method.estimates(run.state, zeta, collected)

        def epoch(trained: tuple, n: jax.Array) -> tuple[tuple, None]:
            learner, state = trained
            gradient, gain = jax.grad(loss, has_aux=True)(learner.parameters, method, collected, estimates)
            if method.step_multiplier is not None:
                state = method.step_multiplier(state, gain, n == CONFIG.epochs - 1)
            return (adam(CONFIG, learner, gradient), state), None

        (learner, state), _ = lax.scan(epoch, (run.learner, run.state), jnp.arange(CONFIG.epochs))
        return Run(run.updates + 1, learner, actors, method.after(run.state, state, collected)), collected

    return init, update


def trained(method: Method, updates: int = 150, begin: int = 0) -> tuple[Tables, Run]:
    """Train from nothing; `begin` is the number of updates that the schedule takes for done."""
    init, update = trainer(method)
    run = init(jax.random.key(0), begin)
    for n in range(updates):
        run, _ = update(run, jax.random.key(n + 1))
    return read(method, run.learner.parameters), run


def leaves(tables: Tables, policy: int = 0) -> float:
    """Return the probability that a policy leaves at once."""
    return float(jax.nn.softmax(tables.logits[policy, :, 0])[LEAVE])
