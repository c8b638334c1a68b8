"""Stable-Baselines3: a VecEnv wrapper that adds a shaped intrinsic reward, and a callback that checks the rest.

    env = ShapeVecReward(make_vec_env("CartPole-v1", 8), novelty, payback.grm(0.99, delay=10))
    PPO("MlpPolicy", env, gamma=0.99).learn(100_000, callback=CheckShaping())

The learner is paid r_t + F'_t; `Monitor`, which make_vec_env puts inside, goes on reporting the extrinsic return.
Each step's info has extrinsic, intrinsic, shaped, owed and the original truncated. Works with on-policy learners,
recurrent or not, and with replay buffers: a stored F'_t was paid for its own episode's history and keeps its meaning.
"""

# Stable-Baselines3's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportMissingTypeArgument=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false

from __future__ import annotations

import tempfile
import warnings
import zipfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from payback.core.transform import Match, RewardTransform
from payback.integrations.host import host
from payback.integrations.ledger import Ledger, ShapingWarning, ask, read_end, read_intrinsic
from payback.integrations.observed_debt import space_with_debt, with_debt

with host("Stable-Baselines3", "pip install 'payback[sb3]'"):
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper, VecNormalize
    from stable_baselines3.her import HerReplayBuffer

Source = Callable[[Any, Any, Any, list[dict[str, Any]]], Any] | str
"""(obs, actions, next_obs, infos) → (B,) on batches, `infos` being SB3's list; or the name of an info key.

The callable gets copies of the arrays, and is told that an episode is over by `reset(where)`, a (B,) mask, if it has
that method.
"""

ROUNDING = 1e-5
"""How far a float32 reward may lie from what was paid, relatively."""
STATE = "shaping.npz"
"""The shaping state's name inside a saved model's zip file."""


class ShapeVecReward(VecEnvWrapper):
    """Add the shaped intrinsic reward to SB3's environments.

    `on_truncation="settle"` collects the debt at a time limit and takes `TimeLimit.truncated` back, so that no learner
    bootstraps past it; "carry" leaves the debt to the bootstrapped value. `observe_debt` adds the debt to the
    observation. `event` flags the steps at which `match_when` repays. `learner_gamma` is compared with the
    transform's; the callback CheckShaping does so too. `ledger` has the debts.
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
    ):
        super().__init__(venv, space_with_debt(venv.observation_space) if observe_debt else None)
        self.ledger = Ledger(transform, venv.num_envs, on_truncation, intrinsic, learner_gamma)
        self.ledger.largest = float(np.finfo(np.float32).max)
        self._intrinsic, self._event, self._observe = intrinsic, event, observe_debt
        self._obs: Any = None
        self._actions: Any = None

    def reset(self) -> Any:
        """Reset all environments; the debts of open episodes are dropped and counted."""
        obs = self.venv.reset()
        self._obs = _copy(obs)
        self.ledger.reset()
        return with_debt(obs, self.ledger.owed) if self._observe else obs

    def step_async(self, actions: np.ndarray) -> None:
        """Hand the actions on."""
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all environments; the reward is r_t + F'_t."""
        obs, reward, done, infos = self.venv.step_wait()
        done = read_end("done", done, self.num_envs)
        ended, terminated, truncated = [], None, None
        if True in done.tolist():
            ended = np.flatnonzero(done).tolist()
            terminated, truncated = _split(done, infos, ended)
        before, self._obs = self._obs, _copy(obs)
        try:
            F = self._read(self._intrinsic, before, infos, ended)
            event = None if self._event is None else self._read(self._event, before, infos, ended)
            event = None if event is None else read_end("event", event, self.num_envs)
            shaped = self.ledger.step(F, terminated, truncated, None, event)
        except Exception:
            self.ledger.abandon(done if ended else None)
            raise
        cut = [False] * len(infos) if truncated is None else truncated.tolist()
        _record(infos, reward.tolist(), F.tolist(), shaped.tolist(), self.ledger.ending.tolist(), cut)
        if terminated is not None and truncated is not None:
            bootstraps = self.ledger.ends(terminated, truncated)[1].tolist()
            for k in ended:
                infos[k]["TimeLimit.truncated"] = bootstraps[k]
        if self._observe:
            for k in ended:
                last = infos[k]["terminal_observation"]
                infos[k]["terminal_observation"] = with_debt(last, self.ledger.ending[k])
            obs = with_debt(obs, self.ledger.owed)
        return obs, (reward + shaped).astype(reward.dtype), done, infos

    def _read(self, source: Source, before: Any, infos: list[dict[str, Any]], ended: list[int]) -> np.ndarray:
        step = self.ledger.steps
        if isinstance(source, str):
            for k, info in enumerate(infos):
                if source not in info:
                    raise KeyError(f"info has no {source!r} for environment {k} at step {step}")
            values = [info[source] for info in infos]
        else:
            # Copies: what the callable changes in them changes nothing that the learner reads.
            own = [dict(info) for info in infos]
            for k in ended:
                own[k]["terminal_observation"] = _copy(infos[k]["terminal_observation"])
            next_obs = _with_terminal(self._obs, own, ended) if ended else self._obs
            values = ask(source, self.num_envs, step, before, _copy(self._actions), next_obs, own)
        return read_intrinsic(values, self.num_envs, step)


