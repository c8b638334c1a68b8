"""RLlib's PPO on the walk: its configuration with the shaping, and a log of what was sampled."""

import warnings
from collections import defaultdict
from copy import deepcopy
from functools import partial
from typing import ClassVar

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.callbacks.callbacks import RLlibCallback
    from ray.tune.registry import register_env

from payback.integrations.rllib import ShapeReward

GAMMA = 0.9


class Log(RLlibCallback):
    """Keeps a copy of all sampled chunks (the learner adds steps to its own); in this process only."""

    chunks: ClassVar = defaultdict(list)
    evaluated: ClassVar = []

    def on_sample_end(self, *, env_runner, samples, **kwargs):
        for chunk in deepcopy(samples):
            if env_runner.config.in_evaluation:
                self.evaluated.append(chunk)
            else:
                self.chunks[chunk.id_].append(chunk)


def configuration(walk):
    """Empty the log, and return the function that configures PPO on the walk, shaped."""
    Log.chunks.clear()
    Log.evaluated.clear()
    register_env("walk", lambda context: walk())

    def config(transform, runners=0, log=(Log,), gamma=GAMMA, **options):
        shaping = partial(ShapeReward, **{"bonus": "novelty", "transform": transform, **options})
        return (
            PPOConfig()
            .environment("walk")
            .env_runners(num_env_runners=runners, num_envs_per_env_runner=3, rollout_fragment_length=4)
            .training(gamma=gamma, train_batch_size_per_learner=48, minibatch_size=48, num_epochs=1)
            .rl_module(model_config={"fcnet_hiddens": [8]})
            .callbacks([shaping, *log])
            .debugging(seed=0)
        )

    return config


def finished():
    """Yield (chunks, infos of its steps, rewards the learner gets) of each finished episode."""
    for chunks in Log.chunks.values():
        if chunks[-1].is_done and chunks[0].t_started == 0:
            infos = [info for chunk in chunks for info in chunk.get_infos()[1:]]
            yield chunks, infos, np.concatenate([chunk.get_rewards() for chunk in chunks])
