"""The advantage-side form: `CollectBonus` pays the task's reward and keeps F, `BonusAdvantage` adds A^I to a rollout.

    env = CollectBonus(make_vec_env("CartPole-v1", 8), SimHash(), payback.grm_adv(0.99, delay=30, lam=0.95))
    PPO("MlpPolicy", env, gamma=0.99).learn(100_000, callback=CheckShaping())

The callback adds A^I to the rollout buffer itself, so that any buffer will do, and a saved model loads without payback.
"""

# pyright: standard
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnv, VecEnvWrapper, VecNormalize

from payback.advantage import AdvantageEstimator
from payback.core.state import running_mean, shared_of
from payback.integrations.gymnasium import ShapeReward
from payback.integrations.host import bind_bonus
from payback.integrations.sb3.saved_model import layers_of, with_kept
from payback.integrations.sb3.shape_vector_reward import Paying, ShapeVectorReward, Source, read_source
from payback.integrations.wiring import names_of
from payback.ledger import Step
from payback.messages import warn

KEPT = "bonus_mean"  # the model's attribute, lists of numbers, that SB3 saves and loads with it
PROGRESS = "bonus_progress"  # the same, the largest share of training that `weight` was asked for


class CollectBonus(Paying):
    """Pay the task's reward alone, and keep the bonus for the advantages, to which CheckShaping adds it.

    `estimator`: `payback.grm_adv(…)`; it preserves no optimal policy while the bonus has a weight. `weight`: w as a
    function of the share of training that is done, such as `payback.taken_back`; None is 1 throughout. The share never
    falls in a `learn` with `reset_num_timesteps=False`, so a bonus that was taken back stays at 0. SB3 has no second
    critic, so A^I ends at the rollout's border. Each step's info has extrinsic and intrinsic; shaped is 0.
    """

    def __init__(
        self,
        env: VecEnv,
        bonus: Source,
        estimator: AdvantageEstimator,
        *,
        weight: Callable[[float], float] | None = None,
    ):
        if not isinstance(estimator, AdvantageEstimator):
            raise TypeError(f"CollectBonus needs an estimator such as payback.grm_adv, got {estimator!r}")
        if weight is not None and not callable(weight):
            raise TypeError(f"weight must be a function such as payback.taken_back, got {weight!r}; α scales the bonus")
        super().__init__(env)
        bind_bonus(bonus, env.observation_space, env.action_space)
        self.estimator, self.weight = estimator, weight
        self.bonus_state: Any = estimator.init(np.zeros(env.num_envs))  # F̄
        self.steps = 0
        self.rows: list[tuple[np.ndarray, ...]] = []  # F, dones, truncated and the task's reward of each step
        self.collects = self._warned = False  # whether CheckShaping waits for the rows of a rollout
        self._bonus, self._clear = bonus, getattr(bonus, "reset", None)

    def _begin(self, obs: Any) -> None:
        super()._begin(obs)
        if callable(self._clear):
            self._clear(np.ones(self.num_envs, dtype=bool))

    def _pay(self, row: tuple[Any, ...], terminated: Any, truncated: Any) -> tuple[np.ndarray, Step]:
        before, reward, infos, ended = row
        F = read_source(self._bonus, self.steps, (before, self._actions, self._obs), infos, ended)
        none, nothing = np.zeros(self.num_envs, dtype=bool), np.zeros(self.num_envs)
        done, cut = (terminated | truncated, truncated) if ended else (none, none)
        if callable(self._clear) and ended:
            self._clear(done)
        if self.collects:
            self.rows.append((F.copy(), done, cut, reward.copy()))
        elif not (self.rows or self._warned):
            self._warned = True
            warn("nobody adds the collected bonus to the advantages; train with callback=CheckShaping()")
        self.steps += 1
        return F, Step(nothing, nothing, None, None, None)


