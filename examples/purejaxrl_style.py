"""PPO with a bonus in one jitted function, like PureJaxRL's. What differs is marked: (1) (2) GRM, [1] … [5] grm-adv.

    python examples/purejaxrl_style.py                           CartPole of gymnax, RND paid by GRM
    python examples/purejaxrl_style.py --method grm-adv          the bonus as an advantage, with a second value head
    python examples/purejaxrl_style.py --task DoorKey-8x8 --updates 200
    python examples/purejaxrl_style.py --checkpoint FILE         saves after each tenth; goes on where that was
    python examples/purejaxrl_style.py --task DoorKey-8x8 --updates 200 --compare    four methods, draws their curves

GRM preserves the optimal policy; grm-adv doesn't while the bonus has a weight, so it's taken back before the end. The
time limit is part of the task here: a truncated episode is settled, and its last step counts as terminal. LogWrapper is
inside the shaping and logs the extrinsic return. One seed of each method shows what may happen, not what is likely.
All that a run remembers, debts too, is in the scan's carry, so a run that goes on is the uninterrupted one to the bit.

DoorKey is the lab's MiniGrid engine, paid with an episodic count: pip install minigrid ./lab, from a clone. `--compare`
also needs altair and vl-convert-python.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import gymnax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from gymnax.wrappers import LogWrapper

import payback
from payback.bonuses.jax import episodic_count, rnd
from payback.integrations.gymnax import ShapeVectorReward, check_episodes

GAMMA, LAMBDA, CLIP, ENTROPY = 0.99, 0.95, 0.2, 0.01
ENVS, STEPS, UPDATES, EPOCHS, BATCHES, RATE = 16, 128, 150, 4, 4, 2.5e-3
METHODS = ("none", "raw", "grm", "grm-adv")
DELAYS = {"CartPole-v1": 10, "DoorKey-8x8": 30}
FACTORS = {
    "CartPole-v1": {"none": 0.0, "raw": 0.05, "grm": 0.05, "grm-adv": 0.05},
    "DoorKey-8x8": {"none": 0.0, "raw": 0.02, "grm": 0.1, "grm-adv": 0.1},
}
"""Task → method → factor of the bonus, without a search for the best of each: on DoorKey-8x8, grm-adv's last tenth of
409,600 steps returns .64 (seed 0)."""


class Rows(NamedTuple):
    """A rollout, (T, B, …) each."""

    obs: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array
    bonus: jax.Array


Layers = list[tuple[jax.Array, jax.Array]]


def init_network(key: jax.Array, inputs: int, outputs: int, last: float) -> tuple[Layers, Layers]:
    """Return the hidden layers, and a list of heads with one head."""
    sizes = (inputs, 64, 64, outputs)
    scales = (2**0.5, 2**0.5, last)
    make = jax.nn.initializers.orthogonal
    keys = jax.random.split(key, len(scales))
    shapes = zip(keys, scales, sizes[:-1], sizes[1:], strict=True)
    layers = [(make(scale)(key, (n, m)), jnp.zeros(m)) for key, scale, n, m in shapes]
    return layers[:-1], layers[-1:]


def network(layers: tuple[Layers, Layers], x: jax.Array) -> jax.Array:
    hidden, heads = layers
    for weights, bias in hidden:
        x = jnp.tanh(x @ weights + bias)
    return jnp.concatenate([x @ weights + bias for weights, bias in heads], axis=-1)


def make_task(task: str) -> tuple[Any, Any]:
    """Return an environment in gymnax's form, and its parameters."""
    if task != "DoorKey-8x8":
        return gymnax.make(task)
    from payback_lab.environments.minigrid.gymnax_form import MiniGrid

    return MiniGrid(task), None


def read(obs: jax.Array) -> jax.Array:
    """Return observations as the networks read them: images (B, 7, 7, 3) as rows of small numbers."""
    return obs.reshape(len(obs), -1) / 10 if obs.ndim == 4 else obs


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


