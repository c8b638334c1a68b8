"""The MiniGrid engine beside the package; `python -m payback_lab.environments.minigrid.lockstep` does tenfold."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import gymnasium
import jax
import jax.numpy as jnp
import minigrid  # noqa: F401 (its import registers the tasks)
import numpy as np
import pytest

from payback_lab.environments.doorkey.optimum import optimal_length
from payback_lab.environments.doorkey.rules import make_doorkey
from payback_lab.environments.minigrid import lockstep, rules, tiles, view
from payback_lab.environments.minigrid.gymnax_form import MiniGrid
from payback_lab.environments.minigrid.layouts import (
    Layouts,
    draw_layouts,
    encode,
    load_layouts,
    make_task,
    package_env,
    pool_of,
    pool_path,
)
from payback_lab.environments.minigrid.optimum import UNSOLVED, fewest_steps, shortest_plan, shortest_plans, solves
from payback_lab.environments.minigrid.tasks import TASKS, Task
from payback_lab.user_error import UserError

ACTIONS = 10_000
QUICK = "KeyCorridorS3R1"
"""Its walk is compiled and played in `make test`, those of the other tasks in `make test-all`."""
RIDE = {"MultiRoom-N7-S8": (7, 8), "MultiRoom-N10-S10": (10, 10), "MultiRoom-N12-S10": (12, 10)}
"""Number of rooms and largest size of a room, walls included, of the tasks that only RIDE registers."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name != QUICK)) for name in TASKS])
def test_every_action_equals_the_package(name: str) -> None:
    played = lockstep.play(name, ACTIONS, plans=2)
    assert played.actions >= ACTIONS
    assert played.solved > 0


@pytest.mark.parametrize("name", TASKS)
def test_a_task_is_what_the_package_registers_by_that_name(name: str) -> None:
    registered = [gymnasium.registry.get(f"MiniGrid-{name}-v{n}") for n in (1, 0)]
    spec = next((spec for spec in registered if spec), None)
    if spec is None:
        assert name in {"DoorKey-11x11", "DoorKey-13x13", *RIDE} or TASKS[name].noisy
        return
    theirs, task, mine = spec.make().unwrapped, make_task(name), package_env(name)
    assert (task.width, task.height, task.max_steps) == (theirs.width, theirs.height, theirs.max_steps)
    theirs.reset(seed=5)
    mine.reset(seed=5)
    assert np.array_equal(encode(mine), encode(theirs))


@pytest.mark.parametrize(("name", "rooms"), [("MultiRoom-N4-S5", (4, 5)), *RIDE.items()])
def test_multiroom_has_the_rooms_of_its_name(name: str, rooms: tuple[int, int]) -> None:
    env = package_env(name)
    env.reset(seed=0)
    number, largest = rooms
    assert len(env.rooms) == number
    assert 4 <= min(min(room.size) for room in env.rooms) <= max(max(room.size) for room in env.rooms) <= largest


@pytest.mark.parametrize(
    "limit", [pytest.param(1, marks=pytest.mark.slow), 10, pytest.param(160, marks=pytest.mark.slow)]
)
def test_another_time_limit_equals_the_package_too(limit: int) -> None:
    played = lockstep.play("MultiRoom-N2-S4", 1000, plans=2, max_steps=limit)
    assert played.truncated > 0


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert lockstep.main(["Empty-5x5", "--actions", "100"]) == 0
    *_, row = capsys.readouterr().out.splitlines()
    assert row.startswith("| Empty-5x5 | 1")
    assert row.endswith("| equal |")


def test_the_command_says_what_differs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    step = rules.step
    monkeypatch.setattr(rules, "step", lambda *arguments: (*step(*arguments)[:3], jnp.bool_(True)))
    lockstep._replay_rows.clear_cache()
    try:
        assert lockstep.main(["Empty-5x5", "--actions", "100"]) == 1
    finally:
        lockstep._replay_rows.clear_cache()
    said = capsys.readouterr().out
    assert "| differs |" in said
    assert "Empty-5x5: the truncated differs after the actions [" in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["Nowhere"], 'there is no task "Nowhere"'),
        (["Empty-5x5", "--max-steps", "0"], "the time limit is 0 steps"),
        (["--actions", "0"], "--actions is 0"),
    ],
)
def test_the_command_refuses_in_one_sentence(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        lockstep.main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err.splitlines()[-1]


def boxes_are_empty(before: jax.Array, carrying: jax.Array) -> jax.Array:
    return jnp.where(tiles.part(before, 0) == tiles.BOX, tiles.EMPTY, before)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "name", "mutant", "task"),
    [
        (view, "_visible", lambda window: jnp.ones(window.shape, bool), "MultiRoom-N2-S4"),
        (rules, "_toggled", boxes_are_empty, "ObstructedMaze-1Dlh"),
        (rules, "is_portable", lambda kind: kind == tiles.KEY, "KeyCorridorS3R1"),
        (rules, "_payment", lambda task, time: jnp.ones(time.shape), "Empty-5x5"),
        (rules, "_repaint", lambda state, where: state, "MultiRoom-N2-S4-NoisyTV"),
        (rules, "_is_target", lambda task, tile: tiles.part(tile, 0) == task.target, "ObstructedMaze-2Dlhb"),
    ],
)
def test_a_changed_rule_is_noticed(monkeypatch: pytest.MonkeyPatch, module, name: str, mutant, task: str) -> None:
    lockstep._replay_rows.clear_cache()
    plans = lockstep._plans(make_task(task), draw_layouts(task, 8), 2)
    monkeypatch.setattr(lockstep, "_plans", lambda *_: plans)
    monkeypatch.setattr(module, name, mutant)
    try:
        with pytest.raises(AssertionError, match="the package has"):
            lockstep.play(task, 3000, plans=2)
    finally:
        lockstep._replay_rows.clear_cache()


