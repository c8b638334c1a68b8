"""The VecEnv wrapper that pays r_t + F'_t."""

# Stable-Baselines3's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from payback.core.transform import RewardTransform
from payback.integrations.around import Around
from payback.integrations.bonus_values import ask, read_end, read_intrinsic, refuse_reward_shape
from payback.integrations.gymnasium_rows import copy
from payback.integrations.ledger import Ledger
from payback.integrations.observed_debt import with_debt
from payback.integrations.sb3.unshaped import Unshaped

Source = Callable[[Any, Any, Any, list[dict[str, Any]]], Any] | str
"""(obs, actions, next_obs, infos) → (B,) on batches, `infos` being SB3's list; or the name of an info key.

The callable gets copies of the arrays, and is told that an episode is over by `reset(where)`, a (B,) mask, if it has
that method.
"""


class ShapeVecReward(Unshaped):
    """Add the shaped intrinsic reward to SB3's environments.

    `on_truncation="settle"` collects the debt at a time limit and takes `TimeLimit.truncated` back, so that no learner
    bootstraps past it; "carry" leaves the debt to the bootstrapped value. `observe_debt` adds the debt to the
    observation. `event` flags the steps at which `match_when` repays. `learner_gamma` is compared with the
    transform's; the callback CheckShaping does so too. `record` names a folder for the log of all steps that
    `payback audit` reads. `ledger` has the debts.
    """

    def __init__(
        self,
        venv: VecEnv,
        intrinsic: Source,
        transform: RewardTransform,
        on_truncation: str = "settle",
        observe_debt: bool = False,
        event: Source | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
    ):
        super().__init__(venv, observe_debt)
        self.ledger = Ledger(transform, venv.num_envs, on_truncation, intrinsic, learner_gamma, record)
        self.ledger.largest = float(np.finfo(np.float32).max)
        self._intrinsic, self._event = intrinsic, event
        nothing = np.zeros(venv.num_envs)
        self.received, self.shaped, self.paid = (nothing,) * 3
        """r_t, F'_t and r_t + F'_t of the last step, (B,) each."""
        self.told = ([0.0] * venv.num_envs,) * 4
        """extrinsic, intrinsic, shaped and owed of the last step, as the infos have them."""
        self.done = np.zeros(venv.num_envs, dtype=bool)
        """Whose episode ended with the last step, (B,)."""
        self.around = Around()
        self._obs: Any = None
        self._actions: Any = None

    def reset(self) -> Any:
        """Reset all environments; the debts of open episodes are dropped and counted."""
        obs = self.venv.reset()
        self._obs = copy(obs)
        self.ledger.reset()
        return with_debt(obs, self.ledger.owed) if self.observes_debt else obs

    def step_async(self, actions: np.ndarray) -> None:
        """Hand the actions on."""
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all environments; the reward is r_t + F'_t."""
        obs, reward, done, infos = self.venv.step_wait()
        refuse_reward_shape(reward, self.num_envs)
        if self.around.left:
            self.around.look()
        done = read_end("done", done, self.num_envs)
        ended, terminated, truncated = [], None, None
        if True in done.tolist():
            ended = np.flatnonzero(done).tolist()
            terminated, truncated = _split(done, infos, ended)
        before, self._obs = self._obs, copy(obs)
        try:
            F = self._read(self._intrinsic, before, infos, ended)
            event = None if self._event is None else self._read(self._event, before, infos, ended)
            event = None if event is None else read_end("event", event, self.num_envs)
            shaped = self.ledger.step(F, terminated, truncated, None, event)
        except Exception:
            self.ledger.abandon(done if ended else None)
            raise
        cut = [False] * len(infos) if truncated is None else truncated.tolist()
        self.told = reward.tolist(), F.tolist(), shaped.tolist(), self.ledger.ending.tolist()
        _record(infos, *self.told, cut)
        if terminated is not None and truncated is not None:
            bootstraps = self.ledger.ends(terminated, truncated)[1].tolist()
            for k in ended:
                infos[k]["TimeLimit.truncated"] = bootstraps[k]
        if self.observes_debt:
            for k in ended:
                last = infos[k]["terminal_observation"]
                infos[k]["terminal_observation"] = with_debt(last, self.ledger.ending[k])
            obs = with_debt(obs, self.ledger.owed)
        paid = (reward + shaped).astype(_paid_in(reward.dtype))
        self.received, self.shaped, self.paid = reward, shaped, paid.copy()
        self.done = done.copy()
        return obs, paid, done, infos

    def close(self) -> None:
        """Close the environments, and write what is left of the log."""
        self.ledger.close()
        super().close()

    def _read(self, source: Source, before: Any, infos: list[dict[str, Any]], ended: list[int]) -> np.ndarray:
        step = self.ledger.steps
        if isinstance(source, str):
            for k, info in enumerate(infos):
                if source not in info:
                    raise KeyError(f"info has no {source!r} for environment {k} at step {step}")
            values = [info[source] for info in infos]
        else:
            # Copies: what the callable changes in them changes nothing that the learner reads.
            own = [info.copy() for info in infos]
            for k in ended:
                own[k]["terminal_observation"] = copy(infos[k]["terminal_observation"])
            next_obs = _with_terminal(self._obs, own, ended) if ended else self._obs
            values = ask(source, self.num_envs, step, before, copy(self._actions), next_obs, own)
        return read_intrinsic(values, self.num_envs, step)


def _paid_in(dtype: np.dtype[Any]) -> Any:
    """Return the dtype of r_t + F'_t: float32 unless rewards come in that or better, because others round loans.

    SubprocVecEnv stacks Python integers to int64, in which a loan of 0.3 would be 0.
    """
    return dtype if dtype.kind == "f" and dtype.itemsize >= 4 else np.float32


def _split(done: np.ndarray, infos: list[dict[str, Any]], ended: list[int]) -> tuple[np.ndarray, np.ndarray | None]:
    """Return (terminated, truncated or None where none is): SB3 tells them apart in the infos only."""
    cut = [k for k in ended if infos[k].get("TimeLimit.truncated", False)]
    if not cut:
        return done, None
    truncated = np.zeros_like(done)
    truncated[cut] = True
    return done & ~truncated, truncated


def _record(infos: list[dict[str, Any]], *columns: list[Any]) -> None:
    """Write each environment's numbers into its info; keys set one by one are the cheapest way."""
    for info, extrinsic, intrinsic, shaped, owed, truncated in zip(infos, *columns, strict=True):
        info["extrinsic"], info["intrinsic"], info["shaped"] = extrinsic, intrinsic, shaped
        info["owed"], info["truncated"] = owed, truncated


def _with_terminal(obs: Any, infos: list[dict[str, Any]], ended: list[int]) -> Any:
    """Put the ended episodes' last observations in the place of the next ones' first."""
    if isinstance(obs, dict):
        obs = {key: values.copy() for key, values in obs.items()}
        for k in ended:
            for key, value in infos[k]["terminal_observation"].items():
                obs[key][k] = value
        return obs
    obs = obs.copy()
    for k in ended:
        obs[k] = infos[k]["terminal_observation"]
    return obs