@partial(jax.jit, static_argnames=("updates", "method", "task", "factor", "count"))
def train(
    key: jax.Array,
    updates: int = UPDATES,
    method: str = "grm",
    task: str = "CartPole-v1",
    factor: float = 0.05,
    carry: Any = None,
    first: int | jax.Array = 0,
    count: int | None = None,
) -> tuple[Any, dict[str, Any]]:
    """Train `count` updates, all unless given; return the carry and all that was seen, (updates, T, B, …) each."""
    basic, settings = make_task(task)
    bonus = episodic_count(alpha=1.0) if task == "DoorKey-8x8" else rnd(alpha=1.0)
    shaping = payback.chain(payback.scale(factor), payback.grm(GAMMA, DELAYS[task]))  # (1)
    env = ShapeVectorReward(  # (2)
        LogWrapper(basic), bonus, shaping, on_truncation="settle", learner_gamma=GAMMA
    )
    scaled = payback.chain(payback.scale(factor), payback.center())
    estimator = payback.grm_adv(GAMMA, DELAYS[task], lam=0.95, center=scaled, gae_lambda=LAMBDA)  # [2]
    key, start, one, two = jax.random.split(key, 4)
    obs, state = env.reset(jax.random.split(start, ENVS), settings)
    inputs = read(obs).shape[-1]
    params = {
        "actor": init_network(one, inputs, basic.num_actions, 0.01),
        "critic": init_network(two, inputs, 1, 1.0),
    }
    if method == "grm-adv":
        # A head that is 0 until it's trained: without a bonus, PPO stays what it was.
        params["critic"][1].append((jnp.zeros((64, 1)), jnp.zeros(1)))  # [1] a second value head
    rate = optax.linear_schedule(RATE, 0.0, updates * EPOCHS * BATCHES)
    optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(rate, eps=1e-5))

    def act(carry: Any, key: jax.Array) -> tuple[Any, tuple[Rows, dict[str, jax.Array]]]:
        params, obs, state = carry
        choose, move = jax.random.split(key)
        logits, value = network(params["actor"], read(obs)), network(params["critic"], read(obs))
        action = jax.random.categorical(choose, logits)
        log_prob = jnp.take_along_axis(jax.nn.log_softmax(logits), action[:, None], axis=1)[:, 0]
        keys = jax.random.split(move, ENVS)
        after, state, reward, terminated, truncated, info = env.step(keys, state, action, settings)
        if method != "grm":
            reward = info["extrinsic"] + (factor * info["intrinsic"] if method == "raw" else 0.0)
        rows = Rows(read(obs), action, log_prob, value, reward, terminated | truncated, info["intrinsic"])
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
        last = network(params["critic"], read(obs))
        advantage = advantages(rows, last[..., 0])
        target = (advantage + rows.value[..., 0])[..., None]
        if method == "grm-adv":
            mean, added, own = estimator.estimate(  # [4]
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
        seen = rows._replace(obs=(), action=(), log_prob=())
        return (params, memory, obs, state, mean), {**info, "rows": seen, "last_value": last, "advantage": advantage}

    carry = carry or (params, optimiser.init(params), obs, state, estimator.init(jnp.zeros(ENVS)))  # [3] F̄
    steps = (jax.random.split(key, updates), jnp.arange(updates) / updates)
    part = jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, first, updates if count is None else count), steps)
    return jax.lax.scan(update, carry, part)


def curve(info: dict[str, Any], parts: int = 10, before: int = 0) -> list[tuple[int, float]]:
    """Return (steps, mean extrinsic return of the episodes that ended) for each part, after `before` updates."""
    check_episodes(info)  # outside jit, where a warning can be heard
    points = []
    for rows in np.array_split(np.arange(len(info["returned_episode"])), parts):
        ended = info["returned_episode"][rows]
        if ended.any():
            mean = float(info["returned_episode_returns"][rows][ended].mean())
            points.append((int(before + rows[-1] + 1) * ENVS * STEPS, mean))
    return points


