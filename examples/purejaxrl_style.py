"""PPO in a single file, environments and curiosity included in one jitted function, in the style of PureJaxRL.

    python examples/purejaxrl_style.py
    python examples/purejaxrl_style.py --method grm-adv

CartPole of gymnax with RND, paid as loans that are repaid ten steps later: the optimal policy stays the same. The time
limit is settled, that is, a part of the task. LogWrapper is inside the shaping and logs the extrinsic return.

`grm-adv` adds the bonus to the advantages instead, with a second value head; that does not preserve the optimal policy
while the bonus has a weight, so it is taken back. What it needs is marked [1] … [5].
"""

import argparse
from functools import partial
from typing import Any, NamedTuple

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnax.wrappers import LogWrapper

import payback
from payback.bonuses.jax import rnd
from payback.integrations.gymnax import ShapeVectorReward, check_episodes

GAMMA, LAMBDA, CLIP, ENTROPY = 0.99, 0.95, 0.2, 0.01
REACH = payback.grm_adv(GAMMA, delay=10, lam=0.95, gae_lambda=LAMBDA)  # [1]
ENVS, STEPS, UPDATES, EPOCHS, BATCHES, RATE = 16, 128, 150, 4, 4, 2.5e-3


class Rows(NamedTuple):
    """A rollout, (T, B, …) each."""

    obs: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array
    bonus: jax.Array


def init_network(key: jax.Array, inputs: int, outputs: int, last: float) -> list[tuple[jax.Array, jax.Array]]:
    sizes = (inputs, 64, 64, outputs)
    scales = (2**0.5, 2**0.5, last)
    make = jax.nn.initializers.orthogonal
    keys = jax.random.split(key, len(scales))
    layers = zip(keys, scales, sizes[:-1], sizes[1:], strict=True)
    return [(make(scale)(key, (n, m)), jnp.zeros(m)) for key, scale, n, m in layers]


def network(layers: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
    for weights, bias in layers[:-1]:
        x = jnp.tanh(x @ weights + bias)
    return x @ layers[-1][0] + layers[-1][1]


def advantages(rows: Rows, last_value: jax.Array) -> jax.Array:
    """GAE(λ); `done` is true at settled time limits too, and nothing is bootstrapped past it."""

    def back(carry: tuple[jax.Array, jax.Array], row: Rows) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        after, next_value = carry
        value = row.value[..., 0]
        delta = row.reward + GAMMA * next_value * ~row.done - value
        here = delta + GAMMA * LAMBDA * after * ~row.done
        return (here, value), here

    return jax.lax.scan(back, (jnp.zeros_like(last_value), last_value), rows, reverse=True)[1]


def loss(params: Any, rows: Rows, advantage: jax.Array, target: jax.Array) -> jax.Array:
    logits, value = network(params["actor"], rows.obs), network(params["critic"], rows.obs)
    log_probs = jax.nn.log_softmax(logits)
    ratio = jnp.exp(jnp.take_along_axis(log_probs, rows.action[:, None], axis=1)[:, 0] - rows.log_prob)
    scaled = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    gain = jnp.minimum(ratio * scaled, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * scaled).mean()
    entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=-1).mean()
    return -gain + 0.5 * jnp.square(value - target).mean(axis=0).sum() - ENTROPY * entropy


