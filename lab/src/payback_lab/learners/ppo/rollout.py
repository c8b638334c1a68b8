"""Rollouts: T steps of B environments in parallel, with the bonus computed and shaped inside the loop."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from payback import RewardTransform
from payback_lab.environments.doorkey import rules as doorkey
from payback_lab.environments.doorkey.view import VIEW, channels
from payback_lab.intrinsic.counts import first_visit, visit
from payback_lab.learners.ppo.actor_critic import Parameters, act
from payback_lab.learners.ppo.config import PPO
from payback_lab.learners.ppo.lstm import HIDDEN, Memory
from payback_lab.learners.ppo.update import Rollout, advantages


class Environment(NamedTuple):
    """Describe an environment to the learner; states are pytrees of (B, …) arrays."""

    draws: int
    """How many uniform random numbers a start takes."""
    start: Callable[[jax.Array], Any]
    """(draws, B) uniform numbers → state."""
    step: Callable[[Any, jax.Array], tuple[Any, jax.Array, jax.Array, jax.Array]]
    """state, action → state, reward, terminated, truncated."""
    observe: Callable[[Any], jax.Array]
    """state → (B, 49) tiles."""
    cells: int
    """How many places the bonus counts visits of."""
    cell: Callable[[Any], jax.Array]
    """state → the place's number."""
    event: Callable[[Any, Any], jax.Array] | None = None
    """state before, state after → whether `match_when` settles at this step; None for never."""


@cache
def doorkey_environment(task: doorkey.DoorKey) -> Environment:
    """Describe DoorKey to the learner."""
    return Environment(
        draws=doorkey.DRAWS,
        start=partial(doorkey.start, task),
        step=partial(doorkey.step, task),
        observe=partial(doorkey.observe, task),
        cells=task.cells,
        cell=partial(doorkey.cell_index, task),
        event=doorkey.event,
    )


class Tally(NamedTuple):
    """Hold the sums over each environment's episode so far, (B,) each."""

    length: Any
    reward: Any
    """Σ R_t, without any bonus."""
    discount: Any
    """γ^t."""
    shaped: Any
    """Σ γ^t F'_t: 0 at the end if every loan was repaid (the zero-sum property)."""
    turnover: Any
    """Σ γ^t |F'_t|, to which `shaped` is compared."""


class Actors(NamedTuple):
    """Hold the state that is carried from one rollout to the next, except the learner's."""

    state: Any
    """The environments' states."""
    memory: Memory
    alive: jax.Array
    """(B,), 0 where an episode is about to begin."""
    counts: jax.Array
    """(B, cells) visits."""
    shaping: Any
    """The reward transform's state."""
    tally: Tally


class Events(NamedTuple):
    """Hold what is recorded of every step, (T, B) each; the tally counts at an episode's last step."""

    done: jax.Array
    truncated: jax.Array
    bonus: jax.Array
    """F_t."""
    shaped: jax.Array
    """F'_t."""
    tally: Tally


def initial_actors(config: PPO, environment: Environment, transform: RewardTransform | None, key: jax.Array) -> Actors:
    """Start all environments."""
    B = config.environments
    state = environment.start(jax.random.uniform(key, (environment.draws, B)))
    zeros = jnp.zeros(B)
    return Actors(
        state=state,
        memory=Memory(jnp.zeros((HIDDEN, B)), jnp.zeros((HIDDEN, B))),
        alive=jnp.ones(B),
        counts=first_visit(environment.cell(state), environment.cells),
        shaping=() if transform is None else transform.init(zeros),
        tally=Tally(zeros, zeros, zeros + 1, zeros, zeros),
    )


