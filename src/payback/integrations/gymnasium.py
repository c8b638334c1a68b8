"""Gymnasium: wrappers that add a shaped intrinsic reward, for one environment and for vectors of them.

    env = ShapeReward(gym.make("CartPole-v1"), novelty, payback.grm(0.99, delay=30))
    envs = ShapeVectorReward(gym.make_vec("CartPole-v1", 16), novelty, payback.grm(0.99, delay=30))

The wrapped environment pays r_t + F'_t. Put wrappers that measure the extrinsic return (RecordEpisodeStatistics)
inside, and nothing that scales or clips rewards outside. `step` returns in `info`, per environment,

    extrinsic r_t,  intrinsic F_t,  shaped F'_t,  owed the debt at the next step,  truncated as the environment said

where F, F' and the debt are 0 in invalid rows.
"""

# Gymnasium's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportMissingTypeArgument=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from payback.core.transform import RewardTransform
from payback.integrations.around import Around
from payback.integrations.bonus_values import ask, read_end, read_intrinsic, refuse_reward_shape
from payback.integrations.gymnasium_rows import add_debt_to_final, autoreset_mode, copy, from_info, stack, with_final
from payback.integrations.host import host
from payback.integrations.ledger import Ledger
from payback.integrations.not_reset import NotReset
from payback.integrations.observed_debt import space_with_debt, with_debt
from payback.integrations.wiring import check_wiring, say_stacked

with host("Gymnasium", "pip install 'payback[gymnasium]'"):
    import gymnasium as gym
    from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
    from gymnasium.vector.utils import batch_space

__all__ = ["ShapeReward", "ShapeVectorReward", "Source", "check_wiring"]

Source = Callable[[Any, Any, Any, dict[str, Any]], Any] | str
"""(obs, action, next_obs, info) → (B,) on batches, or the name of an info key.

The callable gets copies of the arrays, and is told that an episode is over by `reset(where)`, a (B,) mask, if it has
that method. Its `info` has Gymnasium's vector form (arrays, and `_key` masks) and `info["valid"]`: (B,), False in
invalid rows (NEXT_STEP's autoreset rows). `next_obs` is the true one, also at an episode's end.
"""


class ShapeVectorReward(VectorWrapper):
    """Add the shaped intrinsic reward to a vector of environments, in any of Gymnasium's autoreset modes.

    `on_truncation="settle"` collects the debt at a time limit and reports the step as terminated; "carry" leaves the
    debt to the bootstrapped value. `observe_debt` adds the debt to the observation. `event`, like `intrinsic` a
    callable or an info key, flags the steps at which `match_when` repays. `learner_gamma`, the learner's own discount,
    is compared with the transform's; another one is refused. `record` names a folder for the log of all steps that
    `payback audit` reads. `ledger` has the debts: `ledger.owed`, `ledger.drops` (episodes reset before their end),
    `ledger.save(path)`, `ledger.load(path)`.
    """

    def __init__(
        self,
        env: VectorEnv,
        intrinsic: Source,
        transform: RewardTransform,
        on_truncation: str = "settle",
        observe_debt: bool = False,
        event: Source | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
    ):
        super().__init__(env)
        say_stacked(env, getattr(transform, "gamma", None))
        self._mode = autoreset_mode(env)
        self._intrinsic, self._event, self._observe = intrinsic, event, observe_debt
        self.ledger = Ledger(transform, env.num_envs, on_truncation, intrinsic, learner_gamma, record)
        if observe_debt:
            self.single_observation_space = space_with_debt(env.single_observation_space)
            self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self._around = Around()
        self._not_reset = NotReset() if self._mode is AutoresetMode.DISABLED else None
        self._B = env.num_envs
        self._keeps = callable(intrinsic) or callable(event)
        """Whether a callable will ask for the observation before the step."""
        self._obs: Any = None
        self._all = np.ones(env.num_envs, dtype=bool)
        self._all.flags.writeable = False
        self._valid: np.ndarray | None = None
        """Which rows of the next step are valid; None if all are."""

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all environments, or those of `options["reset_mask"]`; the debts of open episodes are dropped."""
        # The environment takes the mask out of the dictionary.
        mask = None if options is None else options.get("reset_mask")
        mask = None if mask is None else read_end("reset_mask", mask, self.num_envs)
        obs, info = self.env.reset(seed=seed, options=options)
        self.ledger.reset(mask)
        self._valid = None if mask is None or self._valid is None else self._valid | mask
        if self._not_reset is not None:
            self._not_reset.reset(mask)
        # A copy, as environments may write the next observation into the same memory.
        self._obs = copy(obs) if self._keeps else ()
        return with_debt(obs, self.ledger.owed) if self._observe else obs, info

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all environments; the reward is r_t + F'_t."""
        obs, reward, terminated, truncated, info = self.env.step(actions)
        if self._obs is None:
            raise RuntimeError("ShapeVectorReward: call reset before the first step")
        refuse_reward_shape(reward, self._B)
        if self._around.left:
            self._around.look()
        terminated, truncated = read_end("terminated", terminated, self._B), read_end("truncated", truncated, self._B)
        cut = truncated if np.count_nonzero(truncated) else None
        ended = terminated if cut is None else terminated | truncated
        ended = ended if np.count_nonzero(ended) else None
        valid, before, self._obs = self._valid, self._obs, copy(obs) if self._keeps else ()
        self._valid = ~ended if ended is not None and self._mode is AutoresetMode.NEXT_STEP else None
        resets = ended if self._mode is AutoresetMode.SAME_STEP else None
        if self._not_reset:
            self._not_reset.step(ended, self.ledger.steps)
        try:
            F, event = self._read(self._intrinsic, before, actions, info, valid, resets), None
            if self._event is not None:
                event = read_end("event", self._read(self._event, before, actions, info, valid, resets), self._B)
            shaped = self.ledger.step(F, None if ended is None else terminated, cut, valid, event)
        except Exception:
            self.ledger.abandon(ended if valid is None or ended is None else ended & valid)
            raise
        info.update(extrinsic=reward, intrinsic=F, shaped=shaped, owed=self.ledger.ending, truncated=truncated)
        if self._observe:
            obs = with_debt(obs, self.ledger.ending if resets is None else self.ledger.owed)
            if resets is not None:
                add_debt_to_final(info["final_obs"], self.ledger.ending, resets)
        if cut is not None:
            terminated, truncated = self.ledger.ends(terminated, truncated)
        return obs, reward + shaped, terminated, truncated, info

    def close(self, **kwargs: Any) -> None:
        """Close the environments, and write what is left of the log."""
        if "ledger" in vars(self):  # Gymnasium also closes what it deletes: here a wrapper whose arguments were refused
            self.ledger.close()
        super().close(**kwargs)

    def _read(
        self,
        source: Source,
        before: Any,
        actions: Any,
        info: dict,
        valid: np.ndarray | None,
        resets: np.ndarray | None,
    ) -> np.ndarray:
        """Return what a source says of a step, in float64; 0 in invalid rows."""
        step = self.ledger.steps
        if isinstance(source, str):
            values = from_info(source, self._B, step, info, valid, resets)
        else:
            values = ask(source, self._B, step, *self._transition(before, actions, info, valid, resets))
        values = read_intrinsic(values, self._B, step, valid)
        return values if valid is None else np.where(valid, values, 0.0)

    def _transition(
        self, before: Any, actions: Any, info: dict, valid: np.ndarray | None, resets: np.ndarray | None
    ) -> tuple[Any, Any, Any, dict]:
        """Return (obs, action, next_obs, info) for a callable: copies, so that changing them changes nothing else."""
        seen = {**info, "valid": self._all if valid is None else valid.copy()}
        if resets is None:
            return before, copy(actions), self._obs, seen
        seen.update({key: deepcopy(info[key]) for key in ("final_obs", "final_info") if key in info})
        return before, copy(actions), with_final(self.env, self._obs, seen, resets), seen


