"""MiniGrid's DoorKey in JAX: pick up the key, unlock the door, reach the goal (section `minigrid`).

Observations, rules, reset distribution and time limit equal those of the `minigrid` package, step by step. The
functions are pure and take states of any batch shape.
"""

from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np

from payback_lab.environments.doorkey.view import KEY, UNSEEN, VIEW, channels, view_table

LEFT, RIGHT, AHEAD, PICK_UP, DROP, TOGGLE, DONE = range(7)
ACTIONS = 7
OPEN, CLOSED, LOCKED = range(3)
DRAWS = 5
"""How many uniform random numbers the start of an episode takes."""
Payment = Literal["one", "minigrid"]


class State(NamedTuple):
    """Hold the states of many grids, integer arrays of one shape; x grows rightwards, y downwards."""

    wall: jax.Array
    """Column of the wall between the rooms."""
    door_row: jax.Array
    """Row of the door in that wall."""
    door: jax.Array
    """State of the door: OPEN, CLOSED or LOCKED."""
    x: jax.Array
    y: jax.Array
    direction: jax.Array
    """Where the agent looks: 0 right, 1 down, 2 left, 3 up."""
    key_x: jax.Array
    """Column of the key, −1 while it is carried."""
    key_y: jax.Array
    """Row of the key, −1 while it is carried."""
    time: jax.Array
    """Steps taken in this episode."""

    @property
    def carrying(self) -> jax.Array:
        """Return whether the agent carries the key."""
        return self.key_x < 0


class DoorKey(NamedTuple):
    """Describe one DoorKey task; the functions of this module take it first."""

    size: int = 8
    """Side of the grid, outer walls included; MiniGrid registers 5, 6, 8 and 16."""
    max_steps: int = 640
    """Steps after which an episode is truncated; MiniGrid's is 10·size²."""
    payment: Payment = "one"
    """Reward at the goal: "one" (the paper) or "minigrid", 1 − 0.9·t/max_steps; 0 everywhere else."""

    @property
    def cells(self) -> int:
        """Return the number of values of (x, y, carrying), which `cell_index` numbers."""
        return 2 * (self.size - 2) ** 2


def make_doorkey(size: int = 8, payment: Payment = "one", max_steps: int | None = None) -> DoorKey:
    """Describe a DoorKey task; a size, payment or time limit that cannot be is refused.

    >>> make_doorkey(5)
    DoorKey(size=5, max_steps=250, payment='one')
    """
    if size < 5:
        raise ValueError(f"size is {size}, but two rooms and a wall between need at least 5; give 5, 6, 8 or 16")
    if payment not in get_args(Payment):
        raise ValueError(f'payment is {payment!r}; give "one" (the paper) or "minigrid" (1 − 0.9·t/max_steps)')
    limit = 10 * size**2 if max_steps is None else max_steps
    if limit < 1:
        raise ValueError(f"max_steps is {limit}, but an episode has at least one step; leave it out for 10·size²")
    return DoorKey(size, limit, payment)


def reset(task: DoorKey, key: jax.Array, shape: tuple[int, ...] = ()) -> State:
    """Start episodes on random grids.

    >>> state = reset(make_doorkey(5), jax.random.key(0))
    >>> int(state.wall), bool(state.carrying), int(state.door) == LOCKED
    (2, False, True)
    """
    return start(task, jax.random.uniform(key, (DRAWS, *shape)))


def start(task: DoorKey, uniform: jax.Array) -> State:
    """Start episodes from uniform numbers in [0, 1), (5, …): wall, door row, agent, direction, key.

    The agent stands on any cell of the left room, the key lies on any other.
    """
    side = task.size - 2
    wall = 2 + _pick(uniform[0], task.size - 4)
    door_row = 1 + _pick(uniform[1], task.size - 3)
    room = (wall - 1) * side
    agent = _pick(uniform[2], room)
    direction = _pick(uniform[3], 4)
    key = _pick(uniform[4], room - 1)
    key = key + (key >= agent)
    return State(
        wall=wall,
        door_row=door_row,
        door=jnp.full_like(wall, LOCKED),
        x=1 + agent // side,
        y=1 + agent % side,
        direction=direction,
        key_x=1 + key // side,
        key_y=1 + key % side,
        time=jnp.zeros_like(wall),
    )


def _pick(uniform: jax.Array, choices: jax.Array | int) -> jax.Array:
    # float32 leaves a bias below choices/2²³ per value, far from what any run could tell.
    return jnp.floor(uniform * choices).astype(jnp.int32)