@pytest.mark.slow
def test_the_fewest_steps_are_those_of_the_exact_search_over_doorkey() -> None:
    """The other search goes over every state of every grid; a mean over sampled layouts is near its mean."""
    lengths = fewest_steps(make_task("DoorKey-5x5"), draw_layouts("DoorKey-5x5", 400))
    error = lengths.std() / np.sqrt(len(lengths))
    assert abs(lengths.mean() - optimal_length(make_doorkey(5))) < 4 * error


@pytest.mark.slow
def test_a_plan_solves_its_layout_in_the_fewest_steps() -> None:
    task, layouts = make_task("KeyCorridorS3R2"), draw_layouts("KeyCorridorS3R2", 5)
    fewest = fewest_steps(task, layouts)
    for n in range(5):
        plan = shortest_plan(task, layouts, n)
        state = rules.start(task, layouts, jnp.array([(n + 0.5) / 5, 0.0]))
        rewards = []
        for action in plan:
            state, reward, *_ = rules.step(task, state, jnp.int32(action))
            rewards.append(float(reward))
        assert len(plan) == fewest[n]
        assert rewards == [0.0] * (len(plan) - 1) + [1.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["DoorKey-5x5", "KeyCorridorS3R3", "ObstructedMaze-1Dlh", "ObstructedMaze-2Dlh", "UnlockPickup"]
)
def test_the_relaxed_search_is_a_lower_bound_and_mostly_the_optimum(name: str) -> None:
    task, layouts = make_task(name), draw_layouts(name, 2 if "2D" in name else 40)
    plans, fewest = shortest_plans(task, layouts, relaxed=True), fewest_steps(task, layouts)
    bound = np.array([len(plan) for plan in plans])
    assert (bound > 0).all()
    assert (bound <= fewest).all()
    solved = solves(task, layouts, plans)
    assert solved.mean() > 0.9
    assert (bound == fewest)[solved].all()
    assert not solves(task, layouts, [plan[:-1] for plan in plans]).any()


def test_no_plan_where_the_time_limit_does_not_suffice() -> None:
    task, layouts = make_task("Empty-5x5", max_steps=4), draw_layouts("Empty-5x5", 1)
    assert fewest_steps(task, layouts).tolist() == [UNSOLVED]
    assert shortest_plan(task, layouts, 0) == []


def test_a_pool_is_drawn_once_and_read_again(tmp_path) -> None:
    drawn = load_layouts("Empty-5x5", 3, tmp_path)
    (path,) = tmp_path.iterdir()
    before = path.stat().st_mtime_ns
    again = load_layouts("Empty-5x5", 3, tmp_path)
    assert path.stat().st_mtime_ns == before
    assert all(np.array_equal(a, b) for a, b in zip(drawn, again, strict=True))


