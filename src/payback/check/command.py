"""`payback check FILE:NAME`: try a user's shaping code on streams made to find where it does not repay."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from payback.check.plan import Effort
from payback.check.transform import check_transform
from payback.core.errors import LawBroken
from payback.core.transform import RewardTransform


def run(target: str, gamma: float | None, effort: Effort = "normal") -> int:
    """Check the shaper that `target` names; print what was found. Returns 0 if it keeps the law, else 1."""
    shaper = load(target)
    gamma = getattr(shaper, "gamma", None) if gamma is None else gamma
    if gamma is None:
        raise ValueError(f"{target} does not say its discount: give the learner's with --gamma, e.g. --gamma 0.99")
    try:
        tried = check_transform(shaper, gamma, effort=effort)
    except LawBroken as broken:
        print(f"{target} breaks the law.\n{broken}")
        return 1
    except TypeError as error:
        raise ValueError(f"{target} cannot be checked: {error}") from error
    print(f"{target} keeps the law at γ = {gamma:g} on everything tried: {tried}.")
    return 0


def load(target: str) -> Any:
    """Return what FILE:NAME names, running FILE as a module; a ValueError says what is wrong."""
    file, _, name = target.rpartition(":")
    if not file or not name:
        raise ValueError(f"{target!r} does not name a shaper: write FILE:NAME, e.g. shaping.py:my_shaper")
    if not Path(file).is_file():
        raise ValueError(f"there is no file {file}: give the Python file that holds {name}")
    try:
        found = runpy.run_path(file)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{file} raises {type(error).__name__} when it is run ({error}): fix that first") from error
    if name not in found:
        shapers = {key for key, value in found.items() if callable(value) or isinstance(value, RewardTransform)}
        there = ", ".join(key for key in found if key in shapers and not key.startswith("_"))
        raise ValueError(f"{file} has no {name}: it has {there or 'no functions or transforms'}")
    return found[name]
