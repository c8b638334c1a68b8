"""DoorKey: the environment beside the `minigrid` package, the learner beside its peers and beside the machine.

    python lab/benchmarks/doorkey.py                 everything; about three minutes
    python lab/benchmarks/doorkey.py --two           also two runs on two cores beside one
    python lab/benchmarks/doorkey.py --check         fail when a bound is broken

Times are CPU seconds of this one process, pinned to one core and one thread; the sides of a ratio are taken in
turns, the least of several counts: on a shared machine the ratio means something, the time does not. All learners
have the same network (52,664 parameters), rollout, epochs and minibatches. torch-ac and sb3-contrib step their
environments in this process: on one core that is faster than torch-ac's own processes.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1", NPROC="1", JAX_PLATFORMS="cpu")
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import argparse
import json
import resource
import runpy
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from payback_lab.environments.doorkey import rules as doorkey
from payback_lab.learners.ppo.actor_critic import SHAPES
from payback_lab.learners.ppo.config import PPO
from payback_lab.learners.ppo.rollout import doorkey_environment
from payback_lab.learners.ppo.train import make_train
from payback_lab.methods import transform_of

CONFIG = PPO(gamma=0.995, alpha=0.02)
BOUNDS = {
    "environment ÷ minigrid": 100,
    "learner ÷ torch-ac": 12,
    "learner ÷ sb3-contrib": 12,
    "learner ÷ GEMM": 0.35,
    "two runs ÷ one": 1.8,
}
PEER = Path(__file__).parents[1] / "tests/learners/torch_peer.py"


def flop_per_step() -> float:
    """Count the floating-point work of training per step, multiplications and additions.

    Forward once to act, and in every epoch forward and twice back; but nothing is carried back into the image,
    nor into the memory a sequence starts from. Every second epoch leaves out the last block.
    """
    products = {name: out * into for name, (out, into) in SHAPES.items() if not name.endswith("bias")}
    products["conv1"] *= 36
    products["conv2"] *= 4
    forward = sum(products.values())
    train = 3 * forward - products["conv1"] - products["hidden"] / CONFIG.recurrence
    epochs = CONFIG.epochs - CONFIG.epochs / 2 * CONFIG.recurrence / CONFIG.steps
    return 2 * (forward * (1 + 1 / CONFIG.steps) + epochs * train)


def cpu_seconds(run: Callable[[], object]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


class Ours:
    """Train by the jitted learner; one call is `updates` updates."""

    def __init__(self, updates: int) -> None:
        environment = doorkey_environment(doorkey.make_doorkey(8))
        trainer = make_train(CONFIG, environment, transform_of("grm-10", CONFIG.gamma))
        self.state, self.updates = trainer.init(jax.random.key(0)), updates
        begin = time.perf_counter()
        self.update = trainer.update.lower(self.state).compile()
        self.compiled = time.perf_counter() - begin
        self()

    def __call__(self) -> None:
        for _ in range(self.updates):
            self.state, record = self.update(self.state)
        jax.block_until_ready((self.state, record))


def torch_ac_update() -> Callable[[], None]:
    from minigrid.envs import DoorKeyEnv

    peer = runpy.run_path(str(PEER))
    envs = [DoorKeyEnv(size=8) for _ in range(CONFIG.environments)]
    algorithm = peer["torch_algorithm"](CONFIG, peer["torch_network"](), envs)

    def update() -> None:
        experience, _ = algorithm.collect_experiences()
        algorithm.update_parameters(experience)

    return update


def sb3_update() -> Callable[[], None]:
    from minigrid.envs import DoorKeyEnv
    from minigrid.wrappers import ImgObsWrapper
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.common.vec_env import DummyVecEnv
    from torch import Tensor, nn

    class Features(BaseFeaturesExtractor):
        def __init__(self, observation_space) -> None:
            super().__init__(observation_space, features_dim=64)
            self.layers = nn.Sequential(
                *(nn.Conv2d(3, 16, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 2), nn.ReLU()),
                *(nn.Conv2d(32, 64, 2), nn.ReLU(), nn.Flatten()),
            )

        def forward(self, image: Tensor) -> Tensor:
            return self.layers(image.float())

    def environment():
        return ImgObsWrapper(DoorKeyEnv(size=8))

    model = RecurrentPPO(
        "MlpLstmPolicy",
        DummyVecEnv([environment] * CONFIG.environments),
        n_steps=CONFIG.steps,
        batch_size=CONFIG.batch,
        n_epochs=CONFIG.epochs,
        gamma=CONFIG.gamma,
        learning_rate=CONFIG.learning_rate,
        device="cpu",
        policy_kwargs={
            "features_extractor_class": Features,
            "normalize_images": False,
            "lstm_hidden_size": 64,
            "shared_lstm": True,
            "enable_critic_lstm": False,
            "net_arch": {"pi": [64], "vf": [64]},
        },
    )
    return partial(model.learn, CONFIG.samples, reset_num_timesteps=False)


def our_steps(count: int) -> Callable[[], None]:
    """Step 1024 environments `count` times with random actions: rules, view, and starting again."""
    task, lanes = doorkey.make_doorkey(8), 1024
    draws = jax.random.uniform(jax.random.key(0), (count, doorkey.DRAWS, lanes))
    actions = jax.random.randint(jax.random.key(1), (count, lanes), 0, doorkey.ACTIONS)

    def one(state, row):
        state, reward, terminated, truncated = doorkey.step(task, state, row[0])
        fresh = doorkey.start(task, row[1])
        state = jax.tree.map(lambda new, old: jnp.where(terminated | truncated, new, old), fresh, state)
        return state, (doorkey.observe(task, state), reward)

    run = jax.jit(lambda state, rows: jax.lax.scan(one, state, rows))
    state = doorkey.reset(task, jax.random.key(2), (lanes,))
    jax.block_until_ready(run(state, (actions, draws)))
    return lambda: jax.block_until_ready(run(state, (actions, draws)))


def minigrid_steps(count: int) -> Callable[[], None]:
    from minigrid.envs import DoorKeyEnv

    env, rng = DoorKeyEnv(size=8), np.random.default_rng(0)
    env.reset(seed=0)

    def run() -> None:
        for action in rng.integers(7, size=count).tolist():
            *_, terminated, truncated, _ = env.step(action)
            if terminated or truncated:
                env.reset()

    return run


def gemms() -> dict[str, Callable[[], object]]:
    import torch

    torch.set_num_threads(1)
    a = np.random.default_rng(0).random((1024, 1024), dtype=np.float32)
    t, j, product = torch.from_numpy(a), jnp.asarray(a), jax.jit(jnp.matmul)
    return {"NumPy": lambda: a @ a, "Torch": lambda: t @ t, "JAX": lambda: product(j, j).block_until_ready()}


def least(sides: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Run the sides in turns; return the least CPU seconds of each."""
    for run in sides.values():
        run()
    return {
        name: min(times)
        for name, times in zip(
            sides, zip(*([cpu_seconds(run) for run in sides.values()] for _ in range(rounds)), strict=True), strict=True
        )
    }


