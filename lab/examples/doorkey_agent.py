"""Watch four agents learn MiniGrid's DoorKey, 11×11: no bonus, a tuned raw one, GRM, and GRM as an advantage.

PPO with an LSTM, in JAX, one process per agent; the bonus is a count that starts anew with every episode, GRM repays it
30 steps later. Shows the mean length of episodes while they learn, then draws one episode of each trained agent, all
on the same layout: as frames, and moving. About two minutes on two quiet cores.

    python lab/examples/doorkey_agent.py [--updates N] [--size N] [--seed N] [--out DIR]
"""

import argparse
import multiprocessing
import os
import time
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

AGENTS = {
    "none": "no bonus",
    "im": "raw bonus, tuned",
    "grm-30": "GRM, D = 30",
    "grm-adv-300-0.99": "GRM as an advantage",
}
ALPHAS = {"im": 0.005}
ALPHA, GAMMA = 0.02, 0.995
"""The arena's; the raw bonus has the best of three α there, which is smaller."""
EVERY = 10
"""Updates between two reports of an agent."""
QUIET = 10.0
"""Seconds between two lines where no terminal is watched."""
WIDTH = 40


class News(NamedTuple):
    """Hold what an agent reports: its progress, or at the end one episode."""

    scheme: str
    steps: int
    length: float
    """Mean length of its last episodes; NaN before the first has ended."""
    film: dict[str, np.ndarray] | None = None
    solved: bool = False


def learn(scheme: str, updates: int, size: int, seed: int, tell: Connection) -> None:
    """Train one agent, telling how it goes; then play one episode. Runs in a process of its own."""
    import jax

    from payback_lab.environments.doorkey.rules import make_doorkey
    from payback_lab.learners.arena.bonus import count_bonus
    from payback_lab.learners.arena.config import ArenaPPO
    from payback_lab.learners.arena.heads import unflatten
    from payback_lab.learners.arena.named import method_of
    from payback_lab.learners.arena.train import make_train
    from payback_lab.learners.ppo.rollout import doorkey_environment

    task, alpha = make_doorkey(size), ALPHAS.get(scheme, ALPHA)
    environment, config = doorkey_environment(task), ArenaPPO(gamma=GAMMA, alpha=alpha)
    config = replace(config, total_steps=updates * config.samples)
    method = method_of(scheme, config)
    trainer = make_train(config, method, environment, count_bonus(environment, alpha))
    state = trainer.init(jax.random.key(seed))
    length = np.nan
    for update in range(1, updates + 1):
        state, record = trainer.update(state)
        length = float(record.window_mean)
        if update % EVERY == 0 or update in (1, updates):
            tell.send(News(scheme, int(record.steps), length))
    p = unflatten(method.heads, state.learner.parameters)
    film, solved = play(environment, method.heads, p, jax.random.key(1), task.max_steps)
    tell.send(News(scheme, updates * config.samples, length, film, solved))
    tell.close()


def play(environment: Any, heads: Any, p: Any, key: Any, steps: int) -> tuple[dict[str, np.ndarray], bool]:
    """Play one episode as in training; return the states before its steps, and whether it was solved."""
    import jax
    import jax.numpy as jnp

    from payback_lab.learners.arena.heads import act
    from payback_lab.learners.arena.play import starts
    from payback_lab.learners.ppo.lstm import HIDDEN, Memory
    from payback_lab.learners.ppo.rollout import image_of, sample

    def step(carry: Any, uniform: Any) -> tuple[Any, Any]:
        state, memory, active, solved = carry
        logits, _, memory = act(heads, p, image_of(environment.observe(state).T), memory, jnp.ones(1))
        after, _, terminated, truncated = environment.step(state, sample(logits[0], uniform)[0])
        return (after, memory, active & ~(terminated | truncated), solved | (active & terminated)), (state, active)

    blank, yes = jnp.zeros((HIDDEN, 1)), jnp.array([True])
    begin = (starts(environment, key, 1), Memory(blank, blank), yes, ~yes)
    (*_, solved), (states, active) = jax.lax.scan(step, begin, jax.random.uniform(key, (steps, 1)))
    length = int(active.sum())
    return {name: np.asarray(part[:length, 0]) for name, part in states._asdict().items()}, bool(solved[0])