class BonusAdvantage:
    """Add w·A^I to each rollout's advantages: what CheckShaping does for an environment in `CollectBonus`."""

    def __init__(self, model: Any, wrapper: CollectBonus, layers: list[VecEnvWrapper]):
        self._model, self._wrapper, self._weight, place = model, wrapper, 1.0, layers.index(wrapper)
        self._outside, self._others = layers[:place], layers[:place] + layers[place + 1 :]

    def problems(self) -> list[str]:
        """Return what of the model and its environment's wrappers spoils the estimate."""
        found = self.other_gamma()
        if not hasattr(self._model, "rollout_buffer"):
            found.append(f"{type(self._model).__name__} has no rollout buffer; use ShapeVectorReward and payback.grm")
        twice = [type(layer).__name__ for layer in self._others if isinstance(layer, (ShapeVectorReward, CollectBonus))]
        env = self._wrapper.unwrapped  # not every VecEnv knows what is wrapped
        twice += ["ShapeReward"] * (type(env) in (DummyVecEnv, SubprocVecEnv) and any(env.env_is_wrapped(ShapeReward)))
        found += [f"{name} and CollectBonus in one stack pay a bonus twice; use one of them" for name in twice[:1]]
        if any(isinstance(layer, VecNormalize) and layer.norm_reward for layer in self._outside):
            found.append("VecNormalize outside CollectBonus rescales rewards; put it inside, or use norm_reward=False")
        return found

    def other_gamma(self) -> list[str]:
        """Return what is wrong with the model's γ as it is now, which may be changed while it trains."""
        model, own = getattr(self._model, "gamma", None), self._wrapper.estimator.gamma
        words = f"the learner discounts with gamma {model}, grm_adv with gamma {own}; give both the same"
        return [] if model == own else [words]

    def restore(self) -> None:
        """Give F̄ of a loaded model to a wrapper that has not begun, and forget an interrupted rollout."""
        self._wrapper.collects = False
        if not self._wrapper.steps:
            kept = getattr(self._model, KEPT, None) or []
            self._wrapper.bonus_state = with_kept(self._model, self._wrapper.bonus_state, kept)

    def begin(self) -> None:
        """Begin a rollout: what an interrupted one collected is forgotten."""
        if self._wrapper.collects and not self._wrapper.rows:
            raise ValueError("two CheckShaping callbacks would add the bonus twice; use one of them")
        self._wrapper.collects, self._wrapper.rows = True, []
        steps, total = self._model.num_timesteps, max(1, getattr(self._model, "_total_timesteps", 1))
        progress = max(min(1.0, steps / total), getattr(self._model, PROGRESS, 0.0) if steps else 0.0)
        setattr(self._model, PROGRESS, progress)
        self._weight = 1.0 if self._wrapper.weight is None else self._wrapper.weight(progress)

    def changed(self, seen: dict[str, Any]) -> str | None:
        """Return what a wrapper outside changed in the last step, of which the learner's callbacks see `seen`."""
        _, done, cut, reward = self._wrapper.rows[-1]
        limits = [bool(info.get("TimeLimit.truncated", False)) for info in seen["infos"]]
        columns = {"the reward": (seen["rewards"], reward), "`done`": (seen["dones"], done)}
        columns["TimeLimit.truncated"] = np.array(limits) & done, cut
        for name, (given, own) in columns.items():
            wrong = np.flatnonzero(given != own)
            if len(wrong):
                culprit = f"a wrapper outside CollectBonus ({names_of(self._outside, 'the host')})"
                return f"{culprit} changes {name} of environment {wrong[0]}; put it inside"
        return None

    def add(self) -> dict[str, float]:
        """Add w·A^I to the advantages, which leaves the returns as they are; return figures for the logger."""
        wrapper = self._wrapper
        wrapper.collects = False
        if not hasattr(self._model, "rollout_buffer"):
            return {}
        F, dones, truncated, reward = (np.stack(column) for column in zip(*wrapper.rows, strict=True))
        buffer = self._model.rollout_buffer
        if F.shape != buffer.advantages.shape:
            found = f"CollectBonus collected {F.shape[0]} steps of {F.shape[1]} environments"
            raise RuntimeError(f"{found} for a rollout of {buffer.advantages.shape}; only the learner may step them")
        task = float(np.abs(buffer.advantages).mean())
        estimate = wrapper.estimator.estimate(wrapper.bonus_state, F, dones, truncated, weight=self._weight)
        wrapper.bonus_state = estimate.state
        added = estimate.advantage.astype(buffer.advantages.dtype)
        if self._weight:
            # Another array, because the returns may be a view of this one.
            buffer.advantages = buffer.advantages + added
        setattr(self._model, KEPT, [x.tolist() for x in shared_of(wrapper.bonus_state)])
        figures = {"extrinsic": float(reward.mean()), "intrinsic": float(F.mean()), "weight": self._weight}
        figures |= {"task_advantage": task, "bonus_advantage": float(np.abs(added).mean())}
        return figures if (mean := running_mean(wrapper.bonus_state)) is None else figures | {"mean": mean}


def bonus_advantage(model: Any, env: VecEnv | None) -> BonusAdvantage | None:
    """Return what adds to the model's advantages, None where no CollectBonus is among the environment's wrappers."""
    layers = list(layers_of(env))
    wrapper = next((layer for layer in layers if isinstance(layer, CollectBonus)), None)
    return None if wrapper is None else BonusAdvantage(model, wrapper, layers)