class CheckShaping(BaseCallback):
    """Check what the wrapper cannot see: the learner's γ, what is wrapped around, and the reward that comes out of it.

    Refuses, when training starts, another γ than the transform's (of every shaping in the stack), a VecNormalize
    outside that scales and clips rewards, and a replay buffer that relabels them; and at any step a reward that is not
    the r_t + F'_t that the shaping paid. `strict=False` warns and goes on.
    """

    def __init__(self, strict: bool = True):
        super().__init__()
        self.strict = strict
        self._found = False

    def _on_training_start(self) -> None:
        for problem in _problems(self.model, self.training_env):
            self._tell(problem)

    def _on_step(self) -> bool:
        rewards, infos = self.locals.get("rewards"), self.locals.get("infos")
        if not self._found and rewards is not None and infos is not None:
            for k, (reward, info) in enumerate(zip(rewards.tolist(), infos, strict=True)):
                extrinsic, shaped = info["extrinsic"], info["shaped"]
                if abs(reward - extrinsic - shaped) > ROUNDING * (abs(extrinsic) + abs(shaped)) + 1e-12:
                    self._found = True
                    names = ", ".join(type(wrapper).__name__ for wrapper in find_shaping(self.training_env)[1])
                    self._tell(
                        f"the shaping paid {extrinsic + shaped:.6g} to environment {k}, but the learner is given "
                        f"{reward:.6g}, because a wrapper outside ({names or 'the host'}) changes rewards: loans and "
                        "repayments no longer cancel; put it inside ShapeVecReward"
                    )
                    break
        return True

    def _tell(self, problem: str) -> None:
        if self.strict:
            raise ValueError(f"{problem}; to go on all the same use CheckShaping(strict=False)")
        warnings.warn(problem, ShapingWarning, stacklevel=3)


def save_model(model: BaseAlgorithm, path: str | Path) -> None:
    """Save the model as `model.save(path)` does, with the shaping state in the same file."""
    shaping, _ = find_shaping(model.get_env())
    model.save(path)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(_zip(path), "a") as archive:
        shaping.ledger.save(Path(folder) / STATE)
        archive.write(Path(folder) / STATE, STATE)


def load_model(kind: type[BaseAlgorithm], path: str | Path, env: VecEnv, **options: Any) -> Any:
    """Load a model as `kind.load(path, env)` does, and the shaping state into the wrapper in `env`.

    SB3 resets `env` before it trains on, which ends the open episodes: their debts are dropped, F̄ stays.
    """
    shaping, _ = find_shaping(env)
    model = kind.load(path, env=env, **options)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(_zip(path)) as archive:
        if STATE not in archive.namelist():
            raise ValueError(f"{path} holds a model without a shaping state; save it with save_model")
        shaping.ledger.load(archive.extract(STATE, folder))
    return model


def _zip(path: str | Path) -> Path:
    """The file that SB3 makes of a path: it adds a suffix where there is none."""
    return Path(path) if Path(path).suffix else Path(f"{path}.zip")


def find_shaping(env: VecEnv | None) -> tuple[ShapeVecReward, list[VecEnvWrapper]]:
    """Return the shaping wrapper in `env` and the wrappers outside it."""
    outside = []
    while isinstance(env, VecEnvWrapper):
        if isinstance(env, ShapeVecReward):
            return env, outside
        outside.append(env)
        env = env.venv
    raise ValueError("there is no ShapeVecReward among the environment's wrappers; wrap it before making the model")


def _shapings(env: VecEnv) -> tuple[list[ShapeVecReward], list[VecEnvWrapper]]:
    """Return every shaping wrapper in `env`, the outermost first, and the wrappers outside the innermost."""
    found, outside, inner = [], [], env
    while True:
        shaping, between = find_shaping(inner)
        found.append(shaping)
        outside += between
        inner = shaping.venv
        try:
            find_shaping(inner)
        except ValueError:
            return found, outside


def _problems(model: BaseAlgorithm, env: VecEnv) -> list[str]:
    problems = []
    shapings, outside = _shapings(env)
    for shaping in shapings:
        shaping.ledger.confirmed = True
        transform = shaping.ledger.transform
        gamma = transform.gamma if isinstance(transform, Match) else model.gamma  # type: ignore[attr-defined]
        if model.gamma != gamma:  # type: ignore[attr-defined]
            problems.append(
                f"the learner discounts with gamma {model.gamma}, the loans are repaid with gamma {gamma}: "  # type: ignore[attr-defined]
                "they would not cancel; give both the same"
            )
    if any(isinstance(wrapper, VecNormalize) and wrapper.norm_reward for wrapper in outside):
        problems.append(
            "VecNormalize outside the shaping divides and clips shaped rewards by a drifting scale, so loans and "
            "repayments no longer cancel; put it inside ShapeVecReward, or use norm_reward=False"
        )
    if isinstance(getattr(model, "replay_buffer", None), HerReplayBuffer):
        problems.append(
            "HerReplayBuffer computes rewards anew for other goals and loses the shaping; use a plain buffer"
        )
    return problems


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


def _copy(x: Any) -> Any:
    return x.copy() if isinstance(x, np.ndarray) else deepcopy(x)


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
