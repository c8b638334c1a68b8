"""DoorKey equals the `minigrid` package: rules and views in lock-step, starts in distribution."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from payback_lab.environments.doorkey import rules as doorkey
from payback_lab.environments.doorkey.optimum import distances_after, optimal_length, optimal_lengths
from payback_lab.environments.doorkey.rules import State, make_doorkey

minigrid_envs = pytest.importorskip("minigrid.envs")
LANES = 20
LOGGED = ("before", "action", "reward", "terminated", "truncated", "after")


def objects(env) -> dict:
    """Return door and key of a freshly reset MiniGrid environment."""
    return {cell.type: cell for cell in env.grid.grid if cell and cell.type in ("door", "key")}


def export(env, door, key) -> State:
    """Return the state of a MiniGrid environment."""
    key_at = (-1, -1) if env.carrying else key.cur_pos
    values = (*door.cur_pos, door.encode()[2], *env.agent_pos, env.agent_dir, *key_at, env.step_count)
    return State(*map(int, values))


def seek(state: State, left_after, rng) -> int:
    """Return a random action among those that begin a shortest way to the goal."""
    left = left_after(state.wall, state.door_row)
    side = left.shape[3]
    key = side * side if state.key_x < 0 else (state.key_x - 1) * side + state.key_y - 1
    after = left[:, key, state.door, state.x - 1, state.y - 1, state.direction]
    return int(rng.choice(np.flatnonzero(after == after.min())))


def play_minigrid(size: int, max_steps: int, steps: int, greed: float, seed: int) -> dict[str, np.ndarray]:
    """Play LANES MiniGrid games; with probability `greed` the action is one on a shortest way to the goal."""
    rng = np.random.default_rng(seed)
    left_after = functools.cache(functools.partial(distances_after, make_doorkey(size)))
    # The search over a large grid takes seconds: there the games share three of them.
    seeds = itertools.cycle(range(3)) if size > 8 else itertools.count(1000 * seed)
    rows, starts = [], []
    for _ in range(LANES):
        env = minigrid_envs.DoorKeyEnv(size=size, max_steps=max_steps)
        seen = env.reset(seed=next(seeds))[0]["image"]
        things, fresh = objects(env), True
        for _ in range(steps):
            state = export(env, **things)
            action = seek(state, left_after, rng) if rng.random() < greed else int(rng.integers(7))
            before = seen
            observation, reward, terminated, truncated, _ = env.step(action)
            seen = observation["image"]
            rows.append((before, action, reward, terminated, truncated, seen))
            starts.append(state if fresh else State(*[-9] * 9))
            fresh = terminated or truncated
            if fresh:
                seen = env.reset(seed=next(seeds))[0]["image"]
                things = objects(env)
    log = {name: np.array(column) for name, column in zip(LOGGED, zip(*rows, strict=True), strict=True)}
    log["start"] = np.array(starts, dtype=np.int32)
    return {name: a.reshape(LANES, steps, *a.shape[1:]).swapaxes(0, 1) for name, a in log.items()}


def play_ours(size: int, max_steps: int, log: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Play the same actions from the same starts, with MiniGrid's own reward."""
    task = make_doorkey(size, "minigrid", max_steps)

    def one(state, row):
        start, action = State(*row[0].T), row[1]
        state = jax.tree.map(lambda new, old: jnp.where(start.wall > 0, new, old), start, state)
        after, reward, terminated, truncated = doorkey.step(task, state, action)
        tiles = doorkey.observe(task, state), doorkey.observe(task, after)
        return after, (doorkey.image(tiles[0]), reward, terminated, truncated, doorkey.image(tiles[1]))

    begin = State(*log["start"][0].T)
    _, out = jax.jit(lambda *rows: jax.lax.scan(one, begin, rows))(log["start"], log["action"])
    return dict(zip(("before", "reward", "terminated", "truncated", "after"), map(np.asarray, out), strict=True))