def collect(
    config: PPO,
    environment: Environment,
    transform: RewardTransform | None,
    p: Parameters,
    actors: Actors,
    key: jax.Array,
) -> tuple[Actors, Rollout, jax.Array, Events]:
    """Take `config.steps` steps in every environment; return also the advantages (T, B)."""
    act_key, start_key = jax.random.split(key)
    # Drawn before the loop, because small draws inside it would take longer than the network.
    noise = jax.random.uniform(act_key, (config.steps, config.environments))
    draws = jax.random.uniform(start_key, (config.steps, environment.draws, config.environments))

    def step(actors: Actors, random: tuple) -> tuple[Actors, tuple]:
        tiles = environment.observe(actors.state).T
        logits, value, memory = act(p, image_of(tiles), actors.memory, actors.alive)
        action, log_prob = sample(logits, random[0])
        after, reward, events = advance(config, environment, transform, actors, action, random[1])
        before = jnp.concatenate(actors.memory)
        seen = Rollout(tiles, before, actors.alive, action, log_prob, value, reward)
        return after._replace(memory=memory), (seen, events)

    after, (seen, events) = lax.scan(step, actors, (noise, draws))
    _, last, _ = act(p, image_of(environment.observe(after.state).T), after.memory, after.alive)
    advantage = advantages(
        config,
        seen.reward,
        jnp.concatenate([seen.value, last[None]]),
        jnp.concatenate([seen.alive, after.alive[None]]),
    )
    return after, seen, advantage, events


def sample(logits: jax.Array, uniform: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the action whose share of [0, 1) holds the uniform number, (B,), and its log-probability."""
    log_probs = jax.nn.log_softmax(logits, axis=0)
    probs = jnp.exp(log_probs)
    below, action = jnp.zeros_like(uniform), jnp.zeros_like(uniform, dtype=jnp.int32)
    for prob in probs[:-1]:
        below = below + prob
        action = action + (uniform >= below)
    taken = jnp.arange(len(logits))[:, None] == action
    return action, jnp.where(taken, log_probs, 0.0).sum(axis=0)


def advance(
    config: PPO,
    environment: Environment,
    transform: RewardTransform | None,
    actors: Actors,
    action: jax.Array,
    draws: jax.Array,
) -> tuple[Actors, jax.Array, Events]:
    """Take the actions, compute and shape the bonus, and start a new episode where one ended.

    The learner is given R_t + F'_t. The LSTM's memory is left to the caller.
    """
    state, reward, terminated, truncated = environment.step(actors.state, action)
    done = terminated | truncated
    counts, bonus = visit(actors.counts, environment.cell(state), config.alpha)
    if transform is None:
        shaping, shaped = actors.shaping, jnp.zeros_like(bonus)
    else:
        settle = None if environment.event is None else environment.event(actors.state, state)
        shaping, shaped = transform.update(actors.shaping, bonus, done, settle=settle)
    tally = add(config, actors.tally, reward, shaped)
    events = Events(done, truncated & ~terminated, bonus, shaped, tally)

    fresh = environment.start(draws)
    first = first_visit(environment.cell(fresh), environment.cells)
    after = Actors(
        state=jax.tree.map(partial(_where, done), fresh, state),
        memory=actors.memory,
        alive=(~done).astype(actors.alive.dtype),
        counts=_where(done, first, counts),
        shaping=shaping,
        tally=jax.tree.map(partial(_where, done), Tally(0.0, 0.0, 1.0, 0.0, 0.0), tally),
    )
    return after, reward + shaped, events


def add(config: PPO, tally: Tally, reward: jax.Array, shaped: jax.Array) -> Tally:
    """Add one step to the tallies."""
    return Tally(
        length=tally.length + 1,
        reward=tally.reward + reward,
        discount=tally.discount * config.gamma,
        shaped=tally.shaped + tally.discount * shaped,
        turnover=tally.turnover + tally.discount * jnp.abs(shaped),
    )


def image_of(tiles: jax.Array) -> tuple[jax.Array, ...]:
    """Return tiles (49, B) as the network's image: three channels (7, 7, B)."""
    return channels(tiles.reshape(VIEW, VIEW, -1))


def _where(done: jax.Array, new: jax.Array | float, old: jax.Array) -> jax.Array:
    return jnp.where(done.reshape(done.shape + (1,) * (old.ndim - 1)), new, old)
