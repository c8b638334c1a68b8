"""Keeping F̄ with a saved model: in the file that SB3 writes, as numbers."""

# Stable-Baselines3's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import tempfile
import warnings
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv

from payback.integrations.lasting_state import lasting, with_lasting
from payback.integrations.ledger import Ledger, ShapingWarning
from payback.integrations.sb3.stack import find_shaping, shapings_of

STATE = "shaping.npz"
"""The shaping state's name inside a saved model's zip file."""
MEANS = "shaping_means"
"""The model's attribute, lists of numbers, that SB3 saves and loads with it."""


def keep_means(model: Any, ledgers: Iterable[Ledger]) -> None:
    """Put what outlives episodes (F̄) of every shaping where `model.save` finds it."""
    setattr(model, MEANS, [[x.tolist() for x in lasting(ledger.transform, ledger.state)] for ledger in ledgers])


def restore_means(model: Any, env: VecEnv) -> None:
    """Give F̄ of a loaded model to shapings that have not begun; say so where there is none to give."""
    kept: list[Any] = getattr(model, MEANS, None) or []
    for place, (shaping, _) in enumerate(shapings_of(env)):
        ledger = shaping.ledger
        if ledger.steps or not lasting(ledger.transform, ledger.state):
            continue
        try:
            ledger.state = with_lasting(ledger.transform, ledger.state, kept[place])
        except (IndexError, ValueError):
            if kept or getattr(model, "_n_updates", 0):
                warnings.warn(
                    "the model was trained before, but no F̄ that fits the shaping came with it: the mean of the bonus "
                    "starts anew at 0. Train with the callback CheckShaping(), and save() keeps it",
                    ShapingWarning,
                    stacklevel=4,
                )


def save_model(model: BaseAlgorithm, path: str | Path) -> None:
    """Save the model as `model.save(path)` does, with the shaping state, open loans included, in the same file."""
    shaping, _ = find_shaping(model.get_env())
    model.save(path)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(_zip(path), "a") as archive:
        shaping.ledger.save(Path(folder) / STATE)
        archive.write(Path(folder) / STATE, STATE)


def load_model(kind: type[BaseAlgorithm], path: str | Path, env: VecEnv, **options: Any) -> Any:
    """Load a model as `kind.load(path, env)` does, and the shaping state into the wrapper in `env`.

    SB3 resets `env` before it trains on, which ends the open episodes: their debts are dropped, F̄ stays. Another number
    of environments keeps F̄.
    """
    shaping, _ = find_shaping(env)
    model = kind.load(path, env=env, **options)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(_zip(path)) as archive:
        if STATE in archive.namelist():
            shaping.ledger.load(archive.extract(STATE, folder))
        elif hasattr(model, MEANS):
            restore_means(model, env)
        else:
            raise ValueError(f"{path} holds a model without a shaping state; save it with save_model")
    return model


def _zip(path: str | Path) -> Path:
    """The file that SB3 makes of a path: it adds a suffix where there is none."""
    return Path(path) if Path(path).suffix else Path(f"{path}.zip")
