"""Environments split over devices with `jax.shard_map`, whose types say what varies from device to device."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, PartitionSpec

import payback
from payback.core.state import leaves, rebuild, roles

from .cases import quiet, random_stream

pytestmark = quiet

STREAM = random_stream(3, 12, 4, ends=0.2, dtype=np.float32)
OVER_ENVS = PartitionSpec(None, "envs")


def sharded(shape: Any, state: Any, **options: Any) -> Any:
    """Run `shape(state, rewards, dones)` on each device's environments."""
    spec = rebuild(
        state,
        iter(
            PartitionSpec(*(None,) * (x.ndim - 1), "envs") if role == "environment" else PartitionSpec()
            for x, role in zip(leaves(state), roles(state), strict=True)
        ),
    )
    mesh = Mesh(np.array(jax.devices()[:1]), ("envs",))
    run = jax.shard_map(shape, mesh=mesh, in_specs=(spec, OVER_ENVS, OVER_ENVS), out_specs=(spec, OVER_ENVS), **options)
    return jax.jit(run)(state, jnp.asarray(STREAM.rewards), jnp.asarray(STREAM.dones))


@pytest.mark.parametrize(
    ("transform", "options"),
    [
        (payback.match_after(0.9, 3), {}),
        (payback.match_after(0.9, 40), {}),
        (payback.match_evenly(0.9, 40), {}),
        (payback.match_geometric(0.9, 0.5), {}),
        (payback.match_at_end(0.9), {}),
        (payback.grm(0.9, 3), {"check_vma": False}),
    ],
    ids=repr,
)
def test_rollouts_can_be_sharded_over_environments(transform: payback.Match, options: dict[str, Any]):
    state = transform.init(jnp.zeros(4, jnp.float32))
    shaped = sharded(lambda *args: payback.shape_rollout(transform, *args), state, **options)[1]
    expected = payback.shape_rollout(transform, state, jnp.asarray(STREAM.rewards), jnp.asarray(STREAM.dones))[1]
    np.testing.assert_allclose(shaped, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("delay", [0, 1])
def test_no_state_holds_an_array_without_numbers(delay: int):
    """Orbax refuses to save one."""
    assert all(x.size for x in leaves(payback.grm(0.9, delay).init(jnp.zeros(2))))
