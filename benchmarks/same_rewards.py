"""Are shaped rewards the same to the bit at two commits? Record them at one, compare at the other.

    python benchmarks/same_rewards.py --out a.json         record SHA-256 of the bytes of every shaped stream
    python benchmarks/same_rewards.py --against a.json     compare, and name each stream that differs

Every matching and chain shapes the same recorded streams (ends, invalid rows, events; float32 and float64) in NumPy,
Torch and JAX, step by step and in blocks. Run both on the same machine: other libraries may round otherwise.
"""

import os

os.environ.update(JAX_PLATFORMS="cpu", OMP_NUM_THREADS="1")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import argparse
import hashlib
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

import payback

T, B = 90, 5
G = 0.97

TRANSFORMS = {
    "match_at_end": payback.match_at_end(G),
    "match_when": payback.match_when(G),
    "match_after 0": payback.match_after(G, 0),
    "match_after 1": payback.match_after(G, 1),
    "match_after 7": payback.match_after(G, 7),
    "match_after 50": payback.match_after(G, 50),
    "match_after 7, no discount": payback.match_after(1.0, 7),
    "match_evenly": payback.match_evenly(G, 6),
    "match_evenly, long": payback.match_evenly(G, 40),
    "match_from_ages": payback.match_from_ages(G, [0.5, 0.0, 0.3, 0.2]),
    "match_geometric": payback.match_geometric(G, 0.8),
    "pbim": payback.pbim(G),
    "pbim, raw": payback.pbim(G, center=False),
    "grm": payback.grm(G, 10),
    "grm, recent mean": payback.grm(G, 10, center=payback.center(50)),
    "center": payback.center(),
    "center, recent": payback.center(20),
    "scale": payback.scale(0.3),
    "clip": payback.clip(-0.5, 1.0),
    "scale_by_rms": payback.scale_by_rms(),
    "scale_by_rms, recent": payback.scale_by_rms(30),
    "chain": payback.chain(
        payback.clip(-2, 2), payback.scale_by_rms(), payback.center(40), payback.match_after(G, 3), payback.scale(2)
    ),
    "chain when": payback.chain(payback.center(), payback.match_when(G), payback.scale(0.1)),
    "chain geometric": payback.chain(payback.scale(3), payback.match_geometric(G, 0.5)),
    "chain of no match": payback.chain(payback.scale(3), payback.clip(0, 1)),
}
IN_JAX = ("ends", "all")
"""The streams that JAX shapes, too: each one is compiled anew."""
FLAGS = {"ends": (), "valid": ("valid",), "events": ("settle",), "all": ("valid", "settle"), "rare": ("rare",)}


def streams(dtype: str) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yield the recorded streams: (T, B) rewards and flags."""
    for k, (name, flags) in enumerate(FLAGS.items()):
        rng = np.random.default_rng(k)
        rewards = rng.normal(0.3, 1.0, (T, B)).astype(dtype)
        columns = {"rewards": rewards, "dones": rng.random((T, B)) < (0.004 if "rare" in flags else 0.08)}
        if "valid" in flags:
            columns["valid"] = rng.random((T, B)) < 0.85
        if "settle" in flags:
            columns["settle"] = rng.random((T, B)) < 0.12
        yield name, columns


def digest(*arrays: Any) -> str:
    """Return a hash of the bytes of arrays."""
    sums = hashlib.sha256()
    for x in arrays:
        sums.update(np.ascontiguousarray(np.asarray(x)).tobytes())
    return sums.hexdigest()[:16]


def in_steps(transform: Any, xp: Any, columns: dict[str, Any]) -> list[Any]:
    """Shape a stream row after row; return the rows, and the debt after the last."""
    state, rows = transform.init(xp.zeros_like(columns["rewards"][0])), []
    update = jax.jit(transform.update) if xp is jnp else transform.update
    for t in range(T):
        row = {name: block[t] for name, block in columns.items() if name not in ("rewards", "dones")}
        state, shaped = update(state, columns["rewards"][t], columns["dones"][t], **row)
        rows.append(np.asarray(shaped))
    return [*rows, *debt(transform, state)]


def in_blocks(transform: Any, xp: Any, columns: dict[str, Any]) -> list[Any]:
    """Shape a stream in two blocks."""
    state, blocks = transform.init(xp.zeros_like(columns["rewards"][0])), []
    shape = payback.shape_rollout
    for first, last in ((0, T // 2), (T // 2, T)):
        part = {name: block[first:last] for name, block in columns.items()}
        state, shaped = shape(transform, state, part.pop("rewards"), part.pop("dones"), **part)
        blocks.append(np.asarray(shaped))
    return [*blocks, *debt(transform, state)]


def debt(transform: Any, state: Any) -> list[np.ndarray]:
    """Return what each environment owes, nothing for a transform that repays nothing."""
    return [np.asarray(payback.owed(transform, state))] if isinstance(transform, payback.Match) else []


def record() -> dict[str, str]:
    """Return the digest of every stream, shaped in every way."""
    found = {}
    for library, xp, make in (("numpy", np, np.asarray), ("torch", torch, torch.tensor), ("jax", jnp, jnp.asarray)):
        for dtype in ("float32", "float64"):
            for stream, columns in streams(dtype):
                if xp is jnp and stream not in IN_JAX:
                    continue
                arrays = {name: make(block) for name, block in columns.items()}
                for name, transform in TRANSFORMS.items():
                    for how in (in_steps, in_blocks):
                        key = " / ".join((library, dtype, how.__name__, stream, name))
                        found[key] = digest(*how(transform, xp, arrays))
    return found


def main() -> None:
    """Record, or compare; exit with 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the digests to this file")
    parser.add_argument("--against", type=Path, help="compare with the digests in this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore", payback.InterestWarning)
    found = record()
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))
    if options.against:
        before = json.loads(options.against.read_text())
        differ = [key for key in {**before, **found} if before.get(key) != found.get(key)]
        print(*differ, sep="\n")
        print(f"{len(found)} shaped streams, {len(differ)} differ from {options.against.name}")
        raise SystemExit(bool(differ))
    print(f"{len(found)} shaped streams recorded")


if __name__ == "__main__":
    main()
