"""Gymnasium: wrappers that add a shaped intrinsic reward, for one environment and for vectors of them.

    env = ShapeReward(gym.make("CartPole-v1"), novelty, payback.grm(0.99, delay=30))
    envs = ShapeVectorReward(gym.make_vec("CartPole-v1", 16), novelty, payback.grm(0.99, delay=30))

Put wrappers that measure the extrinsic return (RecordEpisodeStatistics) inside, and nothing that scales or clips
rewards outside. `step` returns in `info`, per environment, with 0 in invalid rows,

    extrinsic r_t,  intrinsic F_t,  shaped F'_t,  owed the debt at the next step,  the environment's own truncated
"""

# pyright: standard
from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from payback import messages
from payback.core.arrays import any_of
from payback.core.transform import RewardTransform
from payback.integrations import gymnasium_rows as rows
from payback.integrations.host import Shaping, ask, bind_bonus, host, read_end, read_intrinsic, refuse_reward_shape
from payback.integrations.potential import Potential, Potentials
from payback.integrations.wiring import OuterWrapperCheck, check_wiring, warn_missing_reset, warn_stacked
from payback.ledger import LedgerState, OnTruncation, Step, make
from payback.monitor import Monitor

with host("Gymnasium", "pip install 'payback[gymnasium]'"):
    import gymnasium as gym
    from gymnasium.utils import RecordConstructorArgs
    from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
    from gymnasium.vector.utils import batch_space

__all__ = ["ShapeReward", "ShapeVectorReward", "ShapeVectorWithPotential", "ShapeWithPotential", "Source"]
__all__ += ["check_wiring"]

Source = Callable[[Any, Any, Any, dict[str, Any]], Any] | str
"""(obs, action, next_obs, info) → (B,) on batches, or the name of an info key.

The callable gets copies of the arrays. If it has a method `reset(where)`, that is called with a (B,) mask of the
environments whose episode is over. Its `info` has Gymnasium's vector form and `info["valid"]`, (B,), which is False in
NEXT_STEP's autoreset rows. `next_obs` is the true one, also at an episode's end.
"""


class _Vector(VectorWrapper):
    """Adds what `_pay` returns to the rewards of a vector of environments."""

    _pay: Callable[..., tuple[np.ndarray, Step]]
    _restart: Callable[[np.ndarray | None], None]
    shaping_state: LedgerState

    def __init__(self, env: VectorEnv, keeps: bool, observe_debt: bool = False):
        name = type(self).__name__
        if not isinstance(env, VectorEnv):
            raise TypeError(f"{name} shapes a vector environment, got {env!r}; use {name.replace('Vector', '')}")
        super().__init__(env)
        self._mode, self._B, self._observe = rows.autoreset_mode(env), env.num_envs, observe_debt
        self._keeps, self._obs = keeps, None  # the observations, if a callable will ask for them
        self._over: np.ndarray | None = None  # whose episode ended with the last step and was not reset since

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all environments, or those of `options["reset_mask"]`; the debts of open episodes are dropped."""
        # The environment takes the mask out of the dictionary.
        mask = None if options is None else options.get("reset_mask")
        mask = None if mask is None else read_end("reset_mask", mask, self._B)
        obs, info = self.env.reset(seed=seed, options=options)
        self._over = None if mask is None or self._over is None else self._over & ~mask
        # A copy, as environments may write the next observation into the same memory.
        self._obs = rows.copy(obs) if self._keeps else ()
        self._restart(mask)
        return rows.with_debt(obs, self.shaping_state.owed) if self._observe else obs, info

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all environments; the reward is r_t + F'_t."""
        obs, reward, terminated, truncated, info = self.env.step(actions)
        if self._obs is None:
            raise RuntimeError(f"{type(self).__name__}: call reset before the first step")
        refuse_reward_shape(reward, self._B)
        info = rows.read_info(info)
        terminated, truncated = read_end("terminated", terminated, self._B), read_end("truncated", truncated, self._B)
        ended = terminated | truncated if any_of(terminated) or any_of(truncated) else None
        before, self._obs = self._obs, rows.copy(obs) if self._keeps else ()
        over, self._over = self._over, ended
        valid = ~over if over is not None and self._mode is AutoresetMode.NEXT_STEP else None
        resets = None if ended is None or self._mode is not AutoresetMode.SAME_STEP else ended
        row = before, actions, info, valid, resets
        F, step = self._pay(row, None, None, valid) if ended is None else self._pay(row, terminated, truncated, valid)
        info["extrinsic"], info["intrinsic"], info["shaped"] = reward, F, step.shaped
        info["owed"], info["truncated"] = step.owed, truncated
        if self._observe:
            obs = rows.with_debt(obs, step.owed if resets is None else self.shaping_state.owed)
            for k in () if resets is None else np.flatnonzero(resets):
                info["final_obs"][k] = rows.with_debt(info["final_obs"][k], step.owed[k])
        if ended is not None:
            terminated, truncated = step.terminated, step.truncated
        return obs, reward + step.shaped, terminated, truncated, info