@partial(jax.jit, static_argnames=("updates", "method"))
def train(key: jax.Array, updates: int = UPDATES, method: str = "grm") -> dict[str, jax.Array]:
    """Train, and return the infos of all steps, (updates, T, B) each."""
    basic, settings = gymnax.make("CartPole-v1")
    env = ShapeVectorReward(LogWrapper(basic), rnd(alpha=0.05), payback.grm(GAMMA, delay=10), learner_gamma=GAMMA)
    key, start, one, two = jax.random.split(key, 4)
    obs, state = env.reset(jax.random.split(start, ENVS), settings)
    params = {
        "actor": init_network(one, obs.shape[-1], basic.num_actions, 0.01),
        "critic": init_network(two, obs.shape[-1], 2 if method == "grm-adv" else 1, 1.0),  # [2]
    }
    rate = optax.linear_schedule(RATE, 0.0, updates * EPOCHS * BATCHES)
    optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate, eps=1e-5))

    def act(carry: Any, key: jax.Array) -> tuple[Any, tuple[Rows, dict[str, jax.Array]]]:
        params, obs, state = carry
        choose, move = jax.random.split(key)
        logits, value = network(params["actor"], obs), network(params["critic"], obs)
        action = jax.random.categorical(choose, logits)
        log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], axis=1)[:, 0]
        keys = jax.random.split(move, ENVS)
        after, state, reward, terminated, truncated, info = env.step(keys, state, action, settings)
        if method == "grm-adv":
            reward = info["extrinsic"]  # [3] the task's alone
        rows = Rows(obs, action, log_prob, value, reward, terminated | truncated, info["intrinsic"])
        kept = {name: info[name] for name in ("returned_episode", "returned_episode_returns", "residual")}
        return (params, after, state), (rows, kept)

    def learn(carry: Any, key: jax.Array, rows: Rows, advantage: jax.Array, target: jax.Array) -> tuple[Any, None]:
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (rows, advantage, target))
        order = jax.random.permutation(key, ENVS * STEPS).reshape(BATCHES, -1)

        def step(carry: Any, which: jax.Array) -> tuple[Any, None]:
            params, memory = carry
            gradient = jax.grad(loss)(params, *jax.tree.map(lambda x: x[which], flat))
            change, memory = optimiser.update(gradient, memory)
            return (optax.apply_updates(params, change), memory), None

        return jax.lax.scan(step, carry, order)

    def update(carry: Any, step: tuple[jax.Array, jax.Array]) -> tuple[Any, dict[str, jax.Array]]:
        (params, memory, obs, state, mean), (key, progress) = carry, step
        play, shuffle = jax.random.split(key)
        (_, obs, state), (rows, info) = jax.lax.scan(act, (params, obs, state), jax.random.split(play, STEPS))
        last = network(params["critic"], obs)
        advantage = advantages(rows, last[..., 0])
        target = (advantage + rows.value[..., 0])[..., None]
        if method == "grm-adv":
            mean, added, own = REACH.estimate(  # [4]
                mean,
                rows.bonus,
                rows.done,
                values=rows.value[..., 1],
                last_values=last[..., 1],
                weight=payback.taken_back(progress),
            )
            advantage, target = advantage + added, jnp.concatenate((target, own[..., None]), axis=-1)  # [5]
        epochs = jax.random.split(shuffle, EPOCHS)
        (params, memory), _ = jax.lax.scan(
            lambda carry, key: learn(carry, key, rows, advantage, target), (params, memory), epochs
        )
        return (params, memory, obs, state, mean), info

    carry = (params, optimiser.init(params), obs, state, REACH.init(jnp.zeros(ENVS)))
    return jax.lax.scan(update, carry, (jax.random.split(key, updates), jnp.arange(updates) / updates))[1]


def main(updates: int = UPDATES, seed: int = 0, method: str = "grm") -> tuple[float, float]:
    """Train, print the curve, and return the mean extrinsic return of the first and the last tenth of training."""
    info = jax.tree.map(np.asarray, train(jax.random.key(seed), updates, method))
    check_episodes(info)  # outside jit, where a warning can be heard
    means = []
    for rows in np.array_split(np.arange(updates), 10):
        ended = info["returned_episode"][rows]
        means.append(float(info["returned_episode_returns"][rows][ended].mean()))
        print(f"after {(rows[-1] + 1) * ENVS * STEPS:7,} steps: extrinsic return {means[-1]:.0f}", flush=True)
    return means[0], means[-1]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", choices=["grm", "grm-adv"], default="grm")
    main(method=parser.parse_args().method)