def test_a_pool_is_smaller_where_drawing_is_slow(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("payback_lab.environments.minigrid.layouts.POOL", 3)
    assert len(load_layouts("Empty-5x5", folder=tmp_path).x) == len(draw_layouts("Empty-5x5").x) == 3
    assert [path.name for path in tmp_path.glob("*.npz")] == ["Empty-5x5-3.npz"]
    assert pool_of("MultiRoom-N10-S10") == 2_000
    assert pool_path("MultiRoom-N12-S10").name == "MultiRoom-N12-S10-1000.npz"


def test_a_pool_of_another_version_is_refused(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    load_layouts("Empty-5x5", 3, tmp_path)
    monkeypatch.setattr("payback_lab.environments.minigrid.layouts.version", lambda name: "99.0")
    with pytest.raises(UserError, match=r"drawn by minigrid .* and 99\.0 is installed"):
        load_layouts("Empty-5x5", 3, tmp_path)


def test_a_damaged_pool_is_refused_and_kept(tmp_path) -> None:
    load_layouts("Empty-5x5", 3, tmp_path)
    (path,) = tmp_path.iterdir()
    half = path.read_bytes()[: path.stat().st_size // 2]
    path.write_bytes(half)
    with pytest.raises(UserError, match=r"damaged: delete the file"):
        load_layouts("Empty-5x5", 3, tmp_path)
    assert path.read_bytes() == half


def test_a_cache_that_cannot_be_written_is_one_sentence(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot be kept in .* set XDG_CACHE_HOME"):
        load_layouts("Empty-5x5", 3, tmp_path / "file")


def test_processes_that_start_together_draw_a_pool_once(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, together = [], threading.Barrier(4)

    def draw(name: str, count: int) -> Layouts:
        drawn.append(name)
        time.sleep(0.2)
        return draw_layouts(name, count)

    def load() -> Layouts:
        together.wait()
        return load_layouts("Empty-5x5", 3, tmp_path)

    monkeypatch.setattr("payback_lab.environments.minigrid.layouts.draw_layouts", draw)
    with ThreadPoolExecutor(4) as pool:
        pools = [answer.result() for answer in [pool.submit(load) for _ in range(4)]]
    assert drawn == ["Empty-5x5"]
    assert all(np.array_equal(one.grid, pools[0].grid) for one in pools)


def test_layouts_of_another_task_are_refused() -> None:
    with pytest.raises(ValueError, match=r"2 layouts of 25 cells, but FourRooms needs"):
        MiniGrid("FourRooms", layouts=draw_layouts("Empty-5x5", 2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "Nowhere"}, 'there is no task "Nowhere"'),
        ({"name": "DoorKey-4x4"}, "there is no task"),
        ({"name": "Empty-5x5", "max_steps": 0}, "the time limit is 0 steps"),
        ({"name": "Empty-5x5", "max_steps": 2.5}, "a whole number"),
        ({"name": "Empty-5x5", "payment": "gold"}, "payment is 'gold'"),
    ],
)
def test_what_cannot_be_a_task_is_refused(change: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_task(**change)


def test_states_may_have_any_batch_shape() -> None:
    task, layouts = make_task("UnlockPickup"), draw_layouts("UnlockPickup", 4)

    @jax.jit
    def shapes(uniform: jax.Array, action: jax.Array):
        after, reward, *_ = rules.step(task, rules.start(task, layouts, uniform), action)
        return view.observe(task, after), reward, rules.place(task, after)

    seen, reward, place = shapes(jnp.full((rules.DRAWS, 2, 3), 0.5), jnp.zeros((2, 3), jnp.int32))
    assert seen.shape == (2, 3, 49)
    assert reward.shape == place.shape == (2, 3)


def test_a_noisy_tv_shows_every_colour() -> None:
    task: Task = make_task("MultiRoom-N2-S4-NoisyTV")
    state = rules.start(task, draw_layouts(task.name, 1), jnp.array([0.0, 0.4]))
    step = jax.jit(partial(rules.step, task))
    colours = set()
    for _ in range(60):
        state, *_ = step(state, jnp.int32(rules.DONE))
        ball = np.asarray(state.grid)[np.asarray(tiles.part(state.grid, 0)) == tiles.BALL]
        colours.add(int(tiles.part(ball[0], 1)))
    assert colours == set(range(tiles.COLOURS))


def test_a_count_notices_what_a_noisy_tv_shows() -> None:
    task: Task = make_task("MultiRoom-N2-S4-NoisyTV")
    state = rules.start(task, draw_layouts(task.name, 1), jnp.array([0.0, 0.4]))
    step = jax.jit(partial(rules.step, task))
    places, colours = [], []
    for _ in range(40):
        state, *_ = step(state, jnp.int32(rules.DONE))
        places.append(int(rules.place(task, state)))
        colours.append(int(tiles.part(state.grid[tiles.part(state.grid, 0) == tiles.BALL][0], 1)))
    assert len(set(places)) == tiles.COLOURS
    assert len(set(zip(places, colours, strict=True))) == tiles.COLOURS
    assert max(places) < task.places
    carried = state._replace(grid=jnp.full_like(state.grid, tiles.EMPTY), carrying=tiles.tile(tiles.BALL, colours[-1]))
    assert int(rules.place(task, carried)) == places[-1] + tiles.COLOURS


def test_gymnax_form_resets_by_itself_and_shows_the_last_observation() -> None:
    env = MiniGrid("Empty-5x5", max_steps=3, layouts=draw_layouts("Empty-5x5", 2))
    keys = jax.random.split(jax.random.key(0), 4)
    obs, state = jax.vmap(env.reset)(keys)
    for t in range(3):
        forward = jnp.full(4, rules.AHEAD)
        obs, state, reward, terminated, truncated, info = jax.vmap(env.step)(keys, state, forward)
        assert np.asarray(truncated).tolist() == [t == 2] * 4
    assert state.time.tolist() == [0] * 4
    assert not np.array_equal(obs, info["final_observation"])
    assert not np.asarray(terminated).any()
    assert reward.tolist() == [0.0] * 4
