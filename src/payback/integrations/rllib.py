"""RLlib (new API stack): a callback that adds a shaped intrinsic reward to episodes as they are sampled.

    config.callbacks(partial(ShapeReward, intrinsic=novelty, transform=payback.grm(0.99, delay=30)))

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
from pathlib import Path
from typing import Any

import numpy as np

from payback.core.center import CenterState, merge_centers
from payback.core.transform import Match, RewardTransform
from payback.integrations.bonus_per_environment import BonusPerEnvironment
from payback.integrations.bonus_values import ask, read_end, read_intrinsic
from payback.integrations.host import host
from payback.integrations.ledger import Ledger, ShapingWarning
from payback.integrations.rllib_means import centers_in, centers_of, save_with, set_centers, with_centers
from payback.integrations.told import confirm_gamma, other_gamma
from payback.integrations.watch import ROUNDING

with host("RLlib", "pip install 'payback[rllib]'"):
    from ray.rllib.callbacks.callbacks import RLlibCallback
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

__all__ = ["ShapeReward", "Source", "centers_of"]

Source = Callable[[Any, Any, Any, dict[str, Any]], Any] | str
"""(obs, action, next_obs, info) → (1,) on batches of one, or the name of an info key.

The callable gets copies of the arrays, and is told that an episode is over by `reset(where)`, a mask of one, if it has
that method. Where a runner has several environments each then gets a copy of the callable, because a batch of one
cannot say whose episode it belongs to; a callable whose attribute `episodic` is False is shared by them all.
"""

METRIC = "extrinsic_return_mean"


class ShapeReward(RLlibCallback):
    """Add the shaped intrinsic reward to every sampled step.

    `on_truncation="settle"` collects the debt at a time limit and marks the episode as terminated; "carry" leaves the
    debt to the bootstrapped value. Another γ than the algorithm's is refused when it is built; `strict=False` warns.
    `record` names a folder for the log of all steps that `payback audit` reads; each runner writes to a folder inside.
    A sampled reward that is not the one that was paid is warned of, the first time. `observe_debt` is refused: RLlib
    makes the next observation ready for the module before it calls back.
    """

    def __init__(
        self,
        intrinsic: Source,
        transform: RewardTransform,
        on_truncation: str = "settle",
        strict: bool = True,
        observe_debt: bool = False,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
    ):
        super().__init__()
        confirm_gamma(transform, learner_gamma)
        if observe_debt:
            raise ValueError(
                "observe_debt is refused for RLlib, where a step's observation goes to the module before callbacks "
                "hear of the step: the debt would come one step late; shape inside the environment instead, with "
                "payback.integrations.gymnasium.ShapeReward(..., observe_debt=True)"
            )
        self.intrinsic, self.transform, self.on_truncation, self.strict = intrinsic, transform, on_truncation, strict
        self.record, self._said = record, False
        self.ledger: Ledger | None = None
        self._bonuses = BonusPerEnvironment(intrinsic, 1)
        self._returns = np.zeros(0)
        self._common: list[CenterState] | None = None

    def on_algorithm_init(self, *, algorithm: Any, metrics_logger: Any = None, **kwargs: Any) -> None:
        """Compare the algorithm's γ with the loans', and make F̄ a part of its checkpoints."""
        learner = algorithm.config.gamma
        if isinstance(self.transform, Match) and learner != self.transform.gamma:
            problem = other_gamma(learner, self.transform.gamma)
            if self.strict:
                raise ValueError(f"{problem}; to go on all the same use ShapeReward(..., strict=False)")
            warnings.warn(problem, ShapingWarning, stacklevel=2)
        save_with(algorithm, self)

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
        ended = read_end("terminated", [episode.is_terminated], 1)[0]
        ends = only & ended, only & truncated
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

    def on_sample_end(self, *, env_runner: Any = None, samples: Any, **kwargs: Any) -> None:
        """Compare the rewards that go to the learner with what was paid; warn once where they differ."""
        if env_runner.config.in_evaluation or self._said:
            return
        for chunk in samples:
            rewards = np.asarray(chunk.get_rewards(), dtype=np.float64)
            infos = chunk.get_infos(slice(-len(rewards), None)) if len(rewards) else []
            if not all("shaped" in info for info in infos):
                continue
            extrinsic, shaped = (np.array([info[key] for info in infos]) for key in ("extrinsic", "shaped"))
            paid, size = extrinsic + shaped, np.abs(extrinsic) + np.abs(shaped)
            wrong = np.flatnonzero(np.abs(rewards - paid) > ROUNDING * size + 1e-12)
            if len(wrong):
                self._said, k = True, wrong[0]
                warnings.warn(
                    f"the shaping paid {paid[k]:.6g}, but {rewards[k]:.6g} goes to the learner, because another "
                    "callback or a connector changes rewards after it: loans and repayments no longer cancel; change "
                    "rewards in the environment, or in a callback that comes before ShapeReward",
                    ShapingWarning,
                    stacklevel=2,
                )
                return

    def on_train_result(self, *, algorithm: Any, result: dict, **kwargs: Any) -> None:
        """Merge F̄ over the environment runners and hand it back to them."""
        self.merge(algorithm.env_runner_group)

    def merge(self, group: Any) -> list[CenterState]:
        """Return F̄ over all environment runners, after handing it to them where there are several."""
        later = [centers for centers in group.foreach_env_runner(centers_in, local_env_runner=False) if centers]
        if not later:
            return centers_in(group.local_env_runner) or self._common or []
        if self._common is None:
            self._common = centers_of(self.transform.init(np.zeros(1)))
        self._common = [merge_centers(common, *states) for common, *states in zip(self._common, *later, strict=True)]
        self.hand_out(group, self._common)
        return self._common

    def hand_out(self, group: Any, centers: list[CenterState]) -> None:
        """Give F̄ to all environment runners, also to those that have not begun to sample."""
        self._common = centers
        group.foreach_env_runner(lambda runner: set_centers(runner, centers))

    def _open(self, env_runner: Any) -> Ledger:
        if self.ledger is None:
            B = env_runner.num_envs
            self._bonuses = BonusPerEnvironment(self.intrinsic, B)
            worker = env_runner.worker_index or 0
            ledger = Ledger(self.transform, B, self.on_truncation, self._bonuses, record=self.record, worker=worker)
            ledger.confirmed = True  # by on_algorithm_init
            ledger.largest = float(np.finfo(np.float32).max)
            if ledger.log is not None:
                _before_closing(env_runner.env, ledger.log.flush)
            ledger.state = with_centers(ledger.state, getattr(env_runner, "shaping_means", []))
            self.ledger = env_runner.shaping = ledger
            self._returns = np.zeros(B)
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


def _batch(x: Any) -> Any:
    """One environment's observation or action as a batch of one: a copy, because the episode keeps the original."""
    if isinstance(x, dict):
        return {key: _batch(value) for key, value in x.items()}
    if isinstance(x, tuple):
        return tuple(_batch(value) for value in x)
    return np.array(x)[None]


def _before_closing(env: Any, action: Callable[[], None]) -> None:
    """Make `env.close` do `action` first: runners are stopped by closing their environment, callbacks are not told."""
    close = env.close

    def closing(*args: Any, **kwargs: Any) -> Any:
        action()
        return close(*args, **kwargs)

    env.close = closing
