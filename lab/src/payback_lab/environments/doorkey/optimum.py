"""The fewest steps that solve DoorKey, by breadth-first search over every state of every grid."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from payback_lab.environments.doorkey.rules import ACTIONS, LOCKED, DoorKey, State, step

FAR = np.int32(10**6)
"""Distance of states from which the goal cannot be reached."""


def optimal_length(task: DoorKey) -> float:
    """Return the mean over the reset distribution of the fewest steps to the goal.

    >>> from payback_lab.environments.doorkey.rules import make_doorkey
    >>> round(optimal_length(make_doorkey(5)), 2)
    9.83
    """
    lengths, chances = optimal_lengths(task)
    return float(np.dot(lengths, chances))


@functools.cache
def optimal_lengths(task: DoorKey) -> tuple[np.ndarray, np.ndarray]:
    """Return for every possible start its fewest steps to the goal and its probability, each (starts,)."""
    side = task.size - 2
    pairs = [(wall, row) for wall in range(2, task.size - 2) for row in range(1, task.size - 2)]
    lengths, chances = [], []
    for wall, row in pairs:
        distance = distances(task, wall, row)[: side * side, LOCKED].reshape(side * side, side * side, 4)
        room = (wall - 1) * side
        agent, key = np.meshgrid(np.arange(room), np.arange(room), indexing="ij")
        apart = agent != key
        found = distance[key[apart], agent[apart]].ravel()
        lengths.append(found)
        chances.append(np.full(found.shape, 1 / (len(pairs) * found.size)))
    return np.concatenate(lengths), np.concatenate(chances)


def distances(task: DoorKey, wall: int, door_row: int) -> np.ndarray:
    """Return the fewest steps to the goal from every state of one grid, int32 (keys, 3, size−2, size−2, 4).

    Axes: key's cell (its last value: carried), door state, x − 1, y − 1, direction.
    """
    return 1 + distances_after(task, wall, door_row).min(axis=0)


def distances_after(task: DoorKey, wall: int, door_row: int) -> np.ndarray:
    """Return the fewest steps left after each action, int32 (7, …) with the axes of `distances`.

    The optimal actions are those with the smallest number.
    """
    side = task.size - 2
    axes = (side * side + 1, 3, side, side, 4)
    return np.asarray(_search(task, axes, jnp.int32(wall), jnp.int32(door_row))).reshape(ACTIONS, *axes)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _search(task: DoorKey, axes: tuple[int, ...], wall: jax.Array, door_row: jax.Array) -> jax.Array:
    side, carried = task.size - 2, axes[0] - 1
    key, door, x, y, direction = (a.ravel() for a in jnp.indices(axes))
    full = functools.partial(jnp.full_like, key)
    state = State(
        wall=full(wall),
        door_row=full(door_row),
        door=door,
        x=x + 1,
        y=y + 1,
        direction=direction,
        key_x=jnp.where(key == carried, -1, 1 + key // side),
        key_y=jnp.where(key == carried, -1, 1 + key % side),
        time=full(0),
    )

    def neighbour(action: jax.Array) -> tuple[jax.Array, jax.Array]:
        after, _, terminated, _ = step(task, state, action)
        key = jnp.where(after.carrying, carried, (after.key_x - 1) * side + after.key_y - 1)
        place = (key, after.door, after.x - 1, after.y - 1, after.direction)
        return jnp.ravel_multi_index(place, axes, mode="clip"), terminated

    after, terminated = jax.vmap(neighbour)(jnp.arange(ACTIONS))

    def relax(carry: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        left, _ = carry
        distance = jnp.minimum(1 + left.min(axis=0), FAR)
        shorter = jnp.where(terminated, 0, distance[after])
        return shorter, (shorter < left).any()

    begin = jnp.where(terminated, 0, FAR), jnp.bool_(True)
    return jax.lax.while_loop(lambda carry: carry[1], relax, begin)[0]