def start_run(updates: int, core: int) -> subprocess.Popen:
    """Start a process that trains, alone, on a core; it says its seconds, megabytes and seconds of compiling."""
    command = [sys.executable, __file__, "--worker", str(updates), "--core", str(core)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def read_run(run: subprocess.Popen) -> list[float]:
    return [float(word) for word in run.communicate()[0].split()]


def worker(updates: int) -> None:
    run = Ours(updates)
    begin = time.perf_counter()
    run()
    seconds = time.perf_counter() - begin
    print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, run.compiled)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8, help="how often each side is timed")
    parser.add_argument("--two", action="store_true", help="also time two runs on two cores")
    parser.add_argument("--check", action="store_true", help="fail when a bound is broken")
    parser.add_argument("--json", type=Path, help="also write the ratios, for benchmarks/bench.py")
    parser.add_argument("--core", type=int, default=0, help="the core to run on")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {arguments.core})
    if arguments.worker:
        worker(arguments.worker)
        return 0
    warnings.simplefilter("ignore")

    ratios = {}
    steps = 64
    found = least({"ours": our_steps(steps), "minigrid": minigrid_steps(500)}, arguments.rounds)
    ours, theirs = steps * 1024 / found["ours"], 500 / found["minigrid"]
    ratios["environment ÷ minigrid"] = ours / theirs
    print(f"environment   {ours:12,.0f} steps/s    minigrid {theirs:9,.0f} steps/s")

    _, memory, compiled = read_run(start_run(20, arguments.core))
    print(f"one run: compiled in {compiled:.1f} s, {memory:.0f} MB at most")
    learner = Ours(updates=4)
    sides = {"ours": learner, **gemms(), "torch-ac": torch_ac_update(), "sb3-contrib": sb3_update()}
    found = least(sides, arguments.rounds)
    speed = {"ours": 4 * CONFIG.samples / found["ours"]}
    speed |= {name: CONFIG.samples / found[name] for name in ("torch-ac", "sb3-contrib")}
    for name, rate in speed.items():
        print(f"{name:13s} {rate:12,.0f} steps/s")
    best = max(2 * 1024**3 / found[name] for name in ("NumPy", "Torch", "JAX"))
    flops = flop_per_step() * speed["ours"]
    print(
        f"work {flop_per_step() / 1e6:.3f} MFLOP/step: {flops / 1e9:.1f} of {best / 1e9:.1f} GFLOP/s (best 1024³ GEMM)"
    )
    ratios |= {f"learner ÷ {name}": speed["ours"] / speed[name] for name in ("torch-ac", "sb3-contrib")}
    ratios["learner ÷ GEMM"] = flops / best
    if arguments.two:
        alone = read_run(start_run(200, 0))[0]
        both = [read_run(run)[0] for run in (start_run(200, 0), start_run(200, 1))]
        ratios["two runs ÷ one"] = sum(alone / seconds for seconds in both)

    if arguments.json:
        arguments.json.write_text(json.dumps({"doorkey": ratios}))
    for name, ratio in ratios.items():
        print(f"{name:24s} {ratio:8.2f}   at least {BOUNDS[name]:g}: {'yes' if ratio >= BOUNDS[name] else 'NO'}")
    broken = [name for name, ratio in ratios.items() if ratio < BOUNDS[name]]
    return 1 if arguments.check and broken else 0


if __name__ == "__main__":
    sys.exit(main())
