"""Watch an agent learn MiniGrid's DoorKey with a shaped count bonus: GRM with D = 10, PPO with an LSTM, in JAX.

Prints the mean length of the episodes as it learns, and one episode of the trained agent in letters:
the agent is > v < ^, k the key, L a locked door, / an open one, G the goal. About a minute on one core.

    python lab/examples/doorkey_agent.py [--updates N]
"""

import argparse
import time

import jax
import numpy as np

from payback_lab.environments.doorkey.rules import OPEN, make_doorkey
from payback_lab.learners.ppo.config import PPO
from payback_lab.learners.ppo.play import play
from payback_lab.learners.ppo.rollout import doorkey_environment
from payback_lab.learners.ppo.train import make_train
from payback_lab.learners.ppo.update import unflatten
from payback_lab.methods import transform_of

LINES = 15


def main(arguments: list[str] | None = None) -> None:
    """Train, saying how it goes; then play one episode."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=300, help="how many updates of 2,048 steps")
    updates = parser.parse_args(arguments).updates
    config = PPO(gamma=0.995, alpha=0.02)
    task = make_doorkey(8)
    environment = doorkey_environment(task)
    trainer = make_train(config, environment, transform_of("grm-10", config.gamma))
    state, begin = trainer.init(jax.random.key(0)), time.monotonic()
    print("compiling …", flush=True)
    for update in range(1, updates + 1):
        state, record = trainer.update(state)
        if update == 1 or update % max(1, updates // LINES) == 0:
            length, seconds = float(record.window_mean), time.monotonic() - begin
            bar = (
                ""
                if np.isnan(length)
                else "█" * round(length / task.max_steps * 40) + f" {length:.0f} steps an episode"
            )
            print(f"{seconds:5.0f} s  {int(record.steps):9,} steps  {bar or 'no episode has ended yet'}", flush=True)
    p = unflatten(state.learner.parameters)
    film = play(environment, p, jax.random.key(1), episodes=1, steps=task.max_steps, greedy=False)
    length = int(film.length[0])
    print(f"\nThe trained agent, {length} steps:\n")
    states = jax.tree.map(lambda part: np.asarray(part[:, 0]), film.states)
    frames = [drawn(task.size, states, t) for t in np.unique(np.linspace(0, length - 1, 6).astype(int))]
    print("\n".join("   ".join(row) for row in zip(*frames, strict=True)))


def drawn(size: int, states, t: int) -> list[str]:
    """Draw one state in letters, row by row."""
    now = {name: int(part[t]) for name, part in states._asdict().items()}
    inside = range(1, size - 1)
    grid = [
        ["." if x in inside and y in inside and x != now["wall"] else "#" for x in range(size)] for y in range(size)
    ]
    grid[size - 2][size - 2] = "G"
    grid[now["door_row"]][now["wall"]] = "/" if now["door"] == OPEN else "L"
    if now["key_x"] >= 0:
        grid[now["key_y"]][now["key_x"]] = "k"
    grid[now["y"]][now["x"]] = ">v<^"[now["direction"]]
    return ["".join(row) for row in grid]


if __name__ == "__main__":
    main()
