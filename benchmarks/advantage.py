"""The advantage-side estimate beside a plain GAE of the same size, as ratios measured side by side.

    python benchmarks/advantage.py [--json FILE]

Each row is CPU time of `grm_adv(…).estimate` ÷ that of GAE as hosts write it: a loop over the rows in NumPy and
Torch, a jitted scan in JAX. Both have a critic; centred and faded, D = 300. Least of many repetitions, in turns.
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
LIBRARIES = ("NumPy", "Torch", "JAX")
SIZES = [(T, B) for T in (128, 512, 2048) for B in (16, 128, 1024)]


def looped(rewards: Any, values: Any, dones: Any, last: Any, zeros: Any) -> Any:
    """GAE as Stable-Baselines3 and CleanRL write it."""
    found, later = zeros(rewards), 0.0
    for t in reversed(range(len(rewards))):
        after = values[t + 1] if t + 1 < len(rewards) else last
        alive = 1.0 - dones[t]
        later = rewards[t] + GAMMA * after * alive - values[t] + GAMMA * LAM * alive * later
        found[t] = later
    return found


@jax.jit
def scanned(rewards: Any, values: Any, dones: Any, last: Any) -> Any:
    """GAE as PureJaxRL writes it."""

    def back(carry: Any, row: Any) -> Any:
        (later, after), (reward, value, done) = carry, row
        later = reward + GAMMA * after * (1 - done) - value + GAMMA * LAM * (1 - done) * later
        return (later, value), later

    return jax.lax.scan(back, (jnp.zeros_like(last), last), (rewards, values, dones), reverse=True)[1]


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
    run = jax.jit(lambda state, f, d, v, l: estimator.estimate(state, f, d, values=v, last_values=l))  # noqa: E741
    on_jax = [jnp.asarray(x) for x in (F, done, V, last)]
    begin, ends = estimator.init(on_jax[0][0]), jnp.asarray(done, jnp.float32)
    found["JAX"] = ratio(
        lambda: jax.block_until_ready(run(begin, *on_jax)),
        lambda: jax.block_until_ready(scanned(on_jax[0], on_jax[2], ends, on_jax[3])),
    )
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
        print(f"{size:12}", "  ".join(f"{name} {value:.2f}" for name, value in row.items()))


if __name__ == "__main__":
    main()
