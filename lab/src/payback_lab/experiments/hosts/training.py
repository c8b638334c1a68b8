"""Train one run of `hosts`: Stable-Baselines3's PPO with a bonus of the library, in its reward or in its advantages.

Imports Torch, Stable-Baselines3 and MiniGrid (`pip install 'payback-lab[sb3]'`).
"""

import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

import payback
from payback.advantage import AdvantageEstimator
from payback.bonuses import Count, EpisodicCount, Recency, SimHash, episodic
from payback.bonuses.torch import E3B, ICM, RIDE, RND, Disagreement, NovelD
from payback.integrations.sb3 import CheckShaping, CollectBonus, ShapeVectorReward
from payback_lab.environments.minigrid.sb3_form import make_sb3_vec
from payback_lab.experiments.arena.figures import mean_share
from payback_lab.experiments.curiosity.comparison import single_figures
from payback_lab.experiments.curiosity.training import WATCHING, Curve, learner, nothing
from payback_lab.experiments.hosts.experiment import HostsConfig
from payback_lab.experiments.hosts.setting import MOUNTAIN_CAR, form_of
from payback_lab.methods import AdvantageSide, transform_of
from payback_lab.runs import Result, Run, Scalar

EVALUATION = 1000
"""Episodes of the final evaluation."""
LOW, HIGH = np.array([-1.2, -0.07]), np.array([0.6, 0.07])
"""MountainCar's bounds of position and velocity."""
BINS = 20


def train(run: Run, progress: Callable[[float], None]) -> Result:
    """Train a run to its end and evaluate the agent, acting as in training, on layouts that all runs share."""
    config: HostsConfig = run.config
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "there is no match in this transform")  # none and im repay nothing
    env = paid(run, ended_by_limits(config))
    model = learner(config, env, run.seed, normalize_advantage=config.normalise)
    curve = GoalCurve(config.total_steps, progress)
    model.learn(config.total_steps, callback=[CheckShaping(), curve])
    columns = curve.columns()
    return Result(columns, {}, {**figures(columns, curve.first_goal), **watched(model, config)})


def figures(columns: dict[str, np.ndarray], first_goal: int | None) -> dict[str, Scalar]:
    """Sum a curve up; `first_goal_step` is the first step with a solved episode, None without one."""
    best = columns["solved"]
    return {
        **single_figures(columns),
        "first_goal_step": first_goal,
        "mean_training_solved": mean_share(columns["episodes"], columns["goals"]),
        "best_training_solved": None if np.isnan(best).all() else round(float(np.nanmax(best)), 6),
    }


def watched(model: Any, config: HostsConfig) -> dict[str, Scalar]:
    """Evaluate the agent; an episode that does not reach the goal counts with its time limit."""
    env = ended_by_limits(config)
    env.seed(WATCHING)
    returns, lengths = evaluate_policy(
        model, env, n_eval_episodes=EVALUATION, deterministic=False, return_episode_rewards=True
    )
    return {
        "sampled_solved": float(np.mean(np.asarray(returns) > 0)),
        "sampled_length": float(np.mean(lengths)),
        "sampled_return": float(np.mean(returns)),
    }


def ended_by_limits(config: HostsConfig) -> VecEnv:
    """Return the task's environments, in which a time limit ends an episode as the goal does."""
    if config.task == MOUNTAIN_CAR:
        env: VecEnv = make_vec_env(sparse_mountain_car, n_envs=config.environments)
    else:
        env = make_sb3_vec(config.task, config.environments, flat=True)
    return LimitIsEnd(env)


def sparse_mountain_car() -> gym.Env:
    """Return MountainCar with reward 1 at the flag and 0 before it."""
    return Sparse(gym.make("MountainCar-v0"))


class Sparse(gym.Wrapper):
    """Pay 1 where the task ends an episode, 0 elsewhere."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one action."""
        obs, _, terminated, truncated, info = self.env.step(action)
        return obs, float(terminated), terminated, truncated, info


