"""RLlib (new API stack): a callback that adds a shaped intrinsic reward to episodes as they are sampled.

    config.callbacks(partial(ShapeReward, intrinsic=novelty, transform=payback.grm(0.99, delay=10)))

It works on the environment runners, step by step: a learner connector would see every chunk of an episode as a whole
one, and settle debts that are not due. Loans live as long as their episode, over all the chunks that it is cut into.
Evaluation is not shaped. `episode_return_mean` is the shaped return; the extrinsic one is reported as
`extrinsic_return_mean` beside it. Each step's info has extrinsic, intrinsic, shaped, owed and the original truncated.

With several environment runners F̄ is merged after each training iteration and handed back to all of them. It is part
of the algorithm's state and so of its checkpoints; open episodes, and with them their loans, are not.
"""

# RLlib's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportMissingTypeArgument=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np

from payback.core.center import CenterState, center, merge_centers
from payback.core.transform import Match, RewardTransform
from payback.integrations.host import host
from payback.integrations.ledger import Ledger, ShapingWarning, ask, read_intrinsic

with host("RLlib", "pip install 'payback[rllib]'"):
    from ray.rllib.callbacks.callbacks import RLlibCallback
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

Source = Callable[[Any, Any, Any, dict[str, Any]], Any] | str
"""(obs, action, next_obs, info) → (1,) on batches of one, or the name of an info key.

The callable gets copies of the arrays, and is told that an episode is over by `reset(where)`, a mask of one, if it has
that method. Where a runner has several environments each then gets a copy of the callable, because a batch of one
cannot say whose episode it belongs to.
"""

METRIC = "extrinsic_return_mean"
COMPONENT = "shaping"
"""The name of F̄ in an algorithm's state."""


class ShapeReward(RLlibCallback):
    """Add the shaped intrinsic reward to every sampled step.

    `on_truncation="settle"` collects the debt at a time limit and marks the episode as terminated; "carry" leaves the
    debt to the bootstrapped value. Another γ than the algorithm's is refused when it is built; `strict=False` warns.
    `observe_debt` is refused: RLlib makes the next observation ready for the module before it calls back.
    """

    def __init__(
        self,
        intrinsic: Source,
        transform: RewardTransform,
        on_truncation: str = "settle",
        strict: bool = True,
        observe_debt: bool = False,
    ):
        super().__init__()
        if observe_debt:
            raise ValueError(
                "observe_debt is refused for RLlib, where a step's observation goes to the module before callbacks "
                "hear of the step: the debt would come one step late; shape inside the environment instead, with "
                "payback.integrations.gymnasium.ShapeReward(..., observe_debt=True)"
            )
        self.intrinsic, self.transform, self.on_truncation, self.strict = intrinsic, transform, on_truncation, strict
        self.ledger: Ledger | None = None
        self._bonuses = BonusPerEnvironment(intrinsic, 1)
        self._returns = np.zeros(0)
        self._common: list[CenterState] | None = None

    def on_algorithm_init(self, *, algorithm: Any, metrics_logger: Any = None, **kwargs: Any) -> None:
        """Compare the algorithm's γ with the loans', and make F̄ a part of its checkpoints."""
        learner = algorithm.config.gamma
        loans = self.transform.gamma if isinstance(self.transform, Match) else learner
        if learner != loans:
            problem = (
                f"the learner discounts with gamma {learner}, the loans are repaid with gamma {loans}: "
                "they would not cancel; give both the same"
            )
            if self.strict:
                raise ValueError(f"{problem}; to go on all the same use ShapeReward(..., strict=False)")
            warnings.warn(problem, ShapingWarning, stacklevel=2)
        _save_with(algorithm, self)

    def on_episode_start(self, *, episode: Any, env_runner: Any = None, env_index: int, **kwargs: Any) -> None:
        """Open the episode's ledger; what an episode that never ended still owed is dropped and counted."""
        if not env_runner.config.in_evaluation:
            self._open(env_runner).reset(self._only(env_index))
            self._returns[env_index] = 0.0

    def on_episode_step(self, *, episode: Any, env_runner: Any = None, env_index: int, **kwargs: Any) -> None:
        """Replace the reward of the step just sampled by r_t + F'_t."""
        if env_runner.config.in_evaluation:
            return
        if not isinstance(episode, SingleAgentEpisode):
            raise TypeError("ShapeReward shapes single-agent episodes; multi-agent ones are not supported")
        ledger, only = self._open(env_runner), self._only(env_index)
        info, extrinsic = episode.get_infos(-1), float(episode.get_rewards(-1))
        truncated = bool(episode.is_truncated)
        ends = np.where(only, episode.is_terminated, False), np.where(only, truncated, False)
        try:
            F = self._read(episode, info, env_index)
            shaped = float(ledger.step(np.where(only, F, 0.0), *ends, only)[env_index])
        except Exception:
            ledger.abandon(only if episode.is_done else None)
            raise
        record = {"extrinsic": extrinsic, "intrinsic": F, "shaped": shaped, "truncated": truncated}
        info.update(record, owed=float(ledger.ending[env_index]))
        episode.set_rewards(new_data=extrinsic + shaped, at_indices=-1)
        if episode.is_done:
            terminated, truncated = (flags[env_index] for flags in ledger.ends(*ends))
            episode.is_terminated, episode.is_truncated = bool(terminated), bool(truncated)
        self._returns[env_index] += extrinsic

    def on_episode_end(
        self, *, env_runner: Any = None, metrics_logger: Any = None, env_index: int, **kwargs: Any
    ) -> None:
        """Report the extrinsic return."""
        if not env_runner.config.in_evaluation:
            config = env_runner.config
            # The window that RLlib gives its own returns: each runner keeps its share of the last episodes.
            window = max(1, math.ceil(config.metrics_num_episodes_for_smoothing / (config.num_env_runners or 1)))
            metrics_logger.log_value(METRIC, self._returns[env_index], window=window)

    def on_train_result(self, *, algorithm: Any, result: dict, **kwargs: Any) -> None:
        """Merge F̄ over the environment runners and hand it back to them."""
        self.merge(algorithm.env_runner_group)

    def merge(self, group: Any) -> list[CenterState]:
        """Return F̄ over all environment runners, after handing it to them where there are several."""
        later = [centers for centers in group.foreach_env_runner(_centers, local_env_runner=False) if centers]
        if not later:
            return _centers(group.local_env_runner) or self._common or []
        if self._common is None:
            self._common = centers_of(self.transform.init(np.zeros(1)))
        self._common = [merge_centers(common, *states) for common, *states in zip(self._common, *later, strict=True)]
        self.hand_out(group, self._common)
        return self._common

    def hand_out(self, group: Any, centers: list[CenterState]) -> None:
        """Give F̄ to all environment runners, also to those that have not begun to sample."""
        self._common = centers
        group.foreach_env_runner(lambda runner: _set_centers(runner, centers))

    def _open(self, env_runner: Any) -> Ledger:
        if self.ledger is None:
            B = env_runner.num_envs
            self._bonuses = BonusPerEnvironment(self.intrinsic, B)
            self.ledger = env_runner.shaping = Ledger(self.transform, B, self.on_truncation, self._bonuses)
            self.ledger.confirmed = True  # by on_algorithm_init
            self.ledger.state = with_centers(self.ledger.state, getattr(env_runner, "shaping_means", []))
            self._returns = np.zeros(env_runner.num_envs)
        return self.ledger

    def _only(self, env_index: int) -> np.ndarray:
        return np.arange(len(self._returns)) == env_index

    def _read(self, episode: Any, info: dict[str, Any], env_index: int) -> float:
        step = episode.t - 1
        if isinstance(self.intrinsic, str):
            if self.intrinsic not in info:
                raise KeyError(
                    f"info has no {self.intrinsic!r} for environment {env_index} at step {step} of its episode"
                )
            values: Any = [info[self.intrinsic]]
        else:
            before, after = episode.get_observations(-2), episode.get_observations(-1)
            batch = [_batch(x) for x in (before, episode.get_actions(-1), after)]
            values = ask(self._bonuses.of(env_index), 1, step, *batch, dict(info))
        return float(read_intrinsic(values, 1, step)[0])


