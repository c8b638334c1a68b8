"""PPO with an LSTM, with the semantics of torch-ac, trained on R + F' (section `minigrid`).

`make_train` returns two pure functions. Between two updates a run is nothing but its `Train` state, a pytree of
arrays: after saving and loading it, training continues to the bit.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import payback
from payback import Match, RewardTransform
from payback_lab.learners.ppo.actor_critic import initial_parameters
from payback_lab.learners.ppo.config import PPO
from payback_lab.learners.ppo.rollout import Actors, Environment, Events, collect, initial_actors
from payback_lab.learners.ppo.update import Learner, draw_orders, initial_learner, unflatten, update

WINDOW = 16
"""torch-ac reports the last 16 episodes, or all of an update if more have ended."""


class Train(NamedTuple):
    """Hold a run between two updates."""

    key: jax.Array
    """(2,) uint32; all random numbers of the run come from it and the number of the update."""
    updates: jax.Array
    learner: Learner
    actors: Actors
    lengths: jax.Array
    """(16,), lengths of the last episodes, oldest first; −1 where there is none yet."""


class Record(NamedTuple):
    """Hold one row of the learning curve, scalars; means over episodes are NaN if none ended in the update."""

    steps: Any
    """Steps so far, all environments together."""
    episodes: Any
    """Episodes that ended in this update."""
    truncated: Any
    """How many of them by the time limit."""
    length_mean: Any
    """Mean length of the episodes that ended in this update."""
    length_std: Any
    window_mean: Any
    """The same over what torch-ac, and so the paper, reports: the last 16 episodes if fewer have ended."""
    window_std: Any
    reward: Any
    """Mean undiscounted R of the episodes that ended, without any bonus."""
    bonus: Any
    """Mean F per step."""
    shaped: Any
    """Mean F' per step."""
    repaid: Any
    """The lowest F' of any step: the largest repayment, as a negative number."""
    residual: Any
    """The largest |Σ γ^t F'_t| / Σ γ^t |F'_t| of an episode that ended: 0 if every loan was repaid."""


class Trainer(NamedTuple):
    """Hold the two functions of a run."""

    init: Callable[[jax.Array], Train]
    """A key → the state before the first update."""
    update: Callable[[Train], tuple[Train, Record]]
    """Collect a rollout, train on it; jitted."""


def make_train(
    config: PPO, environment: Environment, transform: RewardTransform | None, *, shaping_gamma: float | None = None
) -> Trainer:
    """Prepare training with a scheme's transform, None for no bonus at all.

    `shaping_gamma` is for ablations: it allows a transform whose γ is not the learner's, which breaks invariance.

    >>> from payback_lab.environments.doorkey.rules import make_doorkey
    >>> from payback_lab.learners.ppo.rollout import doorkey_environment
    >>> trainer = make_train(PPO(), doorkey_environment(make_doorkey(5)), payback.grm(0.99, delay=10))
    >>> int(trainer.init(jax.random.key(0)).updates)
    0
    """
    expected = config.gamma if shaping_gamma is None else shaping_gamma
    if isinstance(transform, Match) and transform.gamma != expected:
        raise ValueError(
            f"the shaping's γ is {transform.gamma} and the learner's {expected}; "
            "what is repaid balances for one and the same γ only: give both the same"
        )

    def init(key: jax.Array) -> Train:
        raw = jax.random.key_data(key) if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key
        network, actors = jax.random.split(jax.random.wrap_key_data(raw))
        with warnings.catch_warnings():
            # The time limit keeps episodes far below the length at which the interest overflows.
            warnings.simplefilter("ignore", payback.InterestWarning)
            started = initial_actors(config, environment, transform, actors)
        learner = initial_learner(initial_parameters(network))
        train = Train(raw, jnp.int32(0), learner, started, jnp.full(WINDOW, -1.0))
        # Through NumPy, because the types are then those of a loaded checkpoint and the update is compiled only once.
        return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), train)

    @jax.jit
    def update_once(train: Train) -> tuple[Train, Record]:
        # + 2, because `init` has used the keys 0 and 1 of the split.
        key = jax.random.fold_in(jax.random.wrap_key_data(train.key), train.updates + 2)
        act, shuffle = jax.random.split(key)
        p = unflatten(train.learner.parameters)
        actors, rollout, advantage, events = collect(config, environment, transform, p, train.actors, act)
        learner = update(config, train.learner, rollout, advantage, draw_orders(config, shuffle))
        lengths, record = recorded(config, train, events)
        return Train(train.key, train.updates + 1, learner, actors, lengths), record

    return Trainer(init, update_once)


def recorded(config: PPO, train: Train, events: Events) -> tuple[jax.Array, Record]:
    """Return the lengths of the last 16 episodes and the record of an update."""
    done, tally = events.done.ravel(), jax.tree.map(jnp.ravel, events.tally)
    count = done.sum()
    lengths = jnp.concatenate([train.lengths, tally.length])
    ended = jnp.concatenate([train.lengths > 0, done])
    # The latest 16 that ended; −1 where there are fewer so far.
    newest = jnp.nonzero(ended[::-1], size=WINDOW, fill_value=-1)[0]
    last = jnp.where(newest < 0, -1.0, lengths[::-1][newest])[::-1]
    now, spread = _moments(tally.length, done)
    window, window_spread = _moments(last, last > 0)
    many = count >= WINDOW
    residual = jnp.abs(tally.shaped) / jnp.maximum(tally.turnover, 1e-30)
    record = Record(
        steps=(train.updates + 1) * config.samples,
        episodes=count,
        truncated=events.truncated.sum(),
        length_mean=now,
        length_std=spread,
        window_mean=jnp.where(many, now, window),
        window_std=jnp.where(many, spread, window_spread),
        reward=_moments(tally.reward, done)[0],
        bonus=events.bonus.mean(),
        shaped=events.shaped.mean(),
        repaid=events.shaped.min(),
        residual=jnp.where(done, residual, 0.0).max(),
    )
    return last, record


def _moments(values: jax.Array, where: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return mean and standard deviation of the values `where`; NaN if there is none."""
    count = where.sum()
    mean = jnp.where(where, values, 0.0).sum() / count
    return mean, jnp.sqrt(jnp.where(where, (values - mean) ** 2, 0.0).sum() / count)
