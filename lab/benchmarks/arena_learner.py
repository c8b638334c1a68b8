"""The arena's learner beside the paper's: steps per second as ratios, measured side by side in one process on one core.

    python lab/benchmarks/arena_learner.py         the table; --check fails when two critics run below 70 %
    python lab/benchmarks/arena_learner.py --peer  also a plain PPO-RNN in the way of purejaxrl, on this engine and, if
                                                   navix is installed, on its DoorKey 8×8 (other limit and starts)

All train on DoorKey 8×8 with the paper's PPO (16 environments, rollouts of 128, four epochs). The first rows have the
paper's environment, so that the ratio is the learner's; the rows "engine" have the same grid in the general MiniGrid
engine, whose views are computed instead of looked up. A method's steps count whichever of its policies takes them.

Times are CPU seconds of this one-threaded process, the least of many updates, the sides taken in turns: on a shared
machine the ratio means something, the time does not.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", JAX_PLATFORMS="cpu", NPROC="1")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import argparse
import json
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
from ppo_rnn_peer import Worlds, make_peer

from payback_lab.environments.doorkey.rules import make_doorkey
from payback_lab.environments.minigrid.gymnax_form import MiniGrid
from payback_lab.environments.minigrid.layouts import Layouts, draw_layouts, make_task
from payback_lab.learners.arena.bonus import Bonus, count_bonus, rnd_bonus
from payback_lab.learners.arena.config import ArenaPPO
from payback_lab.learners.arena.environment import minigrid_environment
from payback_lab.learners.arena.named import method_of
from payback_lab.learners.arena.train import make_train
from payback_lab.learners.ppo import train as paper
from payback_lab.learners.ppo.config import PPO
from payback_lab.learners.ppo.rollout import Environment, doorkey_environment
from payback_lab.methods import transform_of

GAMMA, ALPHA, ROUNDS, LEAST = 0.995, 0.02, 25, 0.70
TABLED = doorkey_environment(make_doorkey(8))
ENGINE = minigrid_environment(make_task("DoorKey-8x8"), draw_layouts("DoorKey-8x8", 1000))
Updates = Callable[[], None]
PEER = "plain PPO-RNN"


def updates(trainer) -> Updates:
    """Compile, and return a function that makes the next update."""
    state, _ = trainer.update(trainer.init(jax.random.key(0)))

    def once() -> None:
        nonlocal state
        state, _ = trainer.update(state)
        jax.block_until_ready(state)

    return once


def papers() -> Updates:
    return updates(paper.make_train(PPO(gamma=GAMMA, alpha=ALPHA), TABLED, transform_of("grm-30", GAMMA)))


def arenas(name: str, environment: Environment, bonus: Callable[[Environment, float], Bonus] = count_bonus) -> Updates:
    config = ArenaPPO(gamma=GAMMA, alpha=ALPHA)
    return updates(make_train(config, method_of(name, config), environment, bonus(environment, ALPHA)))


SIDES: dict[str, Callable[[], Updates]] = {
    "the paper's learner, GRM": papers,
    "one critic, GRM": lambda: arenas("grm-30", TABLED),
    "two critics, ADOPS": lambda: arenas("adops", TABLED),
    "two policies, three critics, EIPO": lambda: arenas("eipo", TABLED),
    "engine: one critic, GRM": lambda: arenas("grm-30", ENGINE),
    "engine: two critics, ADOPS": lambda: arenas("adops", ENGINE),
    "engine: one critic, GRM, RND": lambda: arenas("grm-30", ENGINE, rnd_bonus),
}


def engine_worlds() -> Worlds:
    env = MiniGrid("DoorKey-8x8", layouts=Layouts(*map(jnp.asarray, draw_layouts("DoorKey-8x8", 1000))))  # type: ignore[arg-type]

    def step(state, action, key):
        view, state, reward, terminated, truncated, _ = env.step(key, state, action)
        return state, view, reward, terminated | truncated

    return Worlds(lambda key: env.reset(key)[::-1], step)


def navix_worlds() -> Worlds:
    import navix

    env = navix.make("Navix-DoorKey-8x8-v0", observation_fn=navix.observations.symbolic_first_person)

    def step(timestep, action, key):
        timestep = env.step(timestep, action)
        return timestep, timestep.observation, timestep.reward, timestep.is_done()

    def reset(key):
        timestep = env.reset(key)
        return timestep, timestep.observation

    return Worlds(reset, step)


def peers() -> dict[str, Callable[[], Updates]]:
    """Return the plain PPO-RNN on this engine and on navix, if it is installed."""
    config = PPO(gamma=GAMMA, alpha=ALPHA)
    sides = {f"{PEER}, this engine": lambda: updates(make_peer(config, engine_worlds()))}
    if find_spec("navix") is None:
        print("navix is left out, because it is not installed: pip install navix, in an environment of its own.")
        return sides
    return sides | {f"{PEER}, navix": lambda: updates(make_peer(config, navix_worlds()))}


def measured(chosen: dict[str, Callable[[], Updates]]) -> dict[str, float]:
    """Return the least CPU seconds of an update, by side."""
    sides = {name: make() for name, make in chosen.items()}
    least = dict.fromkeys(sides, float("inf"))
    for _ in range(ROUNDS):
        for name, once in sides.items():
            begin = time.process_time()
            once()
            least[name] = min(least[name], time.process_time() - begin)
    return least


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", action="store_true", help="also time a plain PPO-RNN")
    parser.add_argument("--check", action="store_true", help="fail when two critics run below 70 %%")
    parser.add_argument("--json", type=Path, help="also write the ratios, for benchmarks/bench.py")
    asked = parser.parse_args()
    least, samples = measured(SIDES | (peers() if asked.peer else {})), PPO().samples
    first = least["the paper's learner, GRM"]
    print("| learner | steps per second | of the paper's |\n| --- | --: | --: |")
    for name, seconds in least.items():
        print(f"| {name} | {samples / seconds:,.0f} | {first / seconds:.0%} |")
    if asked.json:
        asked.json.write_text(json.dumps({"arena": {name: first / seconds for name, seconds in least.items()}}))
    ours = least["engine: one critic, GRM"]
    for name in (name for name in least if name.startswith(PEER)):
        print(f"The arena's learner with GRM on this engine runs at {least[name] / ours:.2f} × the {name}.")
    if asked.check and first / least["two critics, ADOPS"] < LEAST:
        print(f"two critics run at less than {LEAST:.0%} of the paper's learner", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