class BonusPerEnvironment:
    """The bonus of each environment of a runner, called on batches of one.

    A bonus that has `reset` remembers the episode under way, so each environment gets a copy; others are shared.
    """

    def __init__(self, bonus: Source, num_envs: int):
        self._episodic = callable(getattr(bonus, "reset", None))
        self._bonuses: list[Any] = [bonus] * num_envs
        if self._episodic:
            self._bonuses[1:] = [deepcopy(bonus) for _ in range(num_envs - 1)]

    def of(self, env_index: int) -> Any:
        """Return the bonus of one environment."""
        return self._bonuses[env_index]

    def reset(self, where: np.ndarray) -> None:
        """Tell the bonuses of the environments in the (B,) mask that their episodes are over."""
        if self._episodic:
            for k in np.flatnonzero(where):
                self._bonuses[k].reset(np.ones(1, dtype=bool))


def centers_of(state: Any) -> list[CenterState]:
    """Return every F̄ in a state, in order."""
    if isinstance(state, CenterState):
        return [state]
    return [found for part in state for found in centers_of(part)] if type(state) is tuple else []


def with_centers(state: Any, centers: list[CenterState]) -> Any:
    """Return the state with its F̄ replaced, in order, as far as there are new ones."""
    left = iter(centers)

    def replace(part: Any) -> Any:
        if isinstance(part, CenterState):
            return next(left, part)
        return tuple(replace(x) for x in part) if type(part) is tuple else part

    return replace(state)


def _centers(env_runner: Any) -> list[CenterState]:
    ledger = getattr(env_runner, "shaping", None)
    return [] if ledger is None else centers_of(ledger.state)


def _set_centers(env_runner: Any, centers: list[CenterState]) -> None:
    env_runner.shaping_means = centers
    ledger = getattr(env_runner, "shaping", None)
    if ledger is not None:
        ledger.state = with_centers(ledger.state, centers)


def _center(row: list[float]) -> CenterState:
    """One F̄ from the numbers of its fields: counts are integers, the rest float64."""
    fresh = centers_of(center().init(np.zeros(1)))[0]
    return CenterState(*(like.dtype.type(x) for like, x in zip(fresh, row, strict=True)))


def _save_with(algorithm: Any, shaping: ShapeReward) -> None:
    """Make F̄ a part of the algorithm's state, which is what its checkpoints hold; callbacks have no state of theirs."""
    group, get_state, set_state = algorithm.env_runner_group, algorithm.get_state, algorithm.set_state

    def get(*args: Any, **kwargs: Any) -> dict[str, Any]:
        means = [[x.item() for x in mean] for mean in shaping.merge(group)]
        return {**get_state(*args, **kwargs), COMPONENT: means}

    def put(state: dict[str, Any]) -> None:
        set_state(state)
        if COMPONENT in state:
            shaping.hand_out(group, [_center(row) for row in state[COMPONENT]])

    algorithm.get_state, algorithm.set_state = get, put


def _batch(x: Any) -> Any:
    """One environment's observation or action as a batch of one: a copy, because the episode keeps the original."""
    if isinstance(x, dict):
        return {key: _batch(value) for key, value in x.items()}
    return np.array(x)[None]
