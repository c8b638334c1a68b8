"""RLlib (new API stack): a callback that adds a shaped intrinsic reward to episodes as they are sampled.

    config.callbacks(partial(ShapeReward, bonus=novelty, transform=payback.grm(0.99, delay=30)))

It works on the environment runners, because a learner connector sees chunks of episodes and would settle debts at their
borders. Evaluation is not shaped. `episode_return_mean` is the shaped return, `extrinsic_return_mean` the task's. Each
step's info has extrinsic, intrinsic, shaped, owed and the original truncated. The runners' F̄ are merged after each
training iteration; checkpoints of the algorithm hold F̄, but no open debts.
"""

# pyright: standard
from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from payback import messages
from payback.bonuses.observations import map_parts
from payback.core.center import CenterState, merge_centers
from payback.core.transform import Match, RewardTransform
from payback.integrations.host import BonusPerEnvironment, Shaping, ask, bind_bonus, host, read_end, read_intrinsic
from payback.ledger import LedgerState, OnTruncation, make
from payback.monitor import Monitor, changed

with host("RLlib", "pip install 'payback[rllib]'"):
    from ray.rllib.callbacks.callbacks import RLlibCallback
    from ray.rllib.env.single_agent_episode import SingleAgentEpisode

__all__ = ["ShapeReward", "Source", "centers_of"]

Source = Callable[[Any, Any, Any, dict[str, Any]], Any] | str
"""(obs, action, next_obs, info) → (1,) on batches of one, or the name of an info key.

The callable gets copies of the arrays. If it has a method `reset(where)`, that is called with a mask of one when an
episode ends, and each environment of a runner gets a copy of the callable, unless its attribute `episodic` is False.
"""

INSIDE = "Shape inside the environment instead, with payback.integrations.gymnasium.ShapeReward(..., observe_debt=True)"
COMPONENT = "shaping"  # the name of F̄ in an algorithm's state


