"""The VecEnv wrappers: `ShapeVectorReward`, `ShapeVectorWithPotential`, and for evaluation `Unshaped`."""

# pyright: standard
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from payback import messages
from payback.core.arrays import any_of
from payback.core.transform import RewardTransform
from payback.integrations.gymnasium_rows import copy, space_with_debt, with_debt
from payback.integrations.host import Shaping, ask, bind_bonus, read_end, read_intrinsic, refuse_reward_shape
from payback.integrations.potential import Potential, Potentials
from payback.integrations.wiring import LOOKS, OuterWrapperCheck
from payback.ledger import OnTruncation, Step, make
from payback.monitor import Monitor

Source = Callable[[Any, Any, Any, list[dict[str, Any]]], Any] | str
"""(obs, actions, next_obs, infos) → (B,) on batches, `infos` being SB3's list; or the name of an info key.

The callable gets copies of the arrays. If it has a method `reset(where)`, that is called with a (B,) mask of the
environments whose episode is over.
"""


class Unshaped(VecEnvWrapper):
    """Pass everything on, so that training and evaluation environments are wrapped the same way, as EvalCallback needs.

    Where the policy sees the debt, pass `observe_debt=True` here, too: without a bonus the debt is 0.

        EvalCallback(VecNormalize(Unshaped(make_vec_env("CartPole-v1", 4)), norm_reward=False, training=False))
    """

    def __init__(self, venv: VecEnv, *, observe_debt: bool = False):
        super().__init__(venv, space_with_debt(venv.observation_space) if observe_debt else None)
        self.observes_debt = observe_debt

    def reset(self) -> Any:
        """Reset all environments, which drops the debts of open episodes."""
        obs = self.venv.reset()
        self._begin(obs)
        return with_debt(obs, np.zeros(self.num_envs)) if self.observes_debt else obs

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all environments; the reward is r_t."""
        obs, reward, done, infos = self.venv.step_wait()
        return self._show(obs, np.zeros(self.num_envs), done, infos), reward, done, infos

    def _begin(self, obs: Any) -> None:
        """Take the first observations of all environments' new episodes."""

    def _show(self, obs: Any, owed: np.ndarray, done: np.ndarray, infos: list[dict[str, Any]]) -> Any:
        """Return the observations as the learner sees them; the last ones of episodes show what was owed then."""
        if not self.observes_debt:
            return obs
        for k in np.flatnonzero(done).tolist():
            infos[k]["terminal_observation"] = with_debt(_last_observation(infos, k), owed[k])
        return with_debt(obs, np.where(done, 0.0, owed))


class Paying(Unshaped):
    """Keeps the transition under way, and adds what `_pay` returns for it to the rewards."""

    _pay: Callable[..., tuple[np.ndarray, Step]]

    def __init__(self, env: VecEnv, *, observe_debt: bool = False):
        if not isinstance(env, VecEnv):
            raise TypeError(f"{type(self).__name__} wraps a VecEnv of Stable-Baselines3, got {env!r}; use make_vec_env")
        super().__init__(env, observe_debt=observe_debt)
        self._obs: Any = None
        self._actions: Any = None
        self.outer = OuterWrapperCheck(0)
        # For CheckShaping, of the last step: r_t, F'_t, their sum; the infos' numbers; whose episode ended or carries
        self.received, self.shaped, self.paid = (np.zeros(env.num_envs),) * 3
        self.reported = ([0.0] * env.num_envs,) * 4
        self.done = self.carried = self._none = np.zeros(env.num_envs, dtype=bool)
        self.ended: list[int] = []

    def _begin(self, obs: Any) -> None:
        self._obs = copy(obs)

    def step_async(self, actions: np.ndarray) -> None:
        """Hand the actions on."""
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all environments; the reward is r_t + F'_t."""
        if self._obs is None:
            raise RuntimeError("stepped before its reset; call reset, and model.set_env(env) without force_reset=False")
        obs, reward, done, infos = self.venv.step_wait()
        refuse_reward_shape(reward, self.num_envs)
        if len(infos) != self.num_envs:
            raise ValueError(f"the VecEnv returned {len(infos)} infos for {self.num_envs} environments, not one each")
        if self.outer.left:
            self.outer.look()
        done = read_end("done", done, self.num_envs)
        self.ended = ended = np.flatnonzero(done).tolist() if any_of(done) else []
        terminated, truncated = split_ends(done, infos, ended) if ended else (None, None)
        before, self._obs = self._obs, copy(obs)
        F, step = self._pay((before, reward, infos, ended), terminated, truncated)
        self.reported = reward.tolist(), F.tolist(), step.shaped.tolist(), step.owed.tolist()
        _record(infos, *self.reported, [False] * len(infos) if truncated is None else truncated.tolist())
        if step.truncated is not None:
            for k in ended:
                infos[k]["TimeLimit.truncated"] = bool(step.truncated[k])
        # In float32, unless rewards come in that or better, because other dtypes round loans.
        wide = reward.dtype.kind == "f" and reward.dtype.itemsize >= 4
        paid = (reward + step.shaped).astype(reward.dtype if wide else np.float32)
        self.received, self.shaped, self.paid, self.done = reward, step.shaped, paid.copy(), done.copy()
        self.carried = self._none if step.truncated is None else step.truncated
        return self._show(obs, step.owed, done, infos) if self.observes_debt else obs, paid, done, infos