class ShapeReward(gym.Wrapper):
    """Add the shaped intrinsic reward to one environment: `ShapeVectorReward` for a batch of one.

    `intrinsic` (and `event`) are called on batches of one; the parameters are those of `ShapeVectorReward`.
    """

    def __init__(
        self,
        env: gym.Env,
        intrinsic: Source,
        transform: RewardTransform,
        on_truncation: str = "settle",
        observe_debt: bool = False,
        event: Source | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
    ):
        super().__init__(env)
        say_stacked(env, getattr(transform, "gamma", None))
        self._one = _BatchOfOne(env)
        options = (on_truncation, False, event, learner_gamma, record)
        self._batch = ShapeVectorReward(self._one, intrinsic, transform, *options)
        self._observe = observe_debt
        self.ledger = self._batch.ledger
        if observe_debt:
            self.observation_space = space_with_debt(env.observation_space)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; the debt of an open episode is dropped."""
        obs, info = self.env.reset(seed=seed, options=options)
        self._one.latest = obs, {}
        self._batch.reset()
        return with_debt(obs, self.ledger.owed[0]) if self._observe else obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment; the reward is r_t + F'_t."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._one.latest = obs, reward, terminated, truncated, info
        _, total, ends, cut, record = self._batch.step(stack(self.env.action_space, [action]))
        info.update({key: record[key][0].item() for key in ("extrinsic", "intrinsic", "shaped", "owed", "truncated")})
        obs = with_debt(obs, self.ledger.ending[0]) if self._observe else obs
        return obs, float(total[0]), bool(ends[0]), bool(cut[0]), info

    def close(self) -> None:
        """Close the environment, and write what is left of the log."""
        self.ledger.close()
        super().close()


class _BatchOfOne(VectorEnv):
    """One environment's latest transition in the form of a vector environment's."""

    def __init__(self, env: gym.Env):
        self.num_envs = 1
        self.metadata = {**env.metadata, "autoreset_mode": AutoresetMode.DISABLED}
        self.single_observation_space, self.single_action_space = env.observation_space, env.action_space
        self.observation_space = batch_space(env.observation_space, 1)
        self.action_space = batch_space(env.action_space, 1)
        self.latest: Any = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return stack(self.single_observation_space, [self.latest[0]]), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.latest
        flags = np.array([terminated]), np.array([truncated])
        batch = stack(self.single_observation_space, [obs])
        return batch, np.array([reward], dtype=np.float64), *flags, self._add_info({}, info, 0)
