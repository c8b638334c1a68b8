"""Find the shapings in a stack of VecEnv wrappers, and keep their F̄ with a saved model, as numbers in SB3's file."""

# pyright: standard
from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from payback.core.state import shared_of, with_shared
from payback.integrations.sb3.shape_vector_reward import ShapeVectorReward
from payback.messages import warn

STATE = "shaping.npz"  # inside a saved model's zip file
MEANS = "shaping_means"  # the model's attribute, lists of numbers, that SB3 saves and loads with it
# Every shaping of an environment, the outermost first, each with the wrappers between it and the one before.
Stack = list[tuple[ShapeVectorReward, list[VecEnvWrapper]]]


def layers_of(env: VecEnv | None) -> Iterator[VecEnvWrapper]:
    """Yield the wrappers around the environments, the outermost first."""
    while isinstance(env, VecEnvWrapper):
        yield env
        env = env.venv


def shapings_of(env: VecEnv | None) -> Stack:
    """Return every shaping wrapper in `env`; raise if there is none."""
    found, outside = Stack(), list[VecEnvWrapper]()
    for layer in layers_of(env):
        if isinstance(layer, ShapeVectorReward):
            found.append((layer, outside))
            outside = []
        else:
            outside.append(layer)
    if not found:
        raise ValueError("there is no ShapeVectorReward among the environment's wrappers; wrap it, then make the model")
    return found


def keep_means(model: Any, stack: Stack) -> None:
    """Put what all environments share (F̄) of every shaping where `model.save` finds it."""
    setattr(model, MEANS, [[x.tolist() for x in shared_of(shaping.shaping_state.loans)] for shaping, _ in stack])


def restore_means(model: Any, stack: Stack) -> None:
    """Give F̄ of a loaded model to shapings that have not begun; warn where there is none to give."""
    kept: list[Any] = getattr(model, MEANS, None) or []
    for place, (shaping, _) in enumerate(stack):
        if not shaping.monitor.steps:
            state = shaping.shaping_state
            own = kept[place] if place < len(kept) else []
            shaping.shaping_state = state._replace(loans=with_kept(model, state.loans, own))


def with_kept(model: Any, state: Any, kept: list[Any]) -> Any:
    """Return a state with the F̄ that a model kept; warn if the model has trained and kept none that fits."""
    try:
        return with_shared(state, kept) if shared_of(state) else state
    except ValueError:
        if kept or getattr(model, "_n_updates", 0):
            words = "the model was trained before, but no F̄ that fits came with it: the mean of the bonus starts anew"
            warn(f"{words} at 0. Train with the callback CheckShaping(), and save() keeps it")
        return state


def save_model(model: BaseAlgorithm, path: str | Path) -> None:
    """Save the model as `model.save(path)` does, with the shaping state, open loans included, in the same file."""
    shaping, _ = shapings_of(model.get_env())[0]
    model.save(path)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(_zip(path), "a") as archive:
        shaping.save(Path(folder) / STATE)
        archive.write(Path(folder) / STATE, STATE)


def load_model(kind: type[BaseAlgorithm], path: str | Path, env: VecEnv, **options: Any) -> Any:
    """Load a model as `kind.load(path, env)` does, and the shaping state into the wrapper in `env`.

    SB3 resets `env` before it trains on: the debts of open episodes are dropped, F̄ stays.
    """
    shaping, _ = shapings_of(env)[0]
    model = kind.load(path, env=env, **options)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(_zip(path)) as archive:
        if STATE in archive.namelist():
            shaping.load(archive.extract(STATE, folder))
        elif hasattr(model, MEANS):
            restore_means(model, shapings_of(env))
        else:
            raise ValueError(f"{path} holds a model without a shaping state; save it with save_model")
    return model


def _zip(path: str | Path) -> Path:
    """Return the file that SB3 makes of a path: it adds a suffix where there is none."""
    return Path(path) if Path(path).suffix else Path(f"{path}.zip")