def step(task: DoorKey, state: State, action: jax.Array) -> tuple[State, jax.Array, jax.Array, jax.Array]:
    """Take one action; return the next state, the reward, whether it terminated, whether it was truncated."""
    dx, dy = ahead_of(state.direction)
    x, y = state.x + dx, state.y + dy
    last = task.size - 1
    door_ahead = (x == state.wall) & (y == state.door_row)
    wall_ahead = (x == 0) | (y == 0) | (x == last) | (y == last) | ((x == state.wall) & ~door_ahead)
    key_ahead = (x == state.key_x) & (y == state.key_y)
    goal_ahead = (x == last - 1) & (y == last - 1)
    passable = ~wall_ahead & ~key_ahead & (~door_ahead | (state.door == OPEN))

    moves = (action == AHEAD) & passable
    picks = (action == PICK_UP) & key_ahead
    drops = (action == DROP) & state.carrying & ~wall_ahead & ~door_ahead & ~goal_ahead
    toggles = (action == TOGGLE) & door_ahead & ((state.door != LOCKED) | state.carrying)
    turn = jnp.where(action == RIGHT, 1, 0) - jnp.where(action == LEFT, 1, 0)
    time = state.time + 1
    after = state._replace(
        door=jnp.where(toggles, jnp.where(state.door == OPEN, CLOSED, OPEN), state.door),
        x=jnp.where(moves, x, state.x),
        y=jnp.where(moves, y, state.y),
        direction=(state.direction + turn) & 3,
        key_x=jnp.where(picks, -1, jnp.where(drops, x, state.key_x)),
        key_y=jnp.where(picks, -1, jnp.where(drops, y, state.key_y)),
        time=time,
    )
    terminated = moves & goal_ahead
    return after, jnp.where(terminated, _payment(task, time), 0.0), terminated, time >= task.max_steps


def ahead_of(direction: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the step (dx, dy) in each direction, equal to `FORWARD`, without a table look-up."""
    dx = jnp.where(direction == 0, 1, jnp.where(direction == 2, -1, 0))
    dy = jnp.where(direction == 1, 1, jnp.where(direction == 3, -1, 0))
    return dx, dy


def _payment(task: DoorKey, time: jax.Array) -> jax.Array:
    if task.payment == "one":
        return jnp.ones(time.shape, jnp.float32)
    # Rounded once from float64, because the reward is then MiniGrid's to the last bit of float32.
    by_time = 1 - 0.9 * (np.arange(task.max_steps + 1) / task.max_steps)
    return jnp.asarray(by_time.astype(np.float32))[time]


def observe(task: DoorKey, state: State) -> jax.Array:
    """Return the view as tile numbers, uint16 (…, 49); `image` makes them MiniGrid's image[column, row]."""
    table = view_table(task.size)
    rows = jnp.ravel_multi_index(
        (state.wall - 2, state.door_row - 1, state.door, state.x - 1, state.y - 1, state.direction),
        table.shape[:-1],
        mode="clip",
    )
    tiles = jnp.asarray(table.reshape(-1, VIEW * VIEW))[rows]
    key_cell = _cell_of_key(state)[..., None]
    seen = (jnp.arange(VIEW * VIEW) == key_cell) & (tiles != UNSEEN)
    return jnp.where(seen, KEY, tiles)


def _cell_of_key(state: State) -> jax.Array:
    """Return the key's place in the view, −1 if it is out of view; a carried key is shown at the agent."""
    dx, dy = ahead_of(state.direction)
    east, south = state.key_x - state.x, state.key_y - state.y
    ahead, right = east * dx + south * dy, south * dx - east * dy
    ahead = jnp.where(state.carrying, 0, ahead)
    right = jnp.where(state.carrying, 0, right)
    half = VIEW // 2
    inside = (ahead >= 0) & (ahead < VIEW) & (abs(right) <= half)
    return jnp.where(inside, (right + half) * VIEW + (VIEW - 1 - ahead), -1)


def image(tiles: jax.Array) -> jax.Array:
    """Return tile numbers (…, 49) as MiniGrid's image, uint8 (…, 7, 7, 3)."""
    return jnp.stack(channels(tiles), axis=-1).reshape(*tiles.shape[:-1], VIEW, VIEW, 3)


def cell_index(task: DoorKey, state: State) -> jax.Array:
    """Return the number of (x, y, carrying), the place whose visits the paper's bonus counts."""
    side = task.size - 2
    return ((state.x - 1) * side + state.y - 1) * 2 + state.carrying


def event(before: State, after: State) -> jax.Array:
    """Return whether a step picked up the key or opened the door."""
    picked = after.carrying & ~before.carrying
    return picked | ((after.door == OPEN) & (before.door != OPEN))