# 210,000 steps in all. The limit of 23 steps makes goal and time limit meet in one step.
WALKS = [
    (8, 640, 2500, 0.0, 1),
    (8, 640, 2500, 0.3, 2),
    (8, 640, 2500, 0.7, 3),
    (8, 23, 2500, 0.9, 4),
    (6, 360, 150, 0.5, 6),
    (16, 2560, 150, 0.7, 7),
    *((size, 10 * size**2, 150, 0.7, size) for size in (10, 11, 12, 13, 14)),
]


@pytest.mark.parametrize(
    ("size", "max_steps", "steps", "greed", "seed"),
    [(5, 250, 200, 0.5, 5), *(pytest.param(*walk, marks=pytest.mark.slow) for walk in WALKS)],
)
def test_every_step_equals_minigrid(size, max_steps, steps, greed, seed):
    log = play_minigrid(size, max_steps, steps, greed, seed)
    log["reward"] = log["reward"].astype(np.float32)
    for name, ours in play_ours(size, max_steps, log).items():
        different = np.argwhere(ours != log[name])
        assert not len(different), f"{name} differs first at (step, lane, …) = {different[0]}"
    if greed > 0:
        assert log["terminated"].any()
    if max_steps == 23:
        assert (log["terminated"] & log["truncated"]).any()


def starts_of_minigrid(size: int, count: int) -> State:
    env = minigrid_envs.DoorKeyEnv(size=size)
    env.reset(seed=0)
    found = []
    for _ in range(count):
        # The grid alone: rendering the first view would double the time.
        env._gen_grid(size, size)
        env.carrying, env.step_count = None, 0
        found.append(export(env, **objects(env)))
    return State(*np.array(found).T)


def too_far(counts: np.ndarray, others: np.ndarray) -> float:
    """Return by how many standard deviations the χ² of two samples exceeds its mean (Wilson–Hilferty)."""
    pooled = counts + others
    counts, others, pooled = counts[pooled > 0], others[pooled > 0], pooled[pooled > 0]
    share = counts.sum() / pooled.sum()
    chi2 = ((counts - share * pooled) ** 2 / (share * (1 - share) * pooled)).sum()
    freedom = len(pooled) - 1
    if freedom == 0:
        return 0.0
    spread = 2 / (9 * freedom)
    return float(((chi2 / freedom) ** (1 / 3) - (1 - spread)) / np.sqrt(spread))


LOOKS = {
    "wall": ("wall",),
    "door": ("wall", "door_row"),
    "agent": ("wall", "x", "y"),
    "direction": ("direction", "x"),
    "key": ("wall", "key_x", "key_y"),
    "agent and key in height": ("y", "key_y", "x", "key_x"),
}


@pytest.mark.slow
@pytest.mark.parametrize("size", [5, 8])
def test_starts_are_distributed_as_minigrids(size):
    theirs = starts_of_minigrid(size, 12_000)
    ours = jax.device_get(doorkey.reset(make_doorkey(size), jax.random.key(1), (60_000,)))
    for look, fields in LOOKS.items():
        shape = (size,) * len(fields)
        counts = [
            np.bincount(np.ravel_multi_index([getattr(s, f) for f in fields], shape), minlength=np.prod(shape))
            for s in (theirs, ours)
        ]
        assert too_far(*counts) < 4, look
    assert (ours.door == doorkey.LOCKED).all()
    assert (ours.time == 0).all()


def test_the_starts_are_all_those_of_the_search():
    """The exact mean of the shortest way over starts is met by a sample of them."""
    task = make_doorkey(6)
    lengths, chances = optimal_lengths(task)
    assert chances.sum() == pytest.approx(1)
    state = jax.device_get(doorkey.reset(task, jax.random.key(0), (20_000,)))
    side = task.size - 2
    sampled = np.empty(len(state.wall))
    for wall in range(2, task.size - 2):
        for row in range(1, task.size - 2):
            here = (state.wall == wall) & (state.door_row == row)
            distance = 1 + distances_after(task, wall, row).min(axis=0)
            key = (state.key_x - 1) * side + state.key_y - 1
            found = distance[key, state.door, state.x - 1, state.y - 1, state.direction]
            sampled[here] = found[here]
    error = lengths.std() / np.sqrt(len(sampled))
    assert sampled.mean() == pytest.approx(lengths @ chances, abs=4 * error)


