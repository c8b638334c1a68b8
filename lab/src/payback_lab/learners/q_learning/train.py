"""Tabular Q-learning on a cliff, ε-greedy, with a shaped intrinsic reward (`sec:cw`, `sec:lw`).

    Q(s,a) ← Q(s,a) + α (R_t + F'_t + γ [not the last step] max_b Q(s',b) − Q(s,a))

A batch trains several seeds of one scheme side by side, one lane each. Each lane starts its next episode on its own, so
that none waits for another. F' comes from the library's transform, called once per step inside the jitted loop. The
scheme `none` is compiled without RND.

A lane's result does not depend on the other lanes, because the width of a batch is fixed and each lane has its own key,
network and transform (with its mean F̄).
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import payback
from payback import RewardTransform
from payback_lab.environments.cliff import ACTIONS, Cliff, Moves, moves, step
from payback_lab.intrinsic import rnd
from payback_lab.learners.q_learning.config import LANES, QLearning
from payback_lab.methods import transform_of

CHUNK = 1000
"""Steps between two reports of progress; it does not affect the result."""


class Tally(NamedTuple):
    """Hold the sums over an episode."""

    length: Any
    reward: Any
    """Σ R_t."""
    intrinsic: Any
    """Σ F_t."""
    shaped: Any
    """Σ γ^t F'_t: 0 if every loan was repaid (the zero-sum property)."""
    turnover: Any
    """Σ γ^t |F'_t|, to which `shaped` is compared."""


class Lane(NamedTuple):
    """Hold one run between two steps."""

    key: jax.Array
    step: jax.Array
    """Steps since the beginning of training."""
    episode: jax.Array
    cell: jax.Array
    tally: Tally
    """Of the episode so far."""
    q: jax.Array
    """(cells, actions)."""
    rnd: Any
    """RND's state, () for `none`."""
    shaping: Any
    """The transform's state, () for `none`."""


class Trained(NamedTuple):
    """Hold the result of one run."""

    episodes: Tally
    """One entry per training episode."""
    q: np.ndarray
    """The final table, (cells, actions)."""


def make_train(config: QLearning, scheme: str) -> Callable[..., list[Trained]]:
    """Compile the training of one scheme; return `train(seeds, progress)`, which gives one `Trained` per seed.

    `progress` is called with the share of the work that is done, 0 … 1.
    """
    seeds_like = jax.ShapeDtypeStruct((LANES,), jnp.uint32)
    begin = jax.jit(jax.vmap(partial(_begin, config, scheme)))
    advance = jax.jit(partial(_advance, config, scheme), donate_argnums=0)
    lanes_like = jax.eval_shape(begin, seeds_like)
    begin, advance = begin.lower(seeds_like).compile(), advance.lower(lanes_like).compile()

    def train(seeds: Sequence[int], progress: Callable[[float], None] = lambda share: None) -> list[Trained]:
        if not 1 <= len(seeds) <= LANES:
            raise ValueError(f"A batch holds 1 to {LANES} seeds, got {len(seeds)}; split the seeds into batches.")
        lanes = begin(np.resize(np.asarray(seeds, np.uint32), LANES))
        chunks = []
        while (episode := np.asarray(lanes.episode)[: len(seeds)]).min() < config.episodes:
            progress(float(np.minimum(episode, config.episodes).mean()) / config.episodes)
            lanes, outcome = advance(lanes)
            ended, tally = jax.device_get(outcome)
            chunks.append([Tally(*(x[rows, k] for x in tally)) for k, rows in enumerate(ended.T)])
        progress(1.0)
        episodes = [Tally(*map(np.concatenate, zip(*lane, strict=True))) for lane in zip(*chunks, strict=True)]
        return [Trained(episodes[k], np.asarray(lanes.q[k])) for k in range(len(seeds))]

    return train


def greedy_episode(cliff: Cliff, q: np.ndarray) -> tuple[float, int]:
    """Walk one episode with ε = 0; return its extrinsic return and its length.

    Of equal actions the first is taken (up, right, down, left), as in the policy maps. One episode is enough, because
    grid and policy are deterministic.
    """
    table, cell, total, length, ended = moves(cliff), cliff.start, 0.0, 0, False
    while not ended:
        cell, reward, terminated, truncated = step(table, cliff.limit, cell, length, int(np.argmax(q[cell])))
        total, length, ended = total + float(reward), length + 1, bool(terminated or truncated)
    return total, length


def _begin(config: QLearning, scheme: str, seed: jax.Array) -> Lane:
    """Make the lane of a seed before its first step."""
    cliff, transform = config.cliff, _transform(config, scheme)
    rnd_key, key = jax.random.split(jax.random.key(seed))
    zero = jnp.zeros((), jnp.int32)
    return Lane(
        key=key,
        step=zero,
        episode=zero,
        cell=zero + cliff.start,
        tally=_no_tally(),
        q=jnp.full((cliff.cells, ACTIONS), config.first_q, jnp.float32),
        rnd=() if transform is None else rnd.init(rnd_key, cliff.cells, config.rnd_hidden, config.rnd_outputs),
        shaping=() if transform is None else _quiet(transform.init, jnp.zeros(1)),
    )