class ShapeVectorReward(Shaping, _Vector):
    """Add the shaped intrinsic reward to a vector of environments, in any of Gymnasium's autoreset modes.

    `on_truncation="settle"` (the default, which warns once) collects the debt at a time limit and reports the step as
    terminated; "carry" leaves the debt to the bootstrapped value. `observe_debt` adds the debt to the observation.
    `event`, like `bonus` a callable or an info key, flags the steps at which `match_when` repays. `learner_gamma`, the
    learner's own discount, must equal the transform's. `record` names a folder for a log that `payback audit` reads.

    `owed` has the debts; `monitor` counts dropped debts (`monitor.drops`) and episodes that do not cancel
    (`monitor.broken`); `save(path)` and `load(path)` keep the shaping's state, F̄ included.
    """

    def __init__(
        self,
        env: VectorEnv,
        bonus: Source,
        transform: RewardTransform,
        *,
        on_truncation: OnTruncation | None = None,
        observe_debt: bool = False,
        event: Source | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
    ):
        super().__init__(env, keeps=callable(bonus) or callable(event), observe_debt=observe_debt)
        messages.warn_unseen_debt(transform, None if observe_debt else on_truncation, "Pass observe_debt=True")
        bind_bonus(bonus, env.single_observation_space, env.single_action_space)
        warn_stacked(env, getattr(transform, "gamma", None))
        self._bonus, self._event = bonus, event
        ledger = make(transform, on_truncation, trusted=True)
        self.shaping_state = ledger.init(np.zeros(env.num_envs))
        self.monitor = Monitor(ledger, bonus=bonus, learner_gamma=learner_gamma, record=record)
        if observe_debt:
            self.single_observation_space = rows.space_with_debt(env.single_observation_space)
            self.observation_space = batch_space(self.single_observation_space, env.num_envs)
        self._outer, self._resets_itself = OuterWrapperCheck(), self._mode is not AutoresetMode.DISABLED
        self._all = np.ones(env.num_envs, dtype=bool)
        self._all.flags.writeable = False

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Step all environments; the reward is r_t + F'_t."""
        if self._outer.left:
            self._outer.look()
        if not self._resets_itself and self._over is not None:
            self._resets_itself = warn_missing_reset(self._over, self.monitor.steps)
        return super().step(actions)

    def close(self, **kwargs: Any) -> None:
        """Close the environments, and write what is left of the log."""
        if "monitor" in vars(self):  # Gymnasium also closes what it deletes: here a wrapper whose arguments were wrong
            self.monitor.close()
        super().close(**kwargs)

    def _restart(self, where: np.ndarray | None) -> None:
        self.shaping_state = self.monitor.reset(self.shaping_state, where)

    def _read(self, source: Source, row: tuple[Any, Any, dict, np.ndarray | None, np.ndarray | None]) -> np.ndarray:
        """Return the bonus, or the event, of a step in float64; 0 in invalid rows."""
        before, actions, info, valid, resets = row
        step, after = self.monitor.steps, self._obs
        if isinstance(source, str):
            values = rows.from_info(source, self._B, step, info, valid, resets)
        else:
            # Copies, so that a callable that changes them changes nothing else.
            seen = {**info, "valid": self._all if valid is None else valid.copy()}
            if resets is not None:
                seen.update({key: deepcopy(info[key]) for key in ("final_obs", "final_info") if key in info})
                after = rows.with_final(self.env, after, seen, resets)
            values = ask(source, self._B, step, before, rows.copy(actions), after, seen)
        values = read_intrinsic(values, self._B, step, valid)
        return values if valid is None else np.where(valid, values, 0.0)


