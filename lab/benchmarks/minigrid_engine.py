"""The MiniGrid engine beside the `minigrid` package, navix and xminigrid: steps per second of one core.

    python lab/benchmarks/minigrid_engine.py                          every task
    python lab/benchmarks/minigrid_engine.py DoorKey-8x8 FourRooms    some
    python lab/benchmarks/minigrid_engine.py --sb3 DoorKey-8x8        in Stable-Baselines3's loop

All act at random and start again by themselves, and each step yields the agent's 7×7 view. The package steps one
environment; ours, navix and xminigrid step `--lanes` of them under `vmap`, `--steps` times in one jitted scan. CPU
seconds of this one process, pinned to one core and one thread; the sides of a task are taken in turns, and the least of
`--rounds` counts: on a shared machine the ratios mean something, the times do not. A peer is measured on the tasks that
it has under the same name, which is not the same task: navix has other limits and starts, xminigrid six actions, two
channels and no occlusion.

With --sb3, Stable-Baselines3's PPO trains on 16 environments of the engine (`make_sb3_vec`) and on 16 of the package
(`DummyVecEnv`), both showing flat images: stepping alone with random actions, and whole rollouts with their training.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", NPROC="1", JAX_PLATFORMS="cpu")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import argparse
import json
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from payback_lab.environments.minigrid.gymnax_form import MiniGrid
from payback_lab.environments.minigrid.layouts import Layouts, draw_layouts, package_env
from payback_lab.environments.minigrid.rules import ACTIONS
from payback_lab.environments.minigrid.tasks import TASKS, entry_of

AIM = 100
"""How many times the package's steps per second the engine is to make."""
PACKAGE_STEPS = 2000


def package_steps(name: str) -> Callable[[], object]:
    env, random = package_env(name), np.random.default_rng(0)
    env.reset(seed=0)

    def run() -> None:
        for action in random.integers(ACTIONS, size=PACKAGE_STEPS).tolist():
            *_, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    return run


def scanned(reset: Callable[..., Any], step: Callable[..., Any], actions: int, lanes: int, steps: int) -> Callable:
    """Step many environments in one jitted scan; `step` returns the next carry and what an agent is shown."""

    def one(carry: Any, key: jax.Array) -> tuple[Any, Any]:
        action_key, step_key = jax.random.split(key)
        action = jax.random.randint(action_key, (lanes,), 0, actions)
        return jax.vmap(step)(carry, action, jax.random.split(step_key, lanes))

    run = jax.jit(lambda carry, key: jax.lax.scan(one, carry, jax.random.split(key, steps)))
    carry = jax.jit(jax.vmap(reset))(jax.random.split(jax.random.key(0), lanes))
    return lambda: jax.block_until_ready(run(carry, jax.random.key(1)))


def our_steps(name: str, lanes: int, steps: int, pool: int, final: bool) -> Callable[[], object]:
    layouts = Layouts(*map(jnp.asarray, draw_layouts(name, pool)))  # type: ignore[arg-type]
    env = MiniGrid(name, layouts=layouts)

    def step(state: Any, action: jax.Array, key: jax.Array) -> tuple[Any, Any]:
        obs, state, reward, terminated, truncated, info = env.step(key, state, action)
        return state, (obs, reward, terminated, truncated, info["final_observation"] if final else ())

    return scanned(lambda key: env.reset(key)[1], step, ACTIONS, lanes, steps)


def navix_steps(name: str, lanes: int, steps: int) -> Callable[[], object] | None:
    import navix

    if f"Navix-{name}-v0" not in navix.registry():
        return None
    env = navix.make(f"Navix-{name}-v0", observation_fn=navix.observations.symbolic_first_person)

    def step(timestep: Any, action: jax.Array, key: jax.Array) -> tuple[Any, Any]:
        timestep = env.step(timestep, action)
        return timestep, (timestep.observation, timestep.reward, timestep.step_type)

    return scanned(env.reset, step, len(env.action_set), lanes, steps)


def xminigrid_steps(name: str, lanes: int, steps: int) -> Callable[[], object] | None:
    import xminigrid
    from xminigrid.wrappers import GymAutoResetWrapper

    theirs = f"MiniGrid-{name.replace('Pickup', 'PickUp')}"
    if theirs not in xminigrid.registered_environments():
        return None
    env, params = xminigrid.make(theirs)
    env, params = GymAutoResetWrapper(env), params.replace(view_size=7)

    def step(timestep: Any, action: jax.Array, key: jax.Array) -> tuple[Any, Any]:
        timestep = env.step(params, timestep, action)
        return timestep, (timestep.observation, timestep.reward, timestep.step_type)

    return scanned(lambda key: env.reset(params, key), step, env.num_actions(params), lanes, steps)


