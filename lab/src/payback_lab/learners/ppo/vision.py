"""The convolutions of the actor-critic: 2×2 (16) – max-pool 2×2 – 2×2 (32) – 2×2 (64), a ReLU after each.

Arrays are feature-major, (features, N), with the N samples along the last axis: every matrix product, its
gradient included, then reads memory in order, and what happens per sample runs over whole vectors.

Three steps have their derivative written out. The automatic one is equal in value, but pads and adds blocks
where a CPU is better told to write them in place.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

TAPS = ((0, 0), (0, 1), (1, 0), (1, 1))
"""The four cells of a 2×2 window."""


def see(convolutions: Sequence[jax.Array], channels: Sequence[jax.Array]) -> jax.Array:
    """Return the 64 features of images, three channels (7, 7, N), given (weight (out, in), bias (out, 1)) × 3."""
    weight1, bias1, weight2, bias2, weight3, bias3 = convolutions
    image = jnp.stack(channels)
    samples = image.shape[-1]
    pooled = relu_of_largest([convolve(weight1, patch) for patch in patches(image, weight1.dtype)], bias1)
    columns = windows(pooled.reshape(-1, 3, 3, samples))
    hidden = jax.nn.relu(weight2 @ columns + bias2)
    return jax.nn.relu(weight3 @ hidden.reshape(-1, samples) + bias3)


def patches(image: jax.Array, dtype: jnp.dtype) -> list[jax.Array]:
    """Cut images (3, 7, 7, N) into what the first convolution sees: four arrays (12, 9·N).

    The k-th holds the 2×2×3 inputs of the k-th position of each of the 3×3 pooling windows, so that the
    pool is the largest of four arrays.
    """
    image = image.astype(dtype)
    return [
        jnp.concatenate([image[:, i + di : i + di + 5 : 2, j + dj : j + dj + 5 : 2] for di, dj in TAPS]).reshape(12, -1)
        for i, j in TAPS
    ]


@jax.custom_vjp
def convolve(weight: jax.Array, patch: jax.Array) -> jax.Array:
    """Return weight @ patch; the patches are data and get no gradient."""
    return weight @ patch


def _convolve(weight: jax.Array, patch: jax.Array) -> tuple[jax.Array, jax.Array]:
    return weight @ patch, patch


def _convolve_back(patch: jax.Array, slope: jax.Array) -> tuple[jax.Array, None]:
    return slope @ patch.T, None


convolve.defvjp(_convolve, _convolve_back)


@jax.custom_vjp
def relu_of_largest(values: Sequence[jax.Array], bias: jax.Array) -> jax.Array:
    """Return relu(max_k values[k] + bias), element by element: max-pool and ReLU in one."""
    return _relu_of_largest(values, bias)[0]


def _relu_of_largest(values: Sequence[jax.Array], bias: jax.Array) -> tuple[jax.Array, tuple]:
    def part(rows: slice) -> jax.Array:
        a, b, c, d = (value[rows] for value in values)
        return jax.nn.relu(jnp.maximum(jnp.maximum(a, b), jnp.maximum(c, d)) + bias[rows])

    # In two parts: XLA computes what is cheap again wherever it is used, except what is put together.
    half = len(bias) // 2
    result = jnp.concatenate([part(slice(half)), part(slice(half, None))])
    return result, (tuple(values), bias, result)


def _relu_of_largest_back(kept: tuple, slope: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    values, bias, result = kept
    slope = jnp.where(result > 0, slope, 0.0)
    # As in Torch, the first of several equal values takes the whole slope.
    a, b, c = (value + bias == result for value in values[:3])
    first = (a, b & ~a, c & ~(a | b), ~(a | b | c))
    return [jnp.where(wins, slope, 0.0) for wins in first], slope.sum(axis=1, keepdims=True)


relu_of_largest.defvjp(_relu_of_largest, _relu_of_largest_back)


@jax.custom_vjp
def windows(maps: jax.Array) -> jax.Array:
    """Lay the four 2×2 windows of maps (C, 3, 3, N) side by side: (4·C, 4·N), for a product with the weights."""
    channels, samples = maps.shape[0], maps.shape[-1]
    # Rows count (channel, tap), columns (window, sample); each tap sees a 2×2 block of the map.
    taps = jnp.stack([maps[:, i : i + 2, j : j + 2] for i, j in TAPS], axis=1)
    return taps.reshape(4 * channels, 4 * samples)


def _windows(maps: jax.Array) -> tuple[jax.Array, None]:
    return windows(maps), None


def _windows_back(_: None, slope: jax.Array) -> tuple[jax.Array]:
    channels, samples = slope.shape[0] // 4, slope.shape[1] // 4
    slope = slope.reshape(channels, 4, 2, 2, samples)

    def add(tap: jax.Array, maps: jax.Array) -> jax.Array:
        corner = (0, tap // 2, tap % 2, 0)
        block = lax.dynamic_slice(maps, corner, (channels, 2, 2, samples))
        return lax.dynamic_update_slice(maps, block + slope[:, tap], corner)

    return (lax.fori_loop(0, 4, add, jnp.zeros((channels, 3, 3, samples), slope.dtype)),)


windows.defvjp(_windows, _windows_back)
