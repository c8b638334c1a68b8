"""Guessing what is wrong with a transform that breaks zero sum, from a few plain episodes."""

from __future__ import annotations

from collections import Counter

import numpy as np

from payback.auditing.causes import Episode, common_cause, likely_cause
from payback.check.run_stream import step_through
from payback.check.stream import Stream, episodes_of
from payback.check.subject import Subject

LENGTHS = (6, 4, 9, 5, 7, 12, 3, 8, 6, 10)


def guess_cause(subject: Subject) -> str:
    """Return what the leaks of a few plain episodes have in common, "" where these do not leak.

    Small rewards show most faults; large ones what is cut off.
    """
    rng = np.random.default_rng(3)
    rewards = (1 + rng.random((sum(LENGTHS), 1))).astype(np.float32).astype(np.float64)
    dones = np.zeros(rewards.shape, dtype=bool)
    dones[np.cumsum(LENGTHS) - 1] = True
    for size in (1.0, 1e6):
        stream = Stream("plain episodes", size * rewards, dones)
        try:
            shaped = step_through(subject, stream).shaped[:, 0]
            broken = _broken_episodes(subject.gamma, stream, shaped)
            if broken:
                return _cause_of(broken, subject.gamma, stream.rewards[:, 0], shaped)
        except Exception:
            # A guess is a courtesy: what the shaping does on yet another stream must not hide what was found.
            return ""
    return ""


def _cause_of(broken: list[Episode], gamma: float, rewards: np.ndarray, shaped: np.ndarray) -> str:
    shared = common_cause(broken, gamma)
    if shared:
        return shared
    if not np.isclose(shaped[0], rewards[0], rtol=1e-4):
        return "changed after matching (even the first step of all is not paid its own reward)"
    low, high = float(shaped.min()), float(shaped.max())
    guesses = Counter(likely_cause(e, gamma, low, high)[0].split(":")[0] for e in broken)
    return guesses.most_common(1)[0][0]


def _broken_episodes(gamma: float, stream: Stream, shaped: np.ndarray) -> list[Episode]:
    broken, before, length = [], None, 0
    cut = episodes_of(stream)
    for first, last in zip(cut.starts, cut.ends, strict=True):
        x, rewards = shaped[first : last + 1], stream.rewards[first : last + 1, 0]
        weight = gamma ** np.arange(len(x))
        leak = float(weight @ x)
        if abs(leak) > 1e-6 * float(weight @ np.abs(x)):
            broken.append(Episode(x, rewards, leak, before, length))
        before, length = leak, len(x)
    return broken