def test_the_optimum_of_the_paper_s_grid():
    lengths, _ = optimal_lengths(make_doorkey(8))
    assert optimal_length(make_doorkey(8)) == pytest.approx(16.766, abs=1e-3)
    assert (lengths.min(), lengths.max()) == (7, 29)


def test_a_drawn_grid_is_solved_in_the_steps_the_search_says():
    """A way found by hand, on a picture.

    #####   The agent > looks right at the wall; the key K lies two below.
    #>#.#   Turn to face down (1), walk once (2), pick up (3); then left to face the door (4), unlock (5),
    #.D.#   walk through (6, 7), turn down (8), walk to the goal (9).
    #K#G#
    #####
    """
    task = make_doorkey(5)
    state = State(*map(jnp.int32, (2, 2, doorkey.LOCKED, 1, 1, 0, 1, 3, 0)))
    way = [1, 2, 3, 0, 5, 2, 2, 1, 2]
    ends = []
    for action in way:
        state, reward, terminated, truncated = doorkey.step(task, state, jnp.int32(action))
        ends.append((float(reward), bool(terminated), bool(truncated)))
    assert ends == [(0.0, False, False)] * 8 + [(1.0, True, False)]
    left = distances_after(task, 2, 2)
    assert 1 + left[:, (3 - 1), doorkey.LOCKED, 0, 0, 0].min() == len(way)


def test_an_event_is_the_key_picked_up_or_the_door_opened():
    """The grid above, with detours: what is done again counts again, what undoes it does not."""
    task = make_doorkey(5)
    state = State(*map(jnp.int32, (2, 2, doorkey.LOCKED, 1, 1, 0, 1, 3, 0)))
    way = [
        (doorkey.PICK_UP, False),  # nothing ahead but the wall
        (doorkey.RIGHT, False),
        (doorkey.AHEAD, False),
        (doorkey.PICK_UP, True),
        (doorkey.DROP, False),
        (doorkey.PICK_UP, True),
        (doorkey.PICK_UP, False),  # in hand already
        (doorkey.LEFT, False),
        (doorkey.TOGGLE, True),
        (doorkey.TOGGLE, False),  # closed
        (doorkey.AHEAD, False),
        (doorkey.TOGGLE, True),
        (doorkey.AHEAD, False),
        (doorkey.AHEAD, False),
        (doorkey.RIGHT, False),
        (doorkey.AHEAD, False),
    ]
    found = []
    for action, _ in way:
        after, _, terminated, _ = doorkey.step(task, state, jnp.int32(action))
        found.append((action, bool(doorkey.event(state, after))))
        state = after
    assert found == way
    assert terminated


def test_events_of_many_games_are_each_their_own():
    before = State(*(jnp.zeros(4, jnp.int32) for _ in State._fields))._replace(
        key_x=jnp.array([1, 1, -1, -1]), door=jnp.array([doorkey.LOCKED, doorkey.LOCKED, doorkey.LOCKED, doorkey.OPEN])
    )
    after = before._replace(
        key_x=jnp.array([-1, 1, -1, 1]), door=jnp.array([doorkey.LOCKED, doorkey.LOCKED, doorkey.OPEN, doorkey.CLOSED])
    )
    assert doorkey.event(before, after).tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("wrong", "word"),
    [({"size": 4}, "size"), ({"payment": "two"}, "payment"), ({"max_steps": 0}, "max_steps")],
)
def test_a_task_that_is_none_is_refused(wrong, word):
    with pytest.raises(ValueError, match=word):
        make_doorkey(**wrong)
