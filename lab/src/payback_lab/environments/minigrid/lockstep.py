"""Play the engine and the `minigrid` package side by side, and compare all that an agent can see.

    python -m payback_lab.environments.minigrid.lockstep            every task, 100,000 actions each
    python -m payback_lab.environments.minigrid.lockstep FourRooms --actions 5000 --max-steps 40

The package plays first, and what it shows is kept; then the engine plays the same actions from the same starts.
"""

import argparse
import functools
import sys
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from payback_lab.environments.minigrid import rules
from payback_lab.environments.minigrid.layouts import POOL, Layouts, draw_layouts, make_task, pool_of
from payback_lab.environments.minigrid.optimum import shortest_plan, solves
from payback_lab.environments.minigrid.package_play import Log, record
from payback_lab.environments.minigrid.tasks import TASKS, Task, entry_of
from payback_lab.environments.minigrid.view import image, observe

ROWS = 4096
"""How many rows of a log are replayed by one call."""
PLANS = 12
"""Number of layouts that are solved by a plan; a relaxed one where the task is too large for the exact search."""


class Played(NamedTuple):
    """Count what was compared."""

    actions: int
    episodes: int
    solved: int
    lost: int
    """Episodes that ended in lava."""
    truncated: int


def play(name: str, actions: int, plans: int = PLANS, seed: int = 0, max_steps: int | None = None) -> Played:
    """Compare at least so many actions of a task; the first difference raises an AssertionError that says where."""
    task = make_task(name, "minigrid", max_steps)
    layouts = draw_layouts(name, max(plans, actions // 100 * pool_of(name) // POOL))
    log = record(task, layouts, _plans(task, layouts, plans), actions, np.random.default_rng(seed))
    compare(task, log, replay(task, layouts, log))
    solved = log.reward > 0
    taken, lost = np.sum(~log.first), np.sum(log.terminated & ~solved)
    return Played(*map(int, (taken, np.sum(log.first), np.sum(solved), lost, np.sum(log.truncated))))


def _plans(task: Task, layouts: Layouts, count: int) -> dict[int, list[int]]:
    """Return plans of the first layouts; where the plans are relaxed, of the first that one solves in the engine."""
    relaxed = entry_of(task.name).large
    plans: dict[int, list[int]] = {}
    for n in range(min(4 * count if relaxed else count, len(layouts.x))):
        plan = shortest_plan(task, layouts, n, relaxed)
        if not relaxed or solves(task, Layouts(*(field[n : n + 1] for field in layouts)), [plan])[0]:
            plans[n] = plan
        if len(plans) == count:
            break
    return plans or {0: []}


def replay(task: Task, layouts: Layouts, log: Log) -> dict[str, np.ndarray]:
    """Play a log's actions in the engine; return what it shows, by the names of the log's fields."""
    rows = len(log.first)
    padded = -rows % ROWS
    inputs = [np.pad(column, (0, padded)) for column in (log.first, log.draw, log.action)]
    state = rules.start(task, layouts, jnp.zeros(rules.DRAWS))
    task = task._replace(name="")  # tasks that differ in their layouts alone are compiled once
    shown: list[dict[str, np.ndarray]] = []
    for begin in range(0, rows, ROWS):
        state, seen = _replay_rows(task, layouts, state, *(column[begin : begin + ROWS] for column in inputs))
        shown.append(jax.device_get(seen))
    return {name: np.concatenate([part[name] for part in shown])[:rows] for name in shown[0]}


@functools.partial(jax.jit, static_argnums=0)
def _replay_rows(
    task: Task, layouts: Layouts, state: rules.State, first: jax.Array, draw: jax.Array, action: jax.Array
) -> tuple[rules.State, dict[str, jax.Array]]:
    def one(state: rules.State, row: tuple[jax.Array, ...]) -> tuple[rules.State, dict[str, jax.Array]]:
        first, draw, action = row
        after, reward, terminated, truncated = rules.step(task, state, action)
        begun = rules.start(task, layouts, jnp.stack([draw] * rules.DRAWS))
        state = jax.tree.map(functools.partial(jnp.where, first), begun, after)
        paid = {"reward": reward, "terminated": terminated, "truncated": truncated}
        paid = {name: jnp.where(first, jnp.zeros_like(value), value) for name, value in paid.items()}
        return state, {"image": image(observe(task, state)), "direction": state.direction, **paid}

    return lax.scan(one, state, (first, draw, action))


def compare(task: Task, log: Log, shown: dict[str, np.ndarray]) -> None:
    """Raise an AssertionError at the first difference between the engine and the package."""
    rows = len(log.first)
    unequal = {name: (mine != getattr(log, name)).reshape(rows, -1).any(axis=1) for name, mine in shown.items()}
    where = np.flatnonzero(np.any(list(unequal.values()), axis=0))
    if not len(where):
        return
    t = int(where[0])
    name = next(name for name, differs in unequal.items() if differs[t])
    begin = int(np.flatnonzero(log.first[: t + 1])[-1])
    raise AssertionError(
        f"{task.name}: the {name} differs after the actions {log.action[begin + 1 : t + 1].tolist()} "
        f"of episode {int(log.first[: t + 1].sum())}: the engine has {shown[name][t].tolist()}, "
        f"the package has {getattr(log, name)[t].tolist()}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Compare the named tasks, or all, and print a table; return 1 if one of them differs."""
    parser = argparse.ArgumentParser(prog="lockstep", description="Compare the engine with the minigrid package.")
    parser.add_argument("tasks", nargs="*", help="names of tasks; all if none is named")
    parser.add_argument("--actions", type=int, default=100_000, help="how many actions of each (default: 100000)")
    parser.add_argument("--max-steps", type=int, help="another time limit than the package's")
    asked = parser.parse_args(arguments)
    if asked.actions < 1:
        parser.error(f"--actions is {asked.actions}; at least one is needed to compare anything")
    print("| task | " + " | ".join((*Played._fields, "outcome")) + " |")
    print("|---|" + "---:|" * len(Played._fields) + "---|", flush=True)
    differences = []
    for name in asked.tasks or TASKS:
        try:
            played = play(name, asked.actions, max_steps=asked.max_steps)
            print(f"| {name} | " + " | ".join(f"{count:,}" for count in played) + " | equal |", flush=True)
        except ValueError as error:
            parser.error(str(error))
        except AssertionError as difference:
            differences.append(str(difference))
            print(f"| {name} |" + " |" * len(Played._fields) + " differs |", flush=True)
    print("\n".join(differences), end="\n" if differences else "")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
