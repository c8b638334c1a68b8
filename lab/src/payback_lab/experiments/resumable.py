"""Train one run with a JAX learner, update by update: resume, write a checkpoint now and then, keep the curve."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from payback_lab import records
from payback_lab.learners.checkpoint import load_checkpoint, save_checkpoint
from payback_lab.runs import Run, checkpoint_of
from payback_lab.user_error import UserError, writing_to

CHECKPOINT = 60.0
"""Seconds between checkpoints: what a killed run loses at most."""
CHUNK = 16
"""Updates between two looks at the clock."""

Columns = dict[str, np.ndarray]


def train_to_end(
    trainer: Any,
    fields: Sequence[str],
    run: Run,
    learner_version: int,
    progress: Callable[[float], None],
    out: Path | None,
) -> tuple[Any, Columns]:
    """Train a run to its end, from its checkpoint below `out` if there is one; return its last state and its curve.

    `trainer` has the two functions `init` and `update` of a learner, `fields` are those of its `Record`.
    """
    about = about_run(run, learner_version)
    state, parts = trainer.init(jax.random.key(run.seed)), []
    if out is not None and checkpoint_of(out, run).exists():
        state, saved = load_checkpoint(checkpoint_of(out, run), state, about)
        if saved.keys() != set(fields):
            raise UserError(f"The checkpoint {checkpoint_of(out, run)} is damaged: delete it to begin this run again.")
        parts = [saved]
    last_saved, total = time.monotonic(), run.config.total_steps // run.config.samples
    progress(int(state.updates) / total)
    while (done := int(state.updates)) < total:
        recorded = []
        for _ in range(min(CHUNK, total - done)):
            state, record = trainer.update(state)
            recorded.append(record)
        parts.append({name: np.stack([np.asarray(getattr(record, name)) for record in recorded]) for name in fields})
        progress(int(state.updates) / total)
        if out is not None and int(state.updates) < total and time.monotonic() - last_saved > CHECKPOINT:
            _save(out, run, state, _joined(parts, fields), about)
            last_saved = time.monotonic()
    return state, _joined(parts, fields)


def about_run(run: Run, learner_version: int) -> dict[str, Any]:
    """Describe what a checkpoint is of, in plain values: every choice, so that none can be changed half-way."""
    fields = records.identity(run, learner_version)
    return {**fields.pop("config"), **fields}


def keep_compiled(out: Path | None) -> None:
    """Keep what is compiled beside the records, if there are any: other seeds of a cell then start at once."""
    if out is not None and jax.config.jax_compilation_cache_dir is None:  # pyright: ignore[reportAttributeAccessIssue]
        jax.config.update("jax_compilation_cache_dir", str(out.resolve() / ".compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 1.0)


def _save(out: Path, run: Run, state: Any, columns: Columns, about: dict[str, Any]) -> None:
    path = checkpoint_of(out, run)
    with writing_to(out):
        path.parent.mkdir(parents=True, exist_ok=True)
        save_checkpoint(path, state, columns, about)


def _joined(parts: Sequence[Columns], fields: Sequence[str]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in fields}