class ShapeReward(Shaping, RLlibCallback):
    """Add the shaped intrinsic reward to every sampled step.

    The parameters are those of Gymnasium's `ShapeVectorReward`. The algorithm's gamma must equal the transform's;
    `strict=False` only warns. Each runner writes to a folder inside `record`. `observe_debt` is refused: RLlib makes
    the next observation ready for the module before it calls back.
    """

    def __init__(
        self,
        bonus: Source,
        transform: RewardTransform,
        *,
        on_truncation: OnTruncation | None = None,
        observe_debt: bool = False,
        event: Source | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
        strict: bool = True,
    ):
        super().__init__()
        messages.refuse_unknown(transform, on_truncation)
        messages.is_confirmed(transform, learner_gamma)
        messages.warn_unseen_debt(transform, on_truncation, INSIDE)
        if observe_debt:
            raise ValueError(f"observe_debt is refused for RLlib, where the debt would come one step late. {INSIDE}")
        self.bonus = self._bonus = bonus
        self.transform, self._event, self.strict = transform, event, strict
        self._make, self._record, self._warned = partial(make, transform, on_truncation, trusted=True), record, False
        self._bonuses = BonusPerEnvironment(bonus, 1)
        self._returns = np.zeros(0)
        self._common: list[CenterState] | None = None

    def on_algorithm_init(self, *, algorithm: Any, metrics_logger: Any = None, **kwargs: Any) -> None:
        """Compare the algorithm's γ with the transform's, and make F̄ a part of its checkpoints."""
        learner = algorithm.config.gamma
        if isinstance(self.transform, Match) and learner != self.transform.gamma:
            problem = messages.other_gamma(learner, self.transform.gamma)
            if self.strict:
                raise ValueError(f"{problem}; to go on all the same use ShapeReward(..., strict=False)")
            messages.warn(problem)
        if getattr(algorithm.config, "replay_buffer_config", None) is not None and isinstance(self.transform, Match):
            messages.warn_blind_replay()
        # Callbacks have no state of their own, which checkpoints would hold.
        group, get_state, set_state = algorithm.env_runner_group, algorithm.get_state, algorithm.set_state

        def get(*args: Any, **kwargs: Any) -> dict[str, Any]:
            means = [[x.item() for x in mean] for mean in self.merge(group)]
            return {**get_state(*args, **kwargs), COMPONENT: means}

        def put(state: dict[str, Any]) -> None:
            set_state(state)
            if COMPONENT in state:
                self.hand_out(group, [CenterState(*map(np.array, row)) for row in state[COMPONENT]])

        algorithm.get_state, algorithm.set_state = get, put

    def on_episode_start(self, *, episode: Any, env_runner: Any = None, env_index: int, **kwargs: Any) -> None:
        """Begin the episode's debt at 0; what an episode that never ended still owed is dropped and counted."""
        if not env_runner.config.in_evaluation:
            self._open(env_runner)
            self.shaping_state = self.monitor.reset(self.shaping_state, self._only(env_index))
            self._returns[env_index] = 0.0

    def on_episode_step(self, *, episode: Any, env_runner: Any = None, env_index: int, **kwargs: Any) -> None:
        """Replace the reward of the step just sampled by r_t + F'_t."""
        if env_runner.config.in_evaluation:
            return
        if not isinstance(episode, SingleAgentEpisode):
            raise TypeError("ShapeReward shapes single-agent episodes; multi-agent ones are not supported")
        self._open(env_runner)
        extrinsic, truncated, only = float(episode.get_rewards(-1)), bool(episode.is_truncated), self._only(env_index)
        terminated = read_end("terminated", [episode.is_terminated], 1)
        F, step = self._pay((episode, env_index), only & terminated, only & truncated, only)
        intrinsic, shaped, owed = (float(column[env_index]) for column in (F, step.shaped, step.owed))
        record = {"extrinsic": extrinsic, "intrinsic": intrinsic, "shaped": shaped, "owed": owed}
        episode.get_infos(-1).update(record, truncated=truncated)
        episode.set_rewards(new_data=extrinsic + shaped, at_indices=-1)
        if episode.is_done:
            episode.is_terminated = bool(step.terminated[env_index])
            episode.is_truncated = bool(step.truncated[env_index])
        self._returns[env_index] += extrinsic

    def on_episode_end(
        self, *, env_runner: Any = None, metrics_logger: Any = None, env_index: int, **kwargs: Any
    ) -> None:
        """Report the extrinsic return."""
        if not env_runner.config.in_evaluation:
            config = env_runner.config
            # The window that RLlib gives its own returns: each runner keeps its share of the last episodes.
            window = max(1, math.ceil(config.metrics_num_episodes_for_smoothing / (config.num_env_runners or 1)))
            metrics_logger.log_value("extrinsic_return_mean", self._returns[env_index], window=window)

    def on_sample_end(self, *, env_runner: Any = None, samples: Any, **kwargs: Any) -> None:
        """Compare the rewards that go to the learner with what was paid; warn once where they differ."""
        for chunk in () if self._warned or env_runner.config.in_evaluation else samples:
            rewards = np.asarray(chunk.get_rewards(), dtype=np.float64)
            infos = chunk.get_infos(slice(-len(rewards), None)) if len(rewards) else []
            if not all("shaped" in info for info in infos):
                continue
            extrinsic, shaped = (np.array([info[key] for info in infos]) for key in ("extrinsic", "shaped"))
            k = changed(rewards, extrinsic, shaped)
            if k is not None and not self._warned:
                self._warned = True
                found = f"the shaping paid {extrinsic[k] + shaped[k]:.6g}, but {rewards[k]:.6g} goes to the learner"
                why = "because another callback or a connector changes rewards; change them before ShapeReward"
                messages.warn(f"{found}, {why}")

    def on_train_result(self, *, algorithm: Any, result: dict, **kwargs: Any) -> None:
        """Merge F̄ over the environment runners and hand it back to them."""
        self.merge(algorithm.env_runner_group)

    def merge(self, group: Any) -> list[CenterState]:
        """Return F̄ over all environment runners, after handing it to them where there are several."""
        later = [centers for centers in group.foreach_env_runner(_centers_in, local_env_runner=False) if centers]
        if not later:
            return _centers_in(group.local_env_runner) or self._common or []
        if self._common is None:
            self._common = centers_of(self.transform.init(np.zeros(1)))
        self._common = [merge_centers(common, *states) for common, *states in zip(self._common, *later, strict=True)]
        self.hand_out(group, self._common)
        return self._common

    def hand_out(self, group: Any, centers: list[CenterState]) -> None:
        """Give F̄ to all environment runners, also to those that have not begun to sample."""
        self._common = centers
        group.foreach_env_runner(lambda runner: _set_centers(runner, centers))

    def _open(self, env_runner: Any) -> None:
        """Make the monitor of the runner's environments with their first episode."""
        if "monitor" not in vars(self):
            B, worker, ledger = env_runner.num_envs, env_runner.worker_index or 0, self._make()
            spaces = (getattr(env_runner.env, f"single_{of}_space", None) for of in ("observation", "action"))
            bind_bonus(self._bonus, *spaces)
            self._bonuses = BonusPerEnvironment(self._bonus, B)
            self.monitor = Monitor(ledger, bonus=self._bonuses, record=self._record, worker=worker, pays=np.float32)
            self.monitor.confirmed = True  # by on_algorithm_init
            if self.monitor.log is not None:
                # RLlib stops a runner by closing its environment, and calls back nobody.
                env_runner.env.close = _in_turn(self.monitor.log.flush, env_runner.env.close)
            self.shaping_state = _with_centers(ledger.init(np.zeros(B)), getattr(env_runner, "shaping_means", []))
            env_runner.shaping = self
            self._returns = np.zeros(B)

    def _only(self, env_index: int) -> np.ndarray:
        return np.arange(len(self._returns)) == env_index

    def _read(self, source: Source, row: tuple[Any, int]) -> np.ndarray:
        """Return the bonus, or the event, of the step just sampled; 0 in the other environments."""
        episode, env_index = row
        step, info = episode.t - 1, episode.get_infos(-1)
        if not isinstance(source, str):
            function = self._bonuses.of(env_index) if source is self._bonus else source
            parts = episode.get_observations(-2), episode.get_actions(-1), episode.get_observations(-1)
            # Batches of one: copies, because the episode keeps the originals.
            batch = [map_parts(lambda x: np.array(x)[None], part) for part in parts]
            values: Any = ask(function, 1, step, *batch, dict(info))
        elif source in info:
            values = [info[source]]
        else:
            raise KeyError(f"info has no {source!r} for environment {env_index} at step {step} of its episode")
        return np.where(self._only(env_index), read_intrinsic(values, 1, step), 0.0)


