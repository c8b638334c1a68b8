"""Checkpoints of a run: its state and its learning curve so far, in one NPZ file."""

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from payback_lab.atomic_write import write_file
from payback_lab.user_error import UserError


def save_checkpoint(path: Path, state: Any, columns: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Write a pytree of arrays and the columns of the curve; `about` identifies the run (plain JSON values)."""
    arrays = {f"state/{place}": np.asarray(leaf) for place, leaf in enumerate(jax.tree.leaves(state))}
    arrays |= {f"column/{name}": np.asarray(values) for name, values in columns.items()}
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, about=np.array(json.dumps(about, sort_keys=True)), **arrays)
    write_file(path, file.getvalue())


def load_checkpoint(path: Path, like: Any, about: Mapping[str, Any]) -> tuple[Any, dict[str, np.ndarray]]:
    """Read a checkpoint; `like` is a state of the same structure, e.g. the initial one.

    A damaged file, or one of another run, raises a `UserError`; the file is left as it is.
    """
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        told = json.loads(str(arrays.pop("about")))
    except (OSError, ValueError, KeyError, EOFError, RuntimeError, zipfile.BadZipFile) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise UserError(f"The checkpoint {path} is damaged: delete it to begin this run again.") from error
    for name in sorted(told.keys() | dict(about).keys()):
        there, here = told.get(name), json.loads(json.dumps(about.get(name)))
        if there != here:
            raise UserError(
                f"The checkpoint {path} is of another run ({name} was {there}, now {here}): give the settings it "
                "was made with, another --out, or delete it."
            )
    leaves, tree = jax.tree.flatten(like)
    found = [arrays.get(f"state/{place}") for place in range(len(leaves))]
    for old, new in zip(leaves, found, strict=True):
        if new is None or new.shape != old.shape or new.dtype != old.dtype:
            raise UserError(f"The checkpoint {path} does not fit this version of the learner: delete it.")
    columns = {name.removeprefix("column/"): a for name, a in arrays.items() if name.startswith("column/")}
    return jax.tree.unflatten(tree, [jax.numpy.asarray(leaf) for leaf in found]), columns