def in_sb3(name: str, rounds: int, pool: int, envs: int = 16, rollout: int = 128) -> dict[str, float]:
    """Print the CPU time per step in Stable-Baselines3; return the engine's rates over the package's."""
    from gymnasium.wrappers import FlattenObservation
    from minigrid.wrappers import ImgObsWrapper
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

    from payback_lab.environments.minigrid.sb3_form import make_sb3_vec

    sides = {
        "package": VecMonitor(DummyVecEnv([lambda: FlattenObservation(ImgObsWrapper(package_env(name)))] * envs)),
        "ours": make_sb3_vec(name, envs, layouts=draw_layouts(name, pool), flat=True),
    }
    actions = np.random.default_rng(0).integers(ACTIONS, size=(rollout, envs))
    runs: dict[str, dict[str, Callable[[], object]]] = {"stepping": {}, "PPO": {}}
    for side, env in sides.items():
        env.reset()
        runs["stepping"][side] = lambda env=env: [env.step(row) for row in actions]
        model = PPO("MlpPolicy", env, n_steps=rollout, batch_size=256, n_epochs=4, seed=0, device="cpu")
        runs["PPO"][side] = lambda model=model: model.learn(envs * rollout)
    ratios = {}
    for what, by_side in runs.items():
        for run in by_side.values():
            run()  # compiles
        turns = [{side: least(run) for side, run in by_side.items()} for _ in range(rounds)]
        seconds = {side: min(turn[side] for turn in turns) for side in by_side}
        ratios[f"{name}, {what}"] = seconds["package"] / seconds["ours"]
        each = ", ".join(f"{side} {1e6 * spent / envs / rollout:.0f} µs" for side, spent in seconds.items())
        print(f"{name}, {what}: {each} a step; {ratios[f'{name}, {what}']:.1f} × the package's steps", flush=True)
    return ratios


def least(run: Callable[[], object]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def rates(name: str, peers: list[str], asked: argparse.Namespace) -> dict[str, float]:
    """Return the steps per CPU second of each side that has the task."""
    sizes = (asked.lanes, asked.steps)
    makers = {"navix": navix_steps, "xminigrid": xminigrid_steps}
    sides = {"package": package_steps(name), "ours": our_steps(name, *sizes, asked.pool, asked.final)}
    sides |= {peer: run for peer in peers if (run := makers[peer](name, *sizes)) is not None}
    for run in sides.values():
        run()  # compiles
    seconds = dict.fromkeys(sides, float("inf"))
    for _ in range(asked.rounds):
        for side, run in sides.items():
            seconds[side] = min(seconds[side], least(run))
    steps = {side: PACKAGE_STEPS if side == "package" else asked.lanes * asked.steps for side in sides}
    return {side: steps[side] / seconds[side] for side in sides}


def main() -> int:
    """Print a table with a row for each task; return 1 with --check where the aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", help="names of tasks; all if none is named")
    parser.add_argument("--lanes", type=int, default=1024, help="environments under vmap (default: 1024)")
    parser.add_argument("--steps", type=int, default=64, help="steps of one scan (default: 64)")
    parser.add_argument("--pool", type=int, default=1000, help="layouts that ours starts on (default: 1000)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each side is timed (default: 5)")
    parser.add_argument("--final", action="store_true", help="also read what ended episodes saw last, a second view")
    parser.add_argument("--sb3", action="store_true", help="in Stable-Baselines3's loop, beside the package")
    parser.add_argument("--check", action="store_true", help=f"fail where ours is below {AIM} × the package")
    parser.add_argument("--json", type=Path, help="also write the ratios, for benchmarks/bench.py")
    parser.add_argument("--core", type=int, default=0, help="the core to run on")
    asked = parser.parse_args()
    try:
        for name in asked.tasks:
            entry_of(name)
    except ValueError as error:
        parser.error(str(error))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {asked.core})
    if asked.sb3:
        for name in asked.tasks or ["DoorKey-8x8"]:
            in_sb3(name, asked.rounds, asked.pool)
        return 0
    peers = [peer for peer in ("navix", "xminigrid") if find_spec(peer)]
    for peer in [name for name in ("navix", "xminigrid") if name not in peers]:
        print(f"{peer} is left out, because it is not installed: pip install --constraint constraints.txt {peer}")
    sizes = f"{asked.lanes} environments × {asked.steps} steps a scan, {asked.pool} layouts"
    print(f"{sizes}; the least of {asked.rounds} rounds\n")
    print("| task | package, steps/s | ours, steps/s | ours ÷ package | ours ÷ navix | ours ÷ xminigrid |")
    print("|---|---:|---:|---:|---:|---:|", flush=True)
    missed, ratios = False, {}
    for name in asked.tasks or TASKS:
        rate = rates(name, peers, asked)
        ratio = {side: f"{rate['ours'] / rate[side]:,.1f}" if side in rate else "–" for side in ("navix", "xminigrid")}
        ratios |= {f"{name} ÷ {side}": rate["ours"] / rate[side] for side in rate if side != "ours"}
        missed |= rate["ours"] < AIM * rate["package"]
        print(
            f"| {name} | {rate['package']:,.0f} | {rate['ours']:,.0f} | {rate['ours'] / rate['package']:,.0f} "
            f"| {ratio['navix']} | {ratio['xminigrid']} |",
            flush=True,
        )
        jax.clear_caches()
    if asked.json:
        asked.json.write_text(json.dumps({"engine": ratios}))
    return 1 if asked.check and missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
