"""The advantage-side estimate beside a plain GAE of the same size, as ratios measured side by side.

    python benchmarks/advantage.py [--json FILE]

Each row is CPU time of `grm_adv(…).estimate` ÷ that of GAE as hosts write it: a loop over the rows in NumPy and
Torch, a scan in JAX. Both have a critic and return advantages and targets; ours is centred and faded, D = 300. Least of
many repetitions, in turns. "JAX" is sixteen rollouts in one jitted scan, as PureJaxRL trains; "JAX, alone" is one
jitted call, which at small sizes times XLA's dispatch: returning the state's six numbers, too, doubles GAE at 128 × 16.
"""

from core import cpu  # isort: skip  first, because it holds the libraries to one thread

import argparse
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

import payback

GAMMA, LAM, ROUNDS = 0.99, 0.95, 7
LIBRARIES = ("NumPy", "Torch", "JAX", "JAX, alone")
ROLLOUTS = 16
SIZES = [(T, B) for T in (128, 512, 2048) for B in (16, 128, 1024)]


def looped(rewards: Any, values: Any, dones: Any, last: Any, zeros: Any) -> Any:
    """GAE as Stable-Baselines3 and CleanRL write it, with dones as floats."""
    found, later = zeros(rewards), 0.0
    for t in reversed(range(len(rewards))):
        after = values[t + 1] if t + 1 < len(rewards) else last
        alive = 1.0 - dones[t]
        later = rewards[t] + GAMMA * after * alive - values[t] + GAMMA * LAM * alive * later
        found[t] = later
    return found, found + values


def scanned(rewards: Any, values: Any, dones: Any, last: Any) -> Any:
    """GAE as PureJaxRL writes it, but not unrolled 16 times, with which it takes up to five times as long on a CPU."""

    def back(carry: Any, row: Any) -> Any:
        (later, after), (reward, value, done) = carry, row
        later = reward + GAMMA * after * (1 - done) - value + GAMMA * LAM * (1 - done) * later
        return (later, value), later

    found = jax.lax.scan(back, (jnp.zeros_like(last), last), (rewards, values, dones), reverse=True)[1]
    return found, found + values


def alone_and_in_a_loop(run: Any, *given: Any) -> tuple[Any, Any]:
    """Return two functions: one jitted call of run(state, rewards, values, dones, last), and a jitted scan of many."""

    def trained(state: Any, *rest: Any, last: Any) -> Any:
        def update(carry: Any, _: Any) -> Any:
            # With a part of the last result, or XLA would compute one for all.
            return tuple(run(carry[0], *rest, last + 1e-9 * carry[1][0])), None

        return jax.lax.scan(update, (state, rest[0], rest[1]), None, ROLLOUTS)[0]

    once, often = jax.jit(run), jax.jit(trained)
    *rest, last = given
    return (
        lambda: jax.block_until_ready(once(*given)),
        lambda: jax.block_until_ready(often(*rest, last=last)),
    )


def ratio(ours: Any, theirs: Any) -> float:
    """Return the least time of ours ÷ theirs, measured in turns."""
    ours(), theirs()
    number = max(1, round(0.05 / max(cpu(theirs, 1), 1e-5)))
    rounds = [(cpu(ours, number), cpu(theirs, number)) for _ in range(ROUNDS)]
    return min(r[0] for r in rounds) / min(r[1] for r in rounds)


def of_size(T: int, B: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    F, V, done = rng.random((T, B), np.float32), rng.random((T, B), np.float32), rng.random((T, B)) < 0.01
    last, found = V[0].copy(), {}
    estimator = payback.grm_adv(GAMMA, 300, 0.99, gae_lambda=LAM)
    makers = (np.asarray, np.zeros_like), (torch.as_tensor, torch.zeros_like)
    for name, (array, zeros) in zip(LIBRARIES[:2], makers, strict=True):
        f, v, d, l, ends = (array(x) for x in (F, V, done, last, done.astype(np.float32)))  # noqa: E741
        state = estimator.init(f[0])
        found[name] = ratio(
            lambda: estimator.estimate(state, f, d, values=v, last_values=l),  # noqa: B023
            lambda: looped(f, v, ends, l, zeros),  # noqa: B023
        )
    state, on_jax = estimator.init(jnp.asarray(last)), [jnp.asarray(x) for x in (F, V, done, last)]
    ours = alone_and_in_a_loop(
        lambda state, f, v, d, l: estimator.estimate(state, f, d, values=v, last_values=l),  # noqa: E741
        state,
        *on_jax,
    )
    theirs = alone_and_in_a_loop(lambda state, *rollout: (state, *scanned(*rollout)), (), *on_jax)
    found["JAX, alone"], found["JAX"] = (ratio(*sides) for sides in zip(ours, theirs, strict=True))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="write the ratios here instead of printing them")
    path = parser.parse_args().json
    ratios = {f"{T} × {B}": of_size(T, B) for T, B in SIZES}
    if path is not None:
        tables = {f"advantage, {name}": {size: row[name] for size, row in ratios.items()} for name in LIBRARIES}
        path.write_text(json.dumps(tables))
        return
    for size, row in ratios.items():
        print(f"{size:12}", "  ".join(f"{name} {row[name]:.2f}" for name in LIBRARIES))


if __name__ == "__main__":
    main()
