"""Train one DoorKey run: resume, checkpoint, watch the trained agent, keep what is left."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from payback_lab import records
from payback_lab.environments.doorkey.rules import DoorKey, make_doorkey
from payback_lab.experiments.doorkey.config import DoorKeyConfig
from payback_lab.experiments.doorkey.figures import single_figures
from payback_lab.learners.checkpoint import load_checkpoint, save_checkpoint
from payback_lab.learners.ppo.play import evaluate, play
from payback_lab.learners.ppo.rollout import doorkey_environment
from payback_lab.learners.ppo.train import Record, Train, make_train
from payback_lab.learners.ppo.update import unflatten
from payback_lab.methods import transform_of
from payback_lab.running.plan import Result, Run, checkpoint_of
from payback_lab.user_error import UserError, writing_to

CHECKPOINT = 60.0
"""Seconds between checkpoints: what a killed run loses at most."""
CHUNK = 16
"""Updates between two looks at the clock."""
EVALUATION = 1000
"""Episodes of each final evaluation."""
FILMED = 6
"""Episodes kept to be drawn; the same layouts for every run."""
WATCHING = 1_000_003
"""Key of evaluation and film, the same for every run and no run's own."""


def train(run: Run, learner_version: int, progress: Callable[[float], None], out: Path | None) -> Result:
    """Train a run to its end, from its checkpoint below `out` if there is one."""
    config: DoorKeyConfig = run.config
    if out is not None:
        _keep_compiled(out)
    task = make_doorkey(config.size)
    environment = doorkey_environment(task)
    transform = transform_of(run.scheme, config.shaping_gamma, config.mean())
    trainer = make_train(config, environment, transform, shaping_gamma=config.shaping_gamma)
    about = about_run(run, learner_version)
    state, columns = trainer.init(jax.random.key(run.seed)), {name: [] for name in Record._fields}
    if out is not None and checkpoint_of(out, run).exists():
        state, saved = load_checkpoint(checkpoint_of(out, run), state, about)
        if saved.keys() != set(Record._fields):
            raise UserError(f"The checkpoint {checkpoint_of(out, run)} is damaged: delete it to begin this run again.")
        columns = {name: [saved[name]] for name in Record._fields}
    last_saved, left = time.monotonic(), config.total_steps // config.samples - int(state.updates)
    progress(1.0 - left * config.samples / config.total_steps)
    while left:
        chunk = min(CHUNK, left)
        recorded = []
        for _ in range(chunk):
            state, record = trainer.update(state)
            recorded.append(record)
        for name, values in zip(Record._fields, zip(*recorded, strict=True), strict=True):
            columns[name].append(np.stack([np.asarray(value) for value in values]))
        left -= chunk
        progress(1.0 - left * config.samples / config.total_steps)
        if out is not None and left and time.monotonic() - last_saved > CHECKPOINT:
            _save(out, run, state, _joined(columns), about)
            last_saved = time.monotonic()
    return result(task, state, _joined(columns))


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


def about_run(run: Run, learner_version: int) -> dict[str, Any]:
    """Say what a checkpoint is of, in plain values: every choice, so that none can be changed half-way."""
    told = records.identity(run, learner_version)
    return {**told.pop("config"), **told}


def _save(out: Path, run: Run, state: Train, columns: dict[str, np.ndarray], about: dict[str, Any]) -> None:
    path = checkpoint_of(out, run)
    with writing_to(out):
        path.parent.mkdir(parents=True, exist_ok=True)
        save_checkpoint(path, state, columns, about)


def _joined(columns: dict[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate(parts) for name, parts in columns.items()}


def _keep_compiled(out: Path) -> None:
    """Keep what is compiled beside the records: other seeds of a cell then start at once."""
    if jax.config.jax_compilation_cache_dir is None:  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_compilation_cache_dir", str(out.resolve() / ".compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