class ShapeVectorReward(Shaping, Paying):
    """Add the shaped intrinsic reward to SB3's environments.

    The parameters and attributes are those of Gymnasium's `ShapeVectorReward`. `on_truncation="settle"` also takes
    `TimeLimit.truncated` back, so that no learner bootstraps past the settled debt. Train with `CheckShaping()`.
    """

    def __init__(
        self,
        env: VecEnv,
        bonus: Source,
        transform: RewardTransform,
        *,
        on_truncation: OnTruncation | None = None,
        observe_debt: bool = False,
        event: Source | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
    ):
        super().__init__(env, observe_debt=observe_debt)
        messages.warn_unseen_debt(transform, None if observe_debt else on_truncation, "Pass observe_debt=True")
        bind_bonus(bonus, env.observation_space, env.action_space)
        ledger = make(transform, on_truncation, trusted=True)
        self.shaping_state = ledger.init(np.zeros(env.num_envs))
        self.monitor = Monitor(ledger, bonus=bonus, learner_gamma=learner_gamma, record=record, pays=np.float32)
        self._bonus, self._event, self.outer.left = bonus, event, LOOKS

    def close(self) -> None:
        """Close the environments, and write what is left of the log."""
        self.monitor.close()
        super().close()

    def _begin(self, obs: Any) -> None:
        super()._begin(obs)
        self.shaping_state = self.monitor.reset(self.shaping_state)

    def _read(self, source: Source, row: tuple[Any, Any, list[dict[str, Any]], list[int]]) -> np.ndarray:
        before, _, infos, ended = row
        return read_source(source, self.monitor.steps, (before, self._actions, self._obs), infos, ended)


class ShapeVectorWithPotential(Paying):
    """Add γΦ(s′) − Φ(s) to the rewards of SB3's environments; `gamma` is the learner's.

    `potential` maps a batch of observations to Φ, (B,). Φ is 0 where an episode terminates and kept where
    `TimeLimit.truncated` is set, because SB3 bootstraps there with the value of the last observation. Each info has
    Φ(s′) as `intrinsic`, the payment as `shaped`, and `owed`: from the next step on the episode pays −owed in total.

    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> env = ShapeVectorWithPotential(make_vec_env("CartPole-v1", 2), lambda obs: -abs(obs[:, 2]), gamma=0.99)
    >>> obs = env.reset()
    >>> obs, reward, done, infos = env.step(np.array([0, 1]))
    >>> infos[0]["extrinsic"], bool(np.isclose(reward[0], 1 + infos[0]["shaped"]))
    (1.0, True)
    """

    def __init__(self, env: VecEnv, potential: Potential, *, gamma: float):
        super().__init__(env)
        self._potentials = Potentials(potential, gamma, env.num_envs)

    def _begin(self, obs: Any) -> None:
        super()._begin(obs)
        self._potentials.begin(self._obs)

    def _pay(self, row: tuple[Any, ...], terminated: Any, truncated: Any) -> tuple[np.ndarray, Step]:
        _, _, infos, ended = row
        phi, shaped, owed = self._potentials.step(_with_terminal(self._obs, infos, ended), terminated)
        if ended:
            self._potentials.begin(self._obs)
        return phi, Step(shaped, owed, None, None, None)


def read_source(source: Source, step: int, transition: tuple, infos: list[dict], ended: list[int]) -> np.ndarray:
    """Return (B,) numbers from an info key, or from a callable on (obs, actions, next_obs); `ended` are indices."""
    num_envs = len(infos)
    if isinstance(source, str):
        for k, info in enumerate(infos):
            if source not in info:
                raise KeyError(f"info has no {source!r} for environment {k} at step {step}")
        values = [info[source] for info in infos]
    else:
        # Copies at ends, where SB3 reads infos: what the callable changes in them changes nothing for the learner.
        own = infos.copy()
        for k in ended:
            own[k] = {**infos[k], "terminal_observation": copy(_last_observation(infos, k))}
        before, actions, after = transition
        next_obs = _with_terminal(after, own, ended) if ended else after
        values = ask(source, num_envs, step, before, copy(actions), next_obs, own)
    return read_intrinsic(values, num_envs, step)


def _last_observation(infos: list[dict[str, Any]], k: int) -> Any:
    """Return the last observation of an episode, which SB3's VecEnvs put in the info because they reset at once."""
    if "terminal_observation" not in infos[k]:
        raise KeyError(f"environment {k} ended, but its info has no 'terminal_observation', as SB3's own VecEnvs give")
    return infos[k]["terminal_observation"]


def split_ends(done: np.ndarray, infos: list[dict[str, Any]], ended: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return (terminated, truncated): SB3 distinguishes them in the infos only."""
    truncated = np.zeros_like(done)
    truncated[[k for k in ended if infos[k].get("TimeLimit.truncated", False)]] = True
    return done & ~truncated, truncated


def _record(infos: list[dict[str, Any]], *columns: list[Any]) -> None:
    """Write each environment's numbers into its info; keys set one by one are the cheapest way."""
    for info, extrinsic, intrinsic, shaped, owed, truncated in zip(infos, *columns, strict=True):
        info["extrinsic"], info["intrinsic"], info["shaped"] = extrinsic, intrinsic, shaped
        info["owed"], info["truncated"] = owed, truncated


def _with_terminal(obs: Any, infos: list[dict[str, Any]], ended: list[int]) -> Any:
    """Put the ended episodes' last observations in the place of the next ones' first."""
    obs = copy(obs)
    for k in ended:
        last = _last_observation(infos, k)
        for part, value in [(obs[key], last[key]) for key in last] if isinstance(obs, dict) else [(obs, last)]:
            part[k] = value
    return obs
