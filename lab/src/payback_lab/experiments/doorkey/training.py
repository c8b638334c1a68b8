"""Train one DoorKey run, watch the trained agent, keep what is left."""

from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

from payback_lab.environments.doorkey.rules import DoorKey, make_doorkey
from payback_lab.experiments.doorkey.config import DoorKeyConfig
from payback_lab.experiments.doorkey.figures import single_figures
from payback_lab.experiments.resumable import keep_compiled, train_to_end
from payback_lab.learners.ppo.play import evaluate, play
from payback_lab.learners.ppo.rollout import doorkey_environment
from payback_lab.learners.ppo.train import Record, Train, make_train
from payback_lab.learners.ppo.update import unflatten
from payback_lab.methods import transform_of
from payback_lab.runs import Result, Run

EVALUATION = 1000
"""Episodes of each final evaluation."""
FILMED = 6
"""Episodes kept to be drawn; the same layouts for every run."""
WATCHING = 1_000_003
"""Key of evaluation and film, the same for every run and no run's own."""


def train(run: Run, learner_version: int, progress: Callable[[float], None], out: Path | None) -> Result:
    """Train a run to its end, from its checkpoint below `out` if there is one."""
    config: DoorKeyConfig = run.config
    keep_compiled(out)
    task = make_doorkey(config.size)
    environment = doorkey_environment(task)
    transform = transform_of(run.scheme, config.shaping_gamma, config.mean())
    trainer = make_train(config, environment, transform, shaping_gamma=config.shaping_gamma)
    state, columns = train_to_end(trainer, Record._fields, run, learner_version, progress, out)
    return result(task, state, columns)


def result(task: DoorKey, state: Train, columns: dict[str, np.ndarray]) -> Result:
    """Keep the curve, the trained parameters, a few episodes to draw, and the single figures."""
    environment, p, limit = doorkey_environment(task), unflatten(state.learner.parameters), task.max_steps
    key = jax.random.key(WATCHING)
    greedy = evaluate(environment, p, key, episodes=EVALUATION, steps=limit, greedy=True)
    sampled = evaluate(environment, p, key, episodes=EVALUATION, steps=limit, greedy=False)
    film = play(environment, p, key, episodes=FILMED, steps=limit, greedy=False)
    longest = int(film.length.max())
    states = film.states._asdict().items()
    arrays = {f"film_{name}": np.asarray(part[:longest], np.int16) for name, part in states}
    arrays["film_length"] = np.asarray(film.length, np.int16)
    arrays["parameters"] = np.asarray(state.learner.parameters)
    summary = {
        **single_figures(columns, task.size),
        "sampled_length": sampled.length,
        "sampled_solved": sampled.solved,
        "greedy_length": greedy.length,
        "greedy_solved": greedy.solved,
    }
    return Result(columns, arrays, summary)
