"""Train one run of the arena: resume, checkpoint, evaluate the trained agent."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

from payback_lab import records
from payback_lab.environments.minigrid.layouts import POOL, load_layouts, make_task
from payback_lab.experiments.arena.config import ArenaConfig
from payback_lab.experiments.arena.figures import single_figures
from payback_lab.learners.arena.bonus import BONUSES
from payback_lab.learners.arena.environment import minigrid_environment
from payback_lab.learners.arena.heads import Heads, unflatten
from payback_lab.learners.arena.named import method_of
from payback_lab.learners.arena.play import evaluate
from payback_lab.learners.arena.train import Record, Train, Trainer, make_train
from payback_lab.learners.checkpoint import load_checkpoint, save_checkpoint
from payback_lab.learners.ppo.rollout import Environment
from payback_lab.running.plan import Result, Run, Scalar, checkpoint_of
from payback_lab.user_error import UserError, writing_to

CHECKPOINT = 60.0
"""Seconds between checkpoints: what a killed run loses at most."""
CHUNK = 16
"""Updates between two looks at the clock."""
EVALUATION = 1000
"""Episodes of each final evaluation."""
WATCHING = 1_000_003
"""Key of the evaluation, the same for every run and no run's own."""

Columns = dict[str, list[np.ndarray]]


def train(run: Run, learner_version: int, progress: Callable[[float], None], out: Path | None) -> Result:
    """Train a run to its end, from its checkpoint below `out` if there is one."""
    config: ArenaConfig = run.config
    if out is not None:
        _keep_compiled(out)
    task = make_task(config.task, config.payment, config.max_steps)
    environment = minigrid_environment(task, load_layouts(config.task, POOL))
    method = method_of(run.scheme, config)
    trainer = make_train(config, method, environment, BONUSES[config.bonus](environment, config.alpha))
    told = records.identity(run, learner_version)
    about = {**told.pop("config"), **told}
    path = None if out is None else checkpoint_of(out, run)
    state, columns = _started(trainer, run, path, about)
    last_saved, total = time.monotonic(), config.total_steps // config.samples
    progress(int(state.updates) / total)
    while (done := int(state.updates)) < total:
        state = _chunk(trainer, state, columns, min(CHUNK, total - done))
        progress(int(state.updates) / total)
        if path is not None and int(state.updates) < total and time.monotonic() - last_saved > CHECKPOINT:
            _save(path, state, columns, about)
            last_saved = time.monotonic()
    watched = _watched(environment, method.heads, state, task.max_steps)
    return _result(state, {name: np.concatenate(parts) for name, parts in columns.items()}, watched)


def _started(trainer: Trainer, run: Run, path: Path | None, about: dict[str, Any]) -> tuple[Train, Columns]:
    """Return the state to go on from, and the curve so far."""
    state = trainer.init(jax.random.key(run.seed))
    if path is None or not path.exists():
        return state, {name: [] for name in Record._fields}
    state, saved = load_checkpoint(path, state, about)
    if saved.keys() != set(Record._fields):
        raise UserError(f"The checkpoint {path} is damaged: delete it to begin this run again.")
    return state, {name: [saved[name]] for name in Record._fields}


def _chunk(trainer: Trainer, state: Train, columns: Columns, updates: int) -> Train:
    recorded = []
    for _ in range(updates):
        state, record = trainer.update(state)
        recorded.append(record)
    for name, values in zip(Record._fields, zip(*recorded, strict=True), strict=True):
        columns[name].append(np.stack([np.asarray(value) for value in values]))
    return state


def _save(path: Path, state: Train, columns: Columns, about: dict[str, Any]) -> None:
    with writing_to(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        save_checkpoint(path, state, {name: np.concatenate(parts) for name, parts in columns.items()}, about)


def _watched(environment: Environment, heads: Heads, state: Train, limit: int) -> dict[str, Scalar]:
    """Evaluate the agent: sampled and greedy; of a method with two policies also the second one."""
    p, key = unflatten(heads, state.learner.parameters), jax.random.key(WATCHING)
    modes = {"sampled": (False, 0), "greedy": (True, 0), "second": (False, 1)}
    found: dict[str, Scalar] = {}
    for name, (greedy, policy) in modes.items():
        if policy >= heads.policies:
            score = (None, None, None)
        else:
            score = evaluate(environment, heads, p, key, episodes=EVALUATION, steps=limit, greedy=greedy, policy=policy)
        found |= {f"{name}_length": score[0], f"{name}_solved": score[1], f"{name}_solved_length": score[2]}
    return found


def _result(state: Train, columns: dict[str, np.ndarray], watched: dict[str, Scalar]) -> Result:
    """Keep the curve, the trained parameters and the single figures."""
    figures: dict[str, Scalar] = {**single_figures(columns), **watched}
    # The report draws columns of the name `return`; a named tuple cannot have such a field.
    columns = {"return" if name == "reward" else name: column for name, column in columns.items()}
    return Result(columns, {"parameters": np.asarray(state.learner.parameters)}, figures)


def _keep_compiled(out: Path) -> None:
    """Keep what is compiled beside the records: other seeds of a cell then start at once."""
    if jax.config.jax_compilation_cache_dir is None:  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_compilation_cache_dir", str(out.resolve() / ".compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)