class _One(gym.Wrapper, RecordConstructorArgs):
    """One environment that `_batch` shapes as a batch of one; gymnasium.make(env.spec) wraps it again."""

    _batch: Any
    _observe = False

    def __init__(self, env: gym.Env, observations: bool, actions: bool, **arguments: Any):
        name = type(self).__name__
        if not isinstance(env, gym.Env):
            vector = name.replace("Shape", "ShapeVector")
            raise TypeError(f"{name} shapes one gymnasium.Env, got {env!r}; use {vector} for a vector")
        RecordConstructorArgs.__init__(self, **arguments, _disable_deepcopy=True)
        gym.Wrapper.__init__(self, env)
        self._one = rows.BatchOfOne(env, observations, actions)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; the debt of an open episode is dropped."""
        obs, info = self.env.reset(seed=seed, options=options)
        self._one.latest = obs, {}
        self._batch.reset()
        return rows.with_debt(obs, np.zeros(())) if self._observe else obs, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment; the reward is r_t + F'_t."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._one.latest = obs, reward, terminated, truncated, rows.read_info(info)
        _, total, ends, cut, row = self._batch.step(self._one.read_action(action))
        info.update({key: row[key][0].item() for key in ("extrinsic", "intrinsic", "shaped", "owed", "truncated")})
        obs = rows.with_debt(obs, row["owed"][0]) if self._observe else obs
        return obs, float(total[0]), bool(ends[0]), bool(cut[0]), info


class ShapeReward(Shaping, _One):
    """Add the shaped intrinsic reward to one environment: `ShapeVectorReward` for a batch of one.

    `bonus` (and `event`) are called on batches of one; the parameters are those of `ShapeVectorReward`.
    """

    def __init__(
        self,
        env: gym.Env,
        bonus: Source,
        transform: RewardTransform,
        *,
        on_truncation: OnTruncation | None = None,
        observe_debt: bool = False,
        event: Source | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
    ):
        options: dict[str, Any] = {"on_truncation": on_truncation, "observe_debt": observe_debt, "event": event}
        options.update(bonus=bonus, transform=transform, learner_gamma=learner_gamma, record=record)
        asks = callable(bonus) or callable(event)
        super().__init__(env, observations=asks, actions=asks, **options)
        warn_stacked(env, getattr(transform, "gamma", None))
        self._batch = ShapeVectorReward(self._one, **options)
        self._batch._observe, self._observe = False, observe_debt  # the debt is added here, to the observation itself
        self.monitor = self._batch.monitor
        if observe_debt:
            self.observation_space = self._batch.single_observation_space

    @property
    def spec(self) -> Any:
        """The environment's, not deterministic: F̄ and what the bonus learns outlive a reset."""
        spec = super().spec
        if spec is not None:
            spec.nondeterministic = True
        return spec

    @property
    def shaping_state(self) -> LedgerState:
        """The ledger's state."""
        return self._batch.shaping_state

    @shaping_state.setter
    def shaping_state(self, state: LedgerState) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._batch.shaping_state = state

    def close(self) -> None:
        """Close the environment, and write what is left of the log."""
        self.monitor.close()
        super().close()


class ShapeVectorWithPotential(_Vector):
    """Add γΦ(s′) − Φ(s) to the rewards of a vector of environments, in any of Gymnasium's autoreset modes.

    `potential` maps a batch of observations to Φ, (B,); `gamma` is the learner's discount. Φ is 0 where an episode
    terminates and kept where it is truncated, so let the learner bootstrap at truncations. `info` has Φ(s′) as
    `intrinsic`, the payment as `shaped`, and `owed`: from the next step on the episode pays −owed in total.

    >>> envs = gym.make_vec("CartPole-v1", 2, vectorization_mode="sync")
    >>> envs = ShapeVectorWithPotential(envs, lambda obs: -abs(obs[:, 2]), gamma=0.99)
    >>> obs, info = envs.reset(seed=0)
    >>> obs, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
    >>> bool((reward == info["extrinsic"] + info["shaped"]).all())
    True
    """

    def __init__(self, env: VectorEnv, potential: Potential, *, gamma: float):
        super().__init__(env, keeps=True)
        self._potentials = Potentials(potential, gamma, env.num_envs)

    def _restart(self, where: np.ndarray | None) -> None:
        self._potentials.begin(self._obs)

    def _pay(self, row: tuple[Any, ...], terminated: Any, truncated: Any, valid: Any) -> tuple[np.ndarray, Step]:
        *_, info, _, resets = row
        last = self._obs if resets is None else rows.with_final(self.env, self._obs, info, resets)
        phi, shaped, owed = self._potentials.step(last, terminated, valid)
        if resets is not None:
            self._potentials.begin(self._obs)
        return phi, Step(shaped, owed, terminated, truncated, None)


class ShapeWithPotential(_One):
    """Add γΦ(s′) − Φ(s) to the reward of one environment: `ShapeVectorWithPotential` for a batch of one.

    >>> env = ShapeWithPotential(gym.make("CartPole-v1"), lambda obs: -abs(obs[:, 2]), gamma=0.99)
    >>> obs, info = env.reset(seed=0)
    >>> obs, reward, terminated, truncated, info = env.step(0)
    >>> reward == info["extrinsic"] + info["shaped"]
    True
    """

    def __init__(self, env: gym.Env, potential: Potential, *, gamma: float):
        super().__init__(env, observations=True, actions=False, potential=potential, gamma=gamma)
        self._batch = ShapeVectorWithPotential(self._one, potential, gamma=gamma)