def _advance(config: QLearning, scheme: str, lanes: Lane) -> tuple[Lane, tuple[jax.Array, Tally]]:
    """Take CHUNK steps in every lane; return also which of them ended an episode, and the episode's tally."""
    table, transform = Moves(*map(jnp.asarray, moves(config.cliff))), _transform(config, scheme)

    def draw(key: jax.Array, first: jax.Array) -> jax.Array:
        # From the step's number, not from a running key, because all numbers of a chunk can then be drawn at once.
        return jax.vmap(lambda t: jax.random.uniform(jax.random.fold_in(key, t), (2,)))(first + jnp.arange(CHUNK))

    def all_lanes(lanes: Lane, draws: jax.Array) -> tuple[Lane, tuple[jax.Array, Tally]]:
        return jax.vmap(partial(_step, config, table, transform))(lanes, draws)

    draws = jax.vmap(draw, out_axes=1)(lanes.key, lanes.step)
    return jax.lax.scan(all_lanes, lanes, draws)


def _step(
    config: QLearning, table: Moves, transform: RewardTransform | None, lane: Lane, draws: jax.Array
) -> tuple[Lane, tuple[jax.Array, Tally]]:
    """Take one step: act, compute and shape the reward, learn, and start a new episode after the last step."""
    action = choose(lane.q[lane.cell], epsilon(config, lane.episode), draws)
    cell, reward, terminated, truncated = step(table, config.limit, lane.cell, lane.tally.length, action)
    done = terminated | truncated
    distilled, shaping, intrinsic, shaped = lane.rnd, lane.shaping, jnp.zeros(()), jnp.zeros(())
    if transform is not None:
        distilled, error = rnd.update(lane.rnd, cell, config.rnd_rate)
        intrinsic = config.rnd_scale * error
        shaping, (shaped,) = transform.update(lane.shaping, intrinsic[None], done[None])
    old = lane.q[lane.cell, action]
    after = jnp.where(done, 0.0, config.gamma * lane.q[cell].max())
    learning = lane.episode < config.episodes
    learnt = old + jnp.where(learning, config.step_size, 0.0) * (reward + shaped + after - old)
    tally = _add(lane.tally, config.gamma, reward, intrinsic, shaped)
    lane = Lane(
        key=lane.key,
        step=lane.step + 1,
        episode=lane.episode + done,
        cell=jnp.where(done, config.cliff.start, cell),
        tally=jax.tree.map(lambda fresh, x: jnp.where(done, fresh, x), _no_tally(), tally),
        q=_put(lane.q, lane.cell, action, learnt),
        rnd=distilled,
        shaping=shaping,
    )
    return lane, (done & learning, tally)


def epsilon(config: QLearning, episode: jax.Array) -> jax.Array:
    """Return the chance of a random action: ε falls by a constant after every episode, down to its last value."""
    return jnp.maximum(config.epsilon_first - config.epsilon_fall * episode, config.epsilon_last)


def choose(values: jax.Array, chance: jax.Array, draws: jax.Array) -> jax.Array:
    """Choose an action ε-greedily: with the given chance any, otherwise one of the best, each equally likely."""
    explore, which = draws
    eligible = (explore < chance) | (values == values.max())
    rank = jnp.cumsum(eligible)
    return jnp.argmax(rank > jnp.floor(which * rank[-1])).astype(jnp.int32)


def _put(q: jax.Array, cell: jax.Array, action: jax.Array, value: jax.Array) -> jax.Array:
    here = (jnp.arange(q.shape[0]) == cell)[:, None] & (jnp.arange(q.shape[1]) == action)
    return jnp.where(here, value, q)


def _no_tally() -> Tally:
    return Tally(jnp.zeros((), jnp.int32), *[jnp.zeros(())] * (len(Tally._fields) - 1))


def _add(tally: Tally, gamma: float, reward: jax.Array, intrinsic: jax.Array, shaped: jax.Array) -> Tally:
    now = gamma**tally.length * shaped
    return Tally(
        tally.length + 1,
        tally.reward + reward,
        tally.intrinsic + intrinsic,
        tally.shaped + now,
        tally.turnover + jnp.abs(now),
    )


def _transform(config: QLearning, scheme: str) -> RewardTransform | None:
    return transform_of(scheme, config.gamma, payback.center(config.mean_horizon))


def _quiet(init: Callable[[jax.Array], Any], example: jax.Array) -> Any:
    # The warning is about episodes of thousands of steps; these end at the time limit.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", payback.InterestWarning)
        return init(example)