class LimitIsEnd(VecEnvWrapper):
    """Take `TimeLimit.truncated` back, so that no method bootstraps at a time limit."""

    def reset(self) -> Any:
        """Reset all environments."""
        return self.venv.reset()

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Step all environments."""
        obs, reward, done, infos = self.venv.step_wait()
        for k in np.flatnonzero(done):
            infos[k]["TimeLimit.truncated"] = False
        return obs, reward, done, infos


def paid(run: Run, env: VecEnv) -> VecEnv:
    """Return the environments with the bonus; none is one of zeros, so that all else is the same."""
    config: HostsConfig = run.config
    form = form_of(run.scheme)
    if form is not None:
        weight = payback.taken_back if form.taken_back else None
        return CollectBonus(env, bonus_of(config, run.seed), estimator_of(form, config.gamma), weight=weight)
    transform = transform_of(run.scheme, config.gamma)
    if transform is None:
        return ShapeVectorReward(env, nothing, payback.scale(1), learner_gamma=config.gamma)
    return ShapeVectorReward(env, bonus_of(config, run.seed), transform, learner_gamma=config.gamma)


def estimator_of(form: AdvantageSide, gamma: float) -> AdvantageEstimator:
    """Return the library's estimator of an advantage-side form."""
    return payback.grm_adv(gamma, form.delay, form.lam, center=form.centred)


def bonus_of(config: HostsConfig, seed: int) -> Any:
    """Return a new bonus with the library's defaults but for α; visits of MountainCar are counted in bins."""
    alpha, key = config.alpha, car_bin if config.task == MOUNTAIN_CAR else None
    makers: dict[str, Callable[[], Any]] = {
        "episodic-count": lambda: EpisodicCount(alpha, key=key),
        "rnd-views": lambda: episodic(RND(alpha, seed=seed), key=key),
        "ride": lambda: RIDE(alpha=alpha, key=key, seed=seed),
        "noveld": lambda: NovelD(alpha, key=key, seed=seed),
        "e3b": lambda: E3B(alpha=alpha, seed=seed),
        "count": lambda: Count(alpha, key=key),
        "simhash": lambda: SimHash(alpha, seed=seed),
        "recency": lambda: Recency(alpha, key=key),
        "rnd": lambda: RND(alpha, seed=seed),
        "icm": lambda: ICM(alpha=alpha, seed=seed),
        "disagreement": lambda: Disagreement(alpha=alpha, seed=seed),
    }
    return makers[config.bonus]()


def car_bin(obs: np.ndarray) -> int:
    """Return the bin of MountainCar's position and velocity, of 20 × 20.

    >>> car_bin(np.array([-1.2, -0.07])), car_bin(np.array([0.6, 0.07]))
    (0, 399)
    """
    at = np.clip((np.asarray(obs) - LOW) / (HIGH - LOW) * BINS, 0, BINS - 1).astype(int)
    return int(at[0]) * BINS + int(at[1])


class GoalCurve(Curve):
    """Also count, for each rollout, the episodes that ended and those that reached the goal."""

    first_goal: int | None = None
    """The first step at which an episode reached the goal."""

    def _on_training_start(self) -> None:
        super()._on_training_start()
        self._counts: list[tuple[int, int]] = []
        self._ended = self._goals = 0

    def _on_step(self) -> bool:
        ended = [info["episode"]["r"] > 0 for info in self.locals["infos"] if "episode" in info]
        self._ended, self._goals = self._ended + len(ended), self._goals + sum(ended)
        if any(ended) and self.first_goal is None:
            self.first_goal = self.num_timesteps
        return super()._on_step()

    def _on_rollout_end(self) -> None:
        super()._on_rollout_end()
        self._counts.append((self._ended, self._goals))
        self._ended = self._goals = 0

    def columns(self) -> dict[str, np.ndarray]:
        """Return the curve; NaN before there are 100 episodes."""
        episodes, goals = np.array(self._counts, np.int32).T
        return super().columns() | {"episodes": episodes, "goals": goals}
