"""What every shaper must keep, as plain checks that raise AssertionError: for the real code and for its mutants.

A shaper takes one environment's rewards and its two kinds of ends, all (T,), over as many episodes as they hold.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import payback
from payback import theory

from . import cases
from .cases import Matching, assert_close, episodes
from .small_mdp import GAMMA as MDP_GAMMA
from .small_mdp import action_values, best_of, nothing, streamed

Shaper = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

GAMMA = float(MDP_GAMMA)
assert cases.GAMMA == GAMMA
LENGTHS = (5, 1, 2, 9, 3, 7, 4, 6, 8)
"""Episodes that end by turns in termination and truncation."""


def shaper_of(transform: payback.RewardTransform) -> Shaper:
    """Step a transform through the stream; an end is an end, of whichever kind."""

    def shape(rewards: np.ndarray, terminated: np.ndarray, truncated: np.ndarray) -> np.ndarray:
        state, shaped = transform.init(np.zeros(1)), []
        for reward, done in zip(rewards, terminated | truncated, strict=True):
            state, paid = transform.update(state, np.array([reward]), np.array([done]))
            shaped.append(paid[0])
        return np.array(shaped)

    return shape


def draw_stream(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    T = sum(LENGTHS)
    ends = np.cumsum(LENGTHS) - 1
    terminated, truncated = np.zeros(T, bool), np.zeros(T, bool)
    terminated[ends[::2]], truncated[ends[1::2]] = True, True
    return np.random.default_rng(seed).normal(0.4, 1.0, T), terminated, truncated


def check_zero_sum(shaper: Shaper) -> None:
    """Σ_t γ^t F'_t = 0 in every finished episode."""
    rewards, terminated, truncated = draw_stream()
    shaped = shaper(rewards, terminated, truncated)
    for steps, _ in episodes(terminated | truncated):
        discount = GAMMA ** np.arange(steps.stop - steps.start)
        total, size = discount @ shaped[steps], discount @ np.abs(shaped[steps])
        assert abs(total) <= 1e-9 * size, f"steps {steps.start}–{steps.stop - 1} leave {total}"


def check_blind_to_later_rewards(shaper: Shaper) -> None:
    """Nothing paid before step t depends on the rewards from t on."""
    rewards, terminated, truncated = draw_stream()
    shaped = shaper(rewards, terminated, truncated)
    for t in range(len(rewards)):
        changed = np.concatenate([rewards[:t], rewards[t:] + 1.0])
        again = shaper(changed, terminated, truncated)
        assert np.array_equal(again[:t], shaped[:t]), f"rewards from step {t} on change what was paid before"


def check_blind_to_the_coming_end(shaper: Shaper) -> None:
    """Nothing paid before an episode's last step depends on when that comes."""
    rewards, never = np.random.default_rng(1).normal(0.4, 1.0, 8), np.zeros(8, bool)
    endless = shaper(rewards, never, never)
    for N in range(1, 9):
        ended = never.copy()
        ended[N - 1] = True
        shaped = shaper(rewards, ended, never)
        assert_close(shaped[: N - 1], endless[: N - 1], 1e-12, f"an end at step {N - 1} changes what was paid before")


def check_drawer(shaper: Shaper, matching: Matching, centered: bool) -> None:
    """F'_t = G_t − Σ_{i≤t} γ^(i−t) G_i m(t,i), with G_t = F_t − F̄_t where it is centred, else F_t."""
    rewards, terminated, truncated = draw_stream()
    before = [rewards[:t].mean() if centered and t else 0.0 for t in range(len(rewards))]
    paid = rewards - np.array(before)
    expected = [theory.match_episode(paid[s], matching, GAMMA) for s, _ in episodes(terminated | truncated)]
    assert_close(shaper(rewards, terminated, truncated), np.concatenate(expected))


def check_keeps_optimal_actions(shaper: Shaper) -> None:
    """In a small MDP solved exactly over histories, the best actions are those without any bonus."""
    without, shaped = action_values(nothing), action_values(streamed(shaper))
    moved = [history for history in without if best_of(without[history]) != best_of(shaped[history])]
    assert not moved, f"{len(moved)} of {len(without)} histories have other best actions, the first: {moved[0]}"


CHECKS: dict[str, Callable[[Shaper], Any]] = {
    "zero sum": check_zero_sum,
    "later rewards": check_blind_to_later_rewards,
    "coming end": check_blind_to_the_coming_end,
    "optimal actions": check_keeps_optimal_actions,
}