def watch(updates: int, size: int, seed: int, console: Console) -> dict[str, News]:
    """Start the agents, show how they go, and return the episode that each plays at the end."""
    spawn = multiprocessing.get_context("spawn")
    agents: dict[Any, str] = {}
    processes = []
    for scheme in AGENTS:
        hear, tell = spawn.Pipe(duplex=False)
        process = spawn.Process(target=learn, args=(scheme, updates, size, seed, tell), daemon=True)
        process.start()
        tell.close()
        agents[hear] = scheme
        processes.append(process)
    latest: dict[str, News] = {}
    begin = said = time.monotonic()
    live = Live(console=console, transient=False, auto_refresh=False) if console.is_terminal else None
    console.print(f"Four agents learn DoorKey {size}×{size}; compiling takes the first half minute …", highlight=False)
    with live if live else open(os.devnull):
        while agents:
            for ready in wait(list(agents)):
                try:
                    news = ready.recv()  # pyright: ignore[reportAttributeAccessIssue]
                except EOFError:
                    del agents[ready]
                    continue
                latest[news.scheme] = news
            if live:
                live.update(table(latest, 10 * size**2, time.monotonic() - begin), refresh=True)
            elif time.monotonic() - said > QUIET:
                said = time.monotonic()
                console.print(table(latest, 10 * size**2, said - begin))
    for process in processes:
        process.join()
    if not live:
        console.print(table(latest, 10 * size**2, time.monotonic() - begin))
    return latest


def table(latest: dict[str, News], limit: int, seconds: float) -> Table:
    """Show every agent's steps and the length of its episodes, a full bar being the time limit."""
    shown = Table("agent", "steps", "length of an episode", box=None, pad_edge=False, title=f"{seconds:.0f} s")
    for scheme, name in AGENTS.items():
        news = latest.get(scheme)
        if news is None or np.isnan(news.length):
            shown.add_row(name, f"{news.steps:,}" if news else "–", "no episode has ended yet")
            continue
        bar = "█" * max(1, round(min(1.0, news.length / limit) * WIDTH))
        shown.add_row(name, f"{news.steps:,}", f"{bar} {news.length:.0f}{_drawn(news)}")
    return shown


def _drawn(news: News) -> str:
    """Say how the episode went that is drawn, "" before it has been played."""
    if news.film is None:
        return ""
    return f", drawn: {len(news.film['time'])} steps, {'solved' if news.solved else 'not solved'}"


def main(arguments: list[str] | None = None) -> int:
    """Let four agents learn, and draw what they have learnt; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=600, help="how many updates of 2,048 steps each agent gets")
    parser.add_argument("--size", type=int, default=11, help="side of the grid")
    parser.add_argument("--seed", type=int, default=0, help="seed of the agents")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder of the drawing")
    asked = parser.parse_args(arguments)
    if asked.updates < 1 or asked.size < 5:
        parser.error("give at least 1 update, and a grid of at least 5×5: two rooms and a wall between them")
    from payback_lab.report.charts.doorkey import animation, strips
    from payback_lab.running.task import ONE_THREAD

    os.environ.update(ONE_THREAD)  # four agents on two cores: more threads would only get in each other's way
    console = Console()
    latest = watch(asked.updates, asked.size, asked.seed, console)
    films = {scheme: news for scheme, news in latest.items() if news.film is not None}
    if films.keys() != AGENTS.keys():
        gone = next(name for scheme, name in AGENTS.items() if scheme not in films)
        console.print(f"The agent with {gone} stopped early. Its error is above.", highlight=False)
        return 1
    asked.out.mkdir(parents=True, exist_ok=True)
    path = asked.out / "agents.svg"
    titled = {f"{AGENTS[s]}, {'solved' if films[s].solved else 'not solved'}": films[s].film or {} for s in AGENTS}
    path.write_text(strips(titled, asked.size))
    moving = asked.out / "agents-moving.svg"
    moving.write_text(animation(titled, asked.size))
    console.print(f"\nOne episode of each, on the same layout: open {moving} in a browser, or {path}.", markup=False)
    console.print("Seeds, sizes and intervals: docs/reach.md.", markup=False)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
