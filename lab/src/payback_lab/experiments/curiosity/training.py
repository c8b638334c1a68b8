"""Train one run: Stable-Baselines3's PPO on MiniGrid DoorKey, with a bonus of the library under a scheme.

Imports Torch, Stable-Baselines3 and MiniGrid, which only this experiment needs (`pip install 'payback-lab[sb3]'`).
"""

import warnings
from collections import deque
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import minigrid  # noqa: F401  registers the environments
import numpy as np
import torch
from minigrid.wrappers import ImgObsWrapper
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import payback
from payback.bonuses import Count, EpisodicCount, Recency, SimHash
from payback.bonuses.torch import E3B, ICM, RIDE, RND, Disagreement, NovelD
from payback.integrations.sb3 import CheckShaping, ShapeVectorReward
from payback_lab.experiments.curiosity.comparison import WINDOW, single_figures
from payback_lab.experiments.curiosity.experiment import SB3PPO, CuriosityConfig
from payback_lab.methods import transform_of
from payback_lab.runs import Result, Run

EVALUATION = 100
"""Episodes of the final evaluation."""
WATCHING = 1_000_003
"""Seed of the layouts of the evaluation, the same for every run and no run's own."""


def train(run: Run, progress: Callable[[float], None]) -> Result:
    """Train a run to its end and evaluate the agent, acting as in training, on layouts that all runs share."""
    config: CuriosityConfig = run.config
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "there is no match in this transform")  # none and im repay nothing
    env = make_vec_env(lambda: grid(config.size), n_envs=config.environments, seed=run.seed)
    bonus, transform = paid(run, env.action_space)
    shaping = ShapeVectorReward(env, bonus, transform, on_truncation="settle", learner_gamma=config.gamma)
    model, curve = learner(config, shaping, run.seed), Curve(config.total_steps, progress)
    model.learn(config.total_steps, callback=[CheckShaping(), curve])
    watched = make_vec_env(lambda: grid(config.size), n_envs=config.environments, seed=WATCHING)
    returns, lengths = evaluate_policy(
        model, watched, n_eval_episodes=EVALUATION, deterministic=False, return_episode_rewards=True
    )
    columns = curve.columns()
    final = {
        "sampled_solved": float(np.mean(np.asarray(returns) > 0)),
        "sampled_length": float(np.mean(lengths)),
        "sampled_return": float(np.mean(returns)),
    }
    return Result(columns, {}, {**single_figures(columns), **final})


def grid(size: int) -> gym.Env:
    """Return DoorKey with the agent's view of 7×7 cells, three small numbers each, as one vector."""
    return gym.wrappers.FlattenObservation(ImgObsWrapper(gym.make(f"MiniGrid-DoorKey-{size}x{size}-v0")))


def learner(config: SB3PPO, env: Any, seed: int, **more: Any) -> PPO:
    """Return Stable-Baselines3's PPO with its MLP policy, two layers of 64, and the config's choices."""
    return PPO(
        "MlpPolicy",
        env,
        n_steps=config.rollout,
        batch_size=config.batch_size,
        n_epochs=config.epochs,
        learning_rate=config.learning_rate,
        ent_coef=config.entropy_weight,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        seed=seed,
        device="cpu",
        **more,
    )


def paid(run: Run, actions: gym.Space) -> tuple[Any, payback.RewardTransform]:
    """Return the bonus and the transform that pays it; no bonus is one of zeros, so that all else is the same."""
    transform = transform_of(run.scheme, run.config.gamma)
    if transform is None:
        return nothing, payback.scale(1)
    return bonus_of(run.config.bonus, actions, run.seed), transform


def nothing(obs: Any, action: Any, next_obs: Any, info: Any) -> np.ndarray:
    """Pay nothing."""
    return np.zeros(len(next_obs))


def bonus_of(name: str, actions: gym.Space, seed: int) -> Any:
    """Return a new bonus with the library's defaults."""
    makers: dict[str, Callable[[], Any]] = {
        "rnd": lambda: RND(seed=seed),
        "episodic-count": EpisodicCount,
        "count": Count,
        "simhash": lambda: SimHash(seed=seed),
        "icm": lambda: ICM(actions, seed=seed),
        "ride": lambda: RIDE(actions, seed=seed),
        "noveld": lambda: NovelD(seed=seed),
        "e3b": lambda: E3B(actions, seed=seed),
        "disagreement": lambda: Disagreement(actions, seed=seed),
        "recency": Recency,
    }
    return makers[name]()


class Curve(BaseCallback):
    """Record, once per rollout, the mean extrinsic return and length and the goals of the last 100 episodes."""

    def __init__(self, total: int, progress: Callable[[float], None]):
        super().__init__()
        self._total, self._progress = total, progress
        self._late: deque[dict[str, float]] = deque(maxlen=WINDOW)
        self._points: list[tuple[float, ...]] = []

    def _on_training_start(self) -> None:
        self._progress(0.0)

    def _on_step(self) -> bool:
        self._late.extend(info["episode"] for info in self.locals["infos"] if "episode" in info)
        return True

    def _on_rollout_end(self) -> None:
        returns, lengths = (np.array([episode[key] for episode in self._late], dtype=float) for key in ("r", "l"))
        full = len(self._late) == WINDOW
        means = (returns.mean(), lengths.mean(), (returns > 0).mean()) if full else (np.nan, np.nan, np.nan)
        self._points.append((self.num_timesteps, *(float(mean) for mean in means)))
        self._progress(min(1.0, self.num_timesteps / self._total))

    def columns(self) -> dict[str, np.ndarray]:
        """Return the curve; NaN before there are 100 episodes."""
        steps, *rest = zip(*self._points, strict=True)
        named = zip(("return", "length", "solved"), rest, strict=True)
        return {"steps": np.array(steps, np.int32), **{name: np.array(part, np.float32) for name, part in named}}