def _in_turn(first: Callable[[], None], then: Callable[..., Any]) -> Callable[..., Any]:
    def both(*args: Any, **kwargs: Any) -> Any:
        first()
        return then(*args, **kwargs)

    return both


def centers_of(state: Any) -> list[CenterState]:
    """Return every F̄ in a state, in order."""
    if isinstance(state, CenterState):
        return [state]
    return [found for part in state for found in centers_of(part)] if isinstance(state, tuple) else []


def _with_centers(state: LedgerState, centers: list[CenterState]) -> LedgerState:
    """Return the ledger's state with its F̄ replaced, in order, as far as there are new ones."""
    left = iter(centers)

    def replace(part: Any) -> Any:
        if isinstance(part, CenterState):
            return next(left, part)
        return tuple(map(replace, part)) if type(part) is tuple else part

    return state._replace(loans=replace(state.loans))


def _centers_in(env_runner: Any) -> list[CenterState]:
    """Return every F̄ of an environment runner; none before it has sampled."""
    shaping = getattr(env_runner, "shaping", None)
    return [] if shaping is None else centers_of(shaping.shaping_state.loans)


def _set_centers(env_runner: Any, centers: list[CenterState]) -> None:
    env_runner.shaping_means = centers
    shaping = getattr(env_runner, "shaping", None)
    if shaping is not None:
        shaping.shaping_state = _with_centers(shaping.shaping_state, centers)
