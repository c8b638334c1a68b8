"""Between a host and the ledger: import the host, call the bonus, read what both hand in, pay a step in float64."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np

from payback.core.arrays import all_finite
from payback.core.state import save_state
from payback.core.validate import read_flags
from payback.ledger import LedgerState, Step
from payback.monitor import Monitor


@contextmanager
def host(name: str, install: str) -> Generator[None, None, None]:
    """Add to an import error of the host `name` how to `install` it."""
    try:
        yield
    except ImportError as error:
        raise ImportError(f"this adapter needs {name} ({error}): {install}") from error


def ask(bonus: Callable[..., Any], num_envs: int, step: int, *transition: Any) -> Any:
    """Call the bonus on a batch of transitions; if it raises, name the step."""
    try:
        return bonus(*transition)
    except Exception as error:
        which = "environment 0" if num_envs == 1 else f"environments 0 to {num_envs - 1}"
        words = f"the intrinsic reward raised {type(error).__name__} at step {step} ({which}): {error}"
        raise RuntimeError(words) from error


def bind_bonus(bonus: Any, observation_space: Any, action_space: Any) -> None:
    """Pass the spaces of one environment to a ready bonus, so that `ICM()` needs no argument; others have no `bind`."""
    if not (callable(bonus) or isinstance(bonus, str)):
        what = "a callable (obs, action, next_obs, info) → one number per environment, or the name of an info key"
        raise TypeError(f"bonus must be {what}, such as payback.bonuses.EpisodicCount(), got {bonus!r}")
    bind = getattr(bonus, "bind", None)
    if callable(bind):
        bind(observation_space, action_space)


def read_intrinsic(
    values: Any, num_envs: int, step: int, valid: np.ndarray | None = None, what: str = "intrinsic reward"
) -> np.ndarray:
    """Return F, or what else is named, as float64 of shape (B,); an error names the environment and the step."""
    is_plain = type(values) is np.ndarray and values.dtype == np.float64
    rewards: np.ndarray = values if is_plain else _as_floats(values, num_envs, step, what)
    if rewards.shape != (num_envs,):
        raise _wrong_shape(rewards.shape, num_envs, step, what)
    if not all_finite(rewards):
        bad = np.flatnonzero(~np.isfinite(rewards) if valid is None else ~np.isfinite(rewards) & valid)
        if len(bad):
            raise _not_finite(rewards, bad[0], step, what)
    return rewards


def read_tensor(values: Any, like: Any, step: int, ignored: Any = None) -> Any:
    """Return F, or events, in float64 on the device of `like`, (B,), without its graph; 0 in the `ignored` rows."""
    import torch

    rewards = torch.as_tensor(values, device=like.device).detach().double()
    if rewards.shape != like.shape:
        raise _wrong_shape(tuple(rewards.shape), len(like), step)
    rewards = rewards if ignored is None else torch.where(ignored, 0.0, rewards)
    if rewards.device.type == "cpu" and not bool(torch.isfinite(rewards).all()):
        raise _not_finite(rewards, int(torch.nonzero(~torch.isfinite(rewards))[0]), step)
    return rewards


def _wrong_shape(shape: tuple[int, ...], num_envs: int, step: int, what: str = "intrinsic reward") -> ValueError:
    return ValueError(f"the {what} at step {step} has shape {shape}, not ({num_envs},), one number per environment")


def _not_finite(rewards: Any, k: int, step: int, what: str = "intrinsic reward") -> ValueError:
    return ValueError(f"the {what} of environment {k} at step {step} is {float(rewards[k])}; make it finite")


def _as_floats(values: Any, num_envs: int, step: int, what: str) -> np.ndarray:
    if hasattr(values, "detach"):
        values = values.detach().cpu().double()  # because NumPy has no bfloat16
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        kind = type(values).__name__
        raise TypeError(f"the {what} at step {step} is a {kind}, not an array of {num_envs} numbers") from None


def read_end(what: str, flags: Any, num_envs: int) -> np.ndarray:
    """Return (B,) booleans; numbers other than 0 and 1 are refused."""
    if type(flags) is np.ndarray and flags.dtype.char == "?" and flags.shape == (num_envs,):
        return flags
    return read_flags("the environment", what, np.asarray(flags), np.zeros(num_envs))


def read_tensor_end(what: str, flags: Any) -> Any:
    """Return a tensor of flags, of shape (B,) or (B, 1), as (B,) booleans; numbers other than 0 and 1 are refused."""
    flags = flags.reshape(-1)
    return read_flags("the environment", what, flags, flags)


def refuse_reward_shape(reward: Any, num_envs: int) -> None:
    """Refuse rewards that are not (B,): with F′ of shape (B,) a column of them would become a (B, B) matrix."""
    shape = reward.shape if type(reward) is np.ndarray else np.shape(reward)
    if shape != (num_envs,):
        raise ValueError(f"the environment's rewards have shape {shape}, not ({num_envs},); flatten them inside")


class Shaping:
    """What a host's wrapper remembers between two steps, and how it pays one; it can be saved and loaded."""

    shaping_state: LedgerState
    monitor: Monitor
    _bonus: Any
    _event: Any
    _read: Callable[..., Any]  # (bonus or event, row) → (B,): what the source says of the step that `row` describes

    def _pay(self, row: Any, terminated: Any, truncated: Any, valid: Any = None) -> tuple[np.ndarray, Step]:
        """Ask for F_t and the event of a step, and shape it; the ends are None if no episode ended."""
        before, ledger = self.shaping_state, self.monitor.ledger
        try:
            F = self._read(self._bonus, row)
            event = None if self._event is None else read_end("event", self._read(self._event, row), len(F))
            after, step = ledger.step(before, F, terminated, truncated, valid, event)
            self.monitor.see(before, F, step, truncated, valid)
        except Exception:
            # A caller that goes on must not find the debts of these episodes in the next ones.
            if terminated is not None:
                ended = terminated | truncated
                self.shaping_state = self.monitor.reset(before, ended if valid is None else ended & valid)
            raise
        self.shaping_state = after
        return F, step

    @property
    def owed(self) -> np.ndarray:
        """What each environment owes, valued at its next step: (B,)."""
        return self.shaping_state.owed

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the shaping's state to an NPZ file, to train on from it; see `payback.save_state`."""
        save_state(path, self.shaping_state.loans)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Read a state that `save` wrote for the same transform; from another number of environments, F̄ alone."""
        self.shaping_state = self.monitor.load(path, self.shaping_state)


class BonusPerEnvironment:
    """The bonus of each environment: copies of one that has `reset`, unless its attribute `episodic` is False."""

    def __init__(self, bonus: Any, num_envs: int):
        self._resets = callable(getattr(bonus, "reset", None))
        self._bonuses: list[Any] = [bonus] * num_envs
        if self._resets and getattr(bonus, "episodic", True):
            fork = getattr(bonus, "fork", None)  # `episodic` shares the networks that it divides
            self._bonuses[1:] = [fork() if fork else deepcopy(bonus) for _ in range(num_envs - 1)]

    def of(self, env_index: int) -> Any:
        """Return the bonus of one environment."""
        return self._bonuses[env_index]

    def reset(self, where: np.ndarray) -> None:
        """Reset the bonuses of the environments in the (B,) mask, whose episodes are over."""
        if self._resets:
            for k in np.flatnonzero(where):
                self._bonuses[k].reset(np.ones(1, dtype=bool))
