"""What is wrapped around the shaping, or steps it wrongly, is said once in training; right stacks are silent."""

import copy
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from gymnasium.wrappers import Autoreset, ClipReward, NormalizeReward, RecordEpisodeStatistics, TimeLimit
from gymnasium.wrappers import TransformReward as Transform
from gymnasium.wrappers import vector as over_vectors

import payback
from payback import ShapingWarning
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward

from .corridor import Corridor

MATCH = payback.match_after(0.9, 4)


def shaped(length=6):
    return ShapeReward(Corridor(length), "bonus", MATCH, learner_gamma=0.9)


def shaped_vector(mode=AutoresetMode.NEXT_STEP):
    return ShapeVectorReward(
        SyncVectorEnv([lambda n=n: Corridor(n) for n in (3, 5)], autoreset_mode=mode), "bonus", MATCH, learner_gamma=0.9
    )


def played(env, steps=40, resets=True):
    """Return what was said while `env` was played."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        env.reset(seed=0)
        for _ in range(steps):
            *_, terminated, truncated, _ = env.step(env.action_space.sample())
            ended = np.atleast_1d(terminated) | np.atleast_1d(truncated)
            if resets and not hasattr(env, "num_envs") and ended.any():
                env.reset()
    return [str(word.message) for word in said if word.category is ShapingWarning]


class Skip(gym.Wrapper):
    """Repeats each action and adds the rewards up; its methods do not call themselves `self`."""

    def step(wrapper, action):  # noqa: N805
        total = 0.0
        for _ in range(2):
            obs, reward, terminated, truncated, info = wrapper.env.step(action)
            total += reward
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info


class NoOps(gym.Wrapper):
    """Begins each episode with a step of its own, whose reward is lost."""

    def reset(self, **options):
        self.env.reset(**options)
        obs, _, _, _, info = self.env.step(0)
        return obs, info


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Transform(shaped(), lambda r: 0.1 * r), "TransformReward around the shaping changes"),
        (lambda: ClipReward(shaped(), -1, 1), "ClipReward around the shaping changes"),
        (lambda: RecordEpisodeStatistics(NormalizeReward(shaped())), "NormalizeReward around the shaping changes"),
        (lambda: RecordEpisodeStatistics(Skip(shaped())), "Skip around the shaping takes several steps"),
        (lambda: NoOps(shaped()), "NoOps around the shaping takes steps in its reset"),
        (lambda: over_vectors.NormalizeReward(shaped_vector()), "NormalizeReward around the shaping changes"),
        (lambda: over_vectors.ClipReward(shaped_vector(), -1, 1), "ClipReward around the shaping changes"),
        (
            lambda: over_vectors.TransformReward(SyncVectorEnv([shaped]), lambda r: r / 2),
            "TransformReward around the shaping changes",
        ),
    ],
)
def test_what_changes_rewards_around_the_shaping_is_said_once_in_training(make, words):
    said = played(make())
    assert len(said) == 1
    assert words in said[0]


@pytest.mark.parametrize(
    "make",
    [
        shaped,
        lambda: RecordEpisodeStatistics(shaped()),
        lambda: ShapeReward(Transform(Skip(Corridor(9)), lambda r: r / 2), "bonus", MATCH, learner_gamma=0.9),
        lambda: ShapeReward(TimeLimit(Corridor(3), 9), "bonus", MATCH, learner_gamma=0.9),
        lambda: SyncVectorEnv([shaped] * 2),
        lambda: over_vectors.RecordEpisodeStatistics(shaped_vector()),
        lambda: shaped_vector(AutoresetMode.SAME_STEP),
    ],
)
def test_right_stacks_are_silent(make):
    assert played(make()) == []


def test_autoreset_belongs_outside():
    assert played(Autoreset(shaped()), resets=False) == []
    said = played(ShapeReward(Autoreset(Corridor(3)), one, MATCH, learner_gamma=0.9), resets=False)
    assert len(said) == 1
    assert "stepped after its episode had ended (step 3), without a reset" in said[0]


def one(obs, action, next_obs, info):
    return np.ones(len(info["valid"]))


def test_a_vector_that_is_not_reset_is_said():
    env = shaped_vector(AutoresetMode.DISABLED)
    env.reset(seed=0)
    ended = np.zeros(2, dtype=bool)
    for _ in range(20):  # resetting by mask is right
        if ended.any():
            env.reset(options={"reset_mask": ended})
        *_, terminated, truncated, _ = env.step(np.zeros(2, dtype=int))
        ended = terminated | truncated

    class SaysDisabled(VectorWrapper):
        metadata = {"autoreset_mode": AutoresetMode.DISABLED}  # noqa: RUF012

    inner = SyncVectorEnv([lambda: Corridor(3)] * 2)
    said = played(ShapeVectorReward(SaysDisabled(inner), one, MATCH, learner_gamma=0.9))
    assert len(said) == 1
    assert "metadata['autoreset_mode']" in said[0]


def test_rewards_of_another_shape_are_refused():
    class Column(VectorWrapper):
        def step(self, actions):
            obs, reward, *rest = self.env.step(actions)
            return obs, reward[:, None], *rest

    env = ShapeVectorReward(Column(SyncVectorEnv([lambda: Corridor(3)] * 2)), "bonus", MATCH)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"rewards have shape \(2, 1\), not \(2,\)"):
        env.step(np.zeros(2, dtype=int))


def test_loans_that_are_loaded_after_the_reset_are_said(tmp_path):
    first = shaped(9)
    first.reset(seed=0)
    first.step(0)
    first.save(tmp_path / "loans.npz")
    assert first.owed[0]
    wrong, right = shaped(9), shaped(9)
    wrong.reset(seed=0)
    wrong.load(tmp_path / "loans.npz")
    with pytest.warns(ShapingWarning, match=r"call load\(\) first and reset\(\) after it"):
        wrong.step(0)
    wrong.step(0)  # said once, because a second warning would be an error here
    right.load(tmp_path / "loans.npz")
    right.reset(seed=0)  # as docs/howto/checkpoints.md has it, so nothing warns
    assert right.monitor.drops == 1
    right.step(0)
    with pytest.warns(ShapingWarning, match="was dropped"):
        right.reset(seed=0)


def test_a_stack_is_copied_while_it_is_looked_at():
    env = RecordEpisodeStatistics(shaped())
    env.reset(seed=0)
    env.step(0)
    other = copy.deepcopy(env)
    assert [other.step(0)[1] for _ in range(3)] == [env.step(0)[1] for _ in range(3)]
