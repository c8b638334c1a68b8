"""Settling a debt *and* bootstrapping past it reverses preferences; the two settings that are offered do not.

One state, a time limit of ten steps; action A pays .05 and a bonus of 1, action B nothing. The learner's value
is the mean return from each observation it sees, bootstrapped where it is told to (THEORY.md, section 3).
"""

import gymnasium as gym
import numpy as np
import pytest

import payback
from payback.integrations.gymnasium import ShapeReward

GAMMA, N, PAY = 0.9, 10, 0.05
pytestmark = [pytest.mark.gymnasium, pytest.mark.filterwarnings("ignore:a truncated episode:payback.ShapingWarning")]


class Choice(gym.Env):
    observation_space = gym.spaces.Box(0, 0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), PAY * action, False, False, {"bonus": float(action)}


def start_value(env, action, bootstraps):
    """The start's value under `action`, by a critic that knows nothing but the observation.

    `bootstraps(truncated, info)` says whether the learner adds γ·V(last observation) at the episode's last step.
    """
    obs, _ = env.reset()
    seen, rewards, ended = [tuple(obs)], [], False
    while not ended:
        obs, reward, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
        seen.append(tuple(obs))
        rewards.append(reward)
    value = dict.fromkeys(seen, 0.0)
    for _ in range(400):
        tail, returns = value[seen[-1]] if bootstraps(truncated, info) else 0.0, []
        for reward in reversed(rewards):
            tail = reward + GAMMA * tail
            returns.append(tail)
        returns.reverse()
        old = value
        # An observation that is only ever the last one has no return of its own: its neighbour's is the best guess.
        value = {o: np.mean([g for s, g in zip(seen, returns, strict=False) if s == o] or [old[o]]) for o in seen}
    return float(np.mean(returns[:1]))


def shaped(transform, **options):
    return ShapeReward(gym.wrappers.TimeLimit(Choice(), N), "bonus", transform, **options)


def obey(truncated, info):
    return truncated


def bootstrap_anyway(truncated, info):
    return info["truncated"]


@pytest.mark.parametrize(
    ("transform", "change"), [(payback.pbim(GAMMA, center=False), -5.7), (payback.grm(GAMMA, 1, center=False), -0.84)]
)
def test_settle_and_bootstrap_reverses_the_preference(transform, change):
    env = shaped(transform)
    a, b = (start_value(env, action, bootstrap_anyway) for action in (1, 0))
    assert a - PAY / (1 - GAMMA) == pytest.approx(change, abs=0.05)
    assert a < b


@pytest.mark.parametrize("transform", [payback.pbim(GAMMA, center=False), payback.grm(GAMMA, 1, center=False)])
def test_settle_as_offered_changes_no_value(transform):
    env = shaped(transform)
    a, b = (start_value(env, action, obey) for action in (1, 0))
    assert a == pytest.approx(PAY * (1 - GAMMA**N) / (1 - GAMMA), abs=1e-9)
    assert b == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("transform", [payback.grm(GAMMA, 1, center=False), payback.match_evenly(GAMMA, 2)])
def test_carry_with_the_debt_in_sight_changes_no_value(transform):
    env = shaped(transform, on_truncation="carry", observe_debt=True)
    a, b = (start_value(env, action, obey) for action in (1, 0))
    assert a == pytest.approx(PAY / (1 - GAMMA), abs=1e-6)
    assert b == pytest.approx(0, abs=1e-9)