def main(
    updates: int = UPDATES,
    seed: int = 0,
    method: str = "grm",
    task: str = "CartPole-v1",
    parts: int = 10,
    checkpoint: Path | None = None,
) -> list[tuple[int, float]]:
    """Train, print the curve and return it; with `checkpoint`, save each part of it and go on after the last."""
    run = partial(train, jax.random.key(seed), updates, method, task, FACTORS[task][method])
    asked = f"{task} with {method}, seed {seed}, {updates} updates of {STEPS} x {ENVS} rows in {parts} parts"
    carry, points, done = load(checkpoint, asked, run(count=0)[0]) if checkpoint else (None, [], 0)
    for rows in np.array_split(np.arange(updates), min(parts, updates) if checkpoint else 1)[done:]:
        carry, info = run(carry=carry, first=rows[0], count=len(rows)) if checkpoint else run()
        points += curve(jax.tree.map(np.asarray, info), 1 if checkpoint else parts, rows[0])
        done += 1
        kept = {"run": asked, "carry": jax.tree.leaves(carry), "points": points, "done": done}
        if checkpoint:
            payback.save_state(checkpoint, kept)  # arrays and JSON, whole or not at all
    for steps, mean in points:
        print(f"{method} after {steps:7,} steps: extrinsic return {mean:.2f}", flush=True)
    return points


def load(path: Path, asked: str, start: Any) -> tuple[Any, list[tuple[int, float]], int]:
    """Return the carry, the points and the number of finished parts of the run `asked`; `start` where no file is."""
    if not path.exists():
        return start, [], 0
    try:
        kept = payback.load_state(path)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from None
    there = kept.get("run") if isinstance(kept, dict) else None
    if there != asked or list(map(jnp.shape, kept["carry"])) != list(map(jnp.shape, jax.tree.leaves(start))):
        raise SystemExit(f"{path} holds the run {there!r}, not {asked!r}; pass its options, or name another file")
    print(f"{path}: goes on after part {kept['done']}", flush=True)
    return jax.tree.unflatten(jax.tree.structure(start), kept["carry"]), kept["points"], kept["done"]


def compare(updates: int, seed: int, task: str, path: str = "purejaxrl_style.svg") -> list[dict[str, Any]]:
    """Train with each method, draw the curves, and return their points."""
    points = []
    for method, factor in FACTORS[task].items():
        label = f"{method}, α = {factor:g}" if factor else method
        drawn = main(updates, seed, method, task, min(updates, 50))
        points += [{"method": label, "steps": steps, "return": value} for steps, value in drawn]
    draw(points, path)
    return points


def draw(points: list[dict[str, Any]], path: str) -> None:
    import altair

    axes = altair.X("steps:Q", title="environment steps"), altair.Y("return:Q", title="extrinsic return")
    chart = altair.Chart(altair.Data(values=points), width=420, height=260).mark_line()
    chart.encode(*axes, altair.Color("method:N", title=None)).save(str(path))
    print(f"the curves are in {path}")


def arguments(line: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=DELAYS, default="CartPole-v1")
    parser.add_argument("--method", choices=METHODS, default="grm", help="how the bonus is paid")
    parser.add_argument("--updates", type=int, default=UPDATES, help=f"rollouts of {ENVS * STEPS:,} steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compare", action="store_true", help="four methods, drawn")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="save to FILE; go on from it if it's there")
    args = parser.parse_args(line)
    if args.checkpoint and (args.compare or not args.checkpoint.parent.is_dir()):
        parser.error("--checkpoint keeps one run, without --compare, in a file of a folder that exists")
    return args


if __name__ == "__main__":
    args = arguments()
    if args.compare:
        compare(args.updates, args.seed, args.task)
    else:
        main(args.updates, args.seed, args.method, args.task, checkpoint=args.checkpoint)
