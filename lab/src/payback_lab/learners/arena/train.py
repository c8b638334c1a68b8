"""The training of a run of the arena, in the form of `ppo/train.py`: two pure functions, and a state between updates.

Between two updates a run is nothing but its `Train` state, a pytree of arrays: after saving and loading it, training
continues to the bit.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import payback
from payback import Match
from payback_lab.learners.arena.bonus import Bonus
from payback_lab.learners.arena.config import ArenaPPO
from payback_lab.learners.arena.heads import initial_network, unflatten
from payback_lab.learners.arena.method import Method
from payback_lab.learners.arena.rollout import Actors, Collected, Setting, collect, initial_actors
from payback_lab.learners.arena.update import update
from payback_lab.learners.ppo import train as paper
from payback_lab.learners.ppo.rollout import Environment, Events
from payback_lab.learners.ppo.update import Learner, draw_orders, initial_learner


class Train(NamedTuple):
    """Hold a run between two updates."""

    key: jax.Array
    """(2,) uint32; all random numbers of the run come from it and the number of the update."""
    updates: jax.Array
    learner: Learner
    actors: Actors
    lengths: jax.Array
    """(16,), lengths of the last episodes, oldest first; −1 where there is none yet."""
    state: Any
    """The method's own state."""


class Record(NamedTuple):
    """Hold one row of the learning curve, scalars; means over episodes are NaN if none ended in the update."""

    steps: Any
    """Steps so far, all environments and policies together."""
    episodes: Any
    """Episodes that the agent ended in this update; those that a second policy ended do not count."""
    solved: Any
    """How many of them were solved."""
    length: Any
    """Their mean length."""
    window_mean: Any
    """The same over the last 16 episodes if fewer have ended, as the paper reports it."""
    reward: Any
    """Their mean undiscounted R, without any bonus."""
    bonus: Any
    """Mean F per step."""
    shaped: Any
    """Mean F' per step."""
    residual: Any
    """The largest |Σ γ^t F'_t| / Σ γ^t |F'_t| of an episode that ended, F' as paid in the rollout."""
    zeta: Any
    """ζ of this update."""
    multiplier: Any
    """α of EIPO or HEPO after this update; NaN for other methods."""
    second: Any
    """The share of steps that the second policy took."""


class Trainer(NamedTuple):
    """Hold the two functions of a run."""

    init: Callable[[jax.Array], Train]
    """A key → the state before the first update."""
    update: Callable[[Train], tuple[Train, Record]]
    """Collect a rollout, train on it; jitted."""


def make_train(config: ArenaPPO, method: Method, environment: Environment, bonus: Bonus) -> Trainer:
    """Prepare training with a method, for `config.total_steps` steps.

    >>> from payback_lab.environments.doorkey.rules import make_doorkey
    >>> from payback_lab.learners.arena.bonus import count_bonus
    >>> from payback_lab.learners.arena.named import method_of
    >>> from payback_lab.learners.ppo.rollout import doorkey_environment
    >>> config, environment = ArenaPPO(), doorkey_environment(make_doorkey(5))
    >>> trainer = make_train(config, method_of("adops", config), environment, count_bonus(environment, 0.02))
    >>> int(trainer.init(jax.random.key(0)).updates)
    0
    """
    if isinstance(method.transform, Match) and method.transform.gamma != config.gamma:
        raise ValueError(
            f"the shaping's γ is {method.transform.gamma} and the learner's {config.gamma}; "
            "what is repaid balances for one and the same γ only: give both the same"
        )
    setting = Setting(config, method.heads, environment, bonus, method.transform)
    total = config.total_steps // config.samples

    def init(key: jax.Array) -> Train:
        raw = jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key
        network, actors = jax.random.split(jax.random.wrap_key_data(raw))
        with warnings.catch_warnings():
            # At γ = 0.995 the time limits keep episodes below the length at which the interest overflows.
            warnings.simplefilter("ignore", payback.InterestWarning)
            started = initial_actors(setting, actors)
        learner = initial_learner(initial_network(method.heads, network))
        train = Train(raw, jnp.int32(0), learner, started, jnp.full(paper.WINDOW, -1.0), method.init())
        # Through NumPy, because the types are then those of a loaded checkpoint and the update is compiled only once.
        return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), train)

    @jax.jit
    def update_once(train: Train) -> tuple[Train, Record]:
        # + 2, because `init` has used the keys 0 and 1 of the split.
        key = jax.random.fold_in(jax.random.wrap_key_data(train.key), train.updates + 2)
        act, shuffle = jax.random.split(key)
        zeta = method.zeta(train.updates / total)
        p = unflatten(method.heads, train.learner.parameters)
        actors, collected = collect(setting, method.control(train.state, zeta), p, train.actors, act)
        estimates = method.estimates(train.state, zeta, collected)
        orders = draw_orders(config, shuffle)
        learner, state = update(config, method, train.learner, train.state, collected, estimates, orders)
        state = method.after(train.state, state, collected)
        events = agents_own(collected) if method.heads.policies > 1 else collected.events
        lengths, told = paper.recorded(config, train, events)  # pyright: ignore[reportArgumentType]
        record = _record(
            told,
            shaped=estimates.paid.mean(),
            zeta=zeta,
            multiplier=method.multiplier(state),
            second=collected.acting.mean(),
        )
        return Train(train.key, train.updates + 1, learner, actors, lengths, state), record

    return Trainer(init, update_once)


def _record(told: paper.Record, **own: jax.Array) -> Record:
    """Take from the paper's record what both learners tell."""
    return Record(
        steps=told.steps,
        episodes=told.episodes,
        solved=told.episodes - told.truncated,
        length=told.length_mean,
        window_mean=told.window_mean,
        reward=told.reward,
        bonus=told.bonus,
        residual=told.residual,
        **own,
    )


def agents_own(collected: Collected) -> Events:
    """Return the events without the ends of episodes at which the second policy acts, because the agent is the first.

    HEPO's second policy is paid for novelty alone, and its episodes, in environments of their own, say nothing about
    the agent. EIPO's two policies take turns within an episode, so that an episode is told of the one that ended it.
    """
    own, events = collected.acting == 0, collected.events
    return events._replace(done=events.done & own, truncated=events.truncated & own)
