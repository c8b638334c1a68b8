"""`payback check FILE:NAME`: check a user's shaping code."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from payback.check.plan import Effort
from payback.check.shaper import check_transform
from payback.core.errors import InvarianceError
from payback.core.transform import RewardTransform


def run(target: str, gamma: float | None, effort: Effort = "normal") -> int:
    """Check the shaper that `target` names and print the verdict. Return 0 if it is policy-invariant, else 1."""
    shaper = load(target)
    gamma = getattr(shaper, "gamma", None) if gamma is None else gamma
    if gamma is None:
        raise ValueError(f"{target} has no discount of its own: give the learner's with --gamma, e.g. --gamma 0.99")
    try:
        report = check_transform(shaper, gamma, effort=effort)
    except InvarianceError as broken:
        print(f"{target} is not policy-invariant.\n{broken}")
        return 1
    except TypeError as error:
        raise ValueError(f"{target} cannot be checked: {error}") from error
    print(f"{target} is policy-invariant at γ = {gamma:g} as far as tested.\n{report}")
    return 0


def load(target: str) -> Any:
    """Run FILE as a module and return NAME; a ValueError says what is wrong."""
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
