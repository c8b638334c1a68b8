"""Rollouts of the arena: T steps of B environments by one of the policies, R and F kept apart."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from payback import RewardTransform
from payback_lab.learners.arena.bonus import Bonus
from payback_lab.learners.arena.heads import Heads, act
from payback_lab.learners.ppo.actor_critic import Parameters
from payback_lab.learners.ppo.config import PPO
from payback_lab.learners.ppo.lstm import HIDDEN, Memory
from payback_lab.learners.ppo.rollout import Environment, Events, Tally, add, image_of, sample
from payback_lab.learners.ppo.update import Rollout


class Setting(NamedTuple):
    """Hold what a rollout needs and training does not change."""

    config: PPO
    heads: Heads
    environment: Environment
    bonus: Bonus
    transform: RewardTransform | None
    """The part of a method that the library does: GRM, PBIM; None where a method has none."""


class Control(NamedTuple):
    """Hold what a method decides before a rollout."""

    acting: jax.Array
    """(B,) int32, which policy acts in each environment."""
    of_bonus: jax.Array
    """The learner is paid F' = of_bonus·F + of_transform·transform(F); ADOPS, EIPO and HEPO add theirs later."""
    of_transform: jax.Array


class Actors(NamedTuple):
    """Hold the state that is carried from one rollout to the next, except the learner's."""

    state: Any
    """The environments' states."""
    memory: Memory
    alive: jax.Array
    """(B,), 0 where an episode is about to begin."""
    novelty: Any
    """The bonus' state."""
    shaping: Any
    """The reward transform's state."""
    tally: Tally


class Collected(NamedTuple):
    """Hold a rollout, time first."""

    seen: Rollout
    """Its `value` is (T, V, B), a row for each critic; its `reward` is R_t + F'_t."""
    reward: jax.Array
    """(T, B), R_t alone."""
    events: Events
    last_value: jax.Array
    """(V, B), the critics' values after the last step."""
    last_alive: jax.Array
    """(B,), 0 where the last step ended an episode."""
    acting: jax.Array
    """(B,), which policy acted."""


def initial_actors(setting: Setting, key: jax.Array) -> Actors:
    """Start all environments."""
    B = setting.config.environments
    state = setting.environment.start(jax.random.uniform(key, (setting.environment.draws, B)))
    zeros = jnp.zeros(B)
    # A raw key, because a typed one, in the state of a bonus that draws, could not be saved.
    raw = jax.random.key_data(jax.random.fold_in(key, 1))
    return Actors(
        state=state,
        memory=Memory(jnp.zeros((HIDDEN, B)), jnp.zeros((HIDDEN, B))),
        alive=jnp.ones(B),
        novelty=setting.bonus.pure.init(raw, setting.bonus.sees(state)),
        shaping=() if setting.transform is None else setting.transform.init(zeros),
        tally=Tally(zeros, zeros, zeros + 1, zeros, zeros),
    )


def collect(
    setting: Setting, control: Control, p: Parameters, actors: Actors, key: jax.Array
) -> tuple[Actors, Collected]:
    """Take `config.steps` steps in every environment."""
    config, environment, heads = setting.config, setting.environment, setting.heads
    act_key, start_key = jax.random.split(key)
    # Drawn before the loop, because small draws inside it would take longer than the network.
    noise = jax.random.uniform(act_key, (config.steps, config.environments))
    draws = jax.random.uniform(start_key, (config.steps, environment.draws, config.environments))

    def step(actors: Actors, random: tuple) -> tuple[Actors, tuple]:
        tiles = environment.observe(actors.state).T
        logits, values, memory = act(heads, p, image_of(tiles), actors.memory, actors.alive)
        action, log_prob = sample(chosen(logits, control.acting), random[0])
        after, reward, events = advance(setting, control, actors, action, random[1])
        before = jnp.concatenate(actors.memory)
        seen = Rollout(tiles, before, actors.alive, action, log_prob, jnp.stack(values), reward + events.shaped)
        return after._replace(memory=memory), (seen, reward, events)

    after, (seen, reward, events) = lax.scan(step, actors, (noise, draws))
    _, last, _ = act(heads, p, image_of(environment.observe(after.state).T), after.memory, after.alive)
    return after, Collected(seen, reward, events, jnp.stack(last), after.alive, control.acting)


def chosen(logits: list[jax.Array], acting: jax.Array) -> jax.Array:
    """Return each environment's logits (7, B) of the policy that acts in it."""
    return logits[0] if len(logits) == 1 else jnp.where(acting == 0, logits[0], logits[1])


def advance(
    setting: Setting, control: Control, actors: Actors, action: jax.Array, draws: jax.Array
) -> tuple[Actors, jax.Array, Events]:
    """Take the actions, compute and shape the bonus, and start a new episode where one ended; return R_t."""
    environment, bonus, transform = setting.environment, setting.bonus, setting.transform
    state, reward, terminated, truncated = environment.step(actors.state, action)
    done = terminated | truncated
    before, then = bonus.sees(actors.state), bonus.sees(state)
    novelty, F = bonus.pure.update(actors.novelty, before, action, then, done)
    paid, shaping = control.of_bonus * F, actors.shaping
    if transform is not None:
        shaping, shaped = transform.update(shaping, F, done)
        paid = paid + control.of_transform * shaped
    tally = add(setting.config, actors.tally, reward, paid)
    events = Events(done, truncated & ~terminated, F, paid, tally)
    fresh = environment.start(draws)
    after = Actors(
        state=jax.tree.map(partial(_where, done), fresh, state),
        memory=actors.memory,
        alive=(~done).astype(actors.alive.dtype),
        novelty=novelty,
        shaping=shaping,
        tally=jax.tree.map(partial(_where, done), Tally(0.0, 0.0, 1.0, 0.0, 0.0), tally),
    )
    return after, reward, events


def _where(done: jax.Array, new: jax.Array | float, old: jax.Array) -> jax.Array:
    return jnp.where(done.reshape(done.shape + (1,) * (old.ndim - 1)), new, old)
