"""The convolutions of the actor-critic: 2×2 (16) – max-pool 2×2 – 2×2 (32) – 2×2 (64), a ReLU after each.

Arrays are feature-major, (features, N), with the N samples along the last axis, because every matrix product and its
gradient then reads memory in order, and what is done per sample runs over whole vectors.

Three steps have their derivative written out. The automatic one has the same value, but is slower on a CPU, because it
pads and adds whole blocks instead of writing them in place.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax import lax

TAPS = ((0, 0), (0, 1), (1, 0), (1, 1))
"""The four cells of a 2×2 window."""


def image_features(convolutions: Sequence[jax.Array], channels: Sequence[jax.Array]) -> jax.Array:
    """Return the 64 features of images, three channels (7, 7, N), given (weight (out, in), bias (out, 1)) × 3."""
    weight1, bias1, weight2, bias2, weight3, bias3 = convolutions
    image = jnp.stack(channels)
    samples = image.shape[-1]
    pooled = relu_of_max([convolve(weight1, patch) for patch in patches(image, weight1.dtype)], bias1)
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


def _convolve_back(patch: jax.Array, gradient: jax.Array) -> tuple[jax.Array, None]:
    return gradient @ patch.T, None


convolve.defvjp(_convolve, _convolve_back)


@jax.custom_vjp
def relu_of_max(values: Sequence[jax.Array], bias: jax.Array) -> jax.Array:
    """Return relu(max_k values[k] + bias), element by element: max-pool and ReLU in one."""
    return _relu_of_max(values, bias)[0]


def _relu_of_max(values: Sequence[jax.Array], bias: jax.Array) -> tuple[jax.Array, tuple]:
    def part(rows: slice) -> jax.Array:
        a, b, c, d = (value[rows] for value in values)
        return jax.nn.relu(jnp.maximum(jnp.maximum(a, b), jnp.maximum(c, d)) + bias[rows])

    # In two parts, because XLA computes cheap results again wherever they are used, except those of a concatenation.
    half = len(bias) // 2
    result = jnp.concatenate([part(slice(half)), part(slice(half, None))])
    return result, (tuple(values), bias, result)


def _relu_of_max_back(kept: tuple, gradient: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    values, bias, result = kept
    gradient = jnp.where(result > 0, gradient, 0.0)
    # As in Torch, the first of several equal values gets the whole gradient.
    a, b, c = (value + bias == result for value in values[:3])
    first = (a, b & ~a, c & ~(a | b), ~(a | b | c))
    return [jnp.where(wins, gradient, 0.0) for wins in first], gradient.sum(axis=1, keepdims=True)


relu_of_max.defvjp(_relu_of_max, _relu_of_max_back)


@jax.custom_vjp
def windows(maps: jax.Array) -> jax.Array:
    """Lay the four 2×2 windows of maps (C, 3, 3, N) side by side: (4·C, 4·N), for a product with the weights."""
    channels, samples = maps.shape[0], maps.shape[-1]
    # Rows count (channel, tap), columns (window, sample); each tap sees a 2×2 block of the map.
    taps = jnp.stack([maps[:, i : i + 2, j : j + 2] for i, j in TAPS], axis=1)
    return taps.reshape(4 * channels, 4 * samples)


def _windows(maps: jax.Array) -> tuple[jax.Array, None]:
    return windows(maps), None


def _windows_back(_: None, gradient: jax.Array) -> tuple[jax.Array]:
    channels, samples = gradient.shape[0] // 4, gradient.shape[1] // 4
    gradient = gradient.reshape(channels, 4, 2, 2, samples)

    def add(tap: jax.Array, maps: jax.Array) -> jax.Array:
        corner = (0, tap // 2, tap % 2, 0)
        block = lax.dynamic_slice(maps, corner, (channels, 2, 2, samples))
        return lax.dynamic_update_slice(maps, block + gradient[:, tap], corner)

    return (lax.fori_loop(0, 4, add, jnp.zeros((channels, 3, 3, samples), gradient.dtype)),)


windows.defvjp(_windows, _windows_back)
