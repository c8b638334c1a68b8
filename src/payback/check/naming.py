"""Guessing what is wrong with a transform that breaks zero sum, from a few plain episodes."""

from __future__ import annotations

from collections import Counter

import numpy as np

from payback.auditing.causes import Episode, common_cause, likely_cause
from payback.check.laws import finished_episodes
from payback.check.streams import Stream
from payback.check.trial import Trial, step_through

LENGTHS = (6, 4, 9, 5, 7, 12, 3, 8, 6, 10)


def looks_like(trial: Trial) -> str:
    """Return what the leaks of a few plain episodes have in common, "" where these do not leak.

    Small rewards show most faults; large ones what is cut off.
    """
    rng = np.random.default_rng(3)
    rewards = (1 + rng.random((sum(LENGTHS), 1))).astype(np.float32).astype(np.float64)
    dones = np.zeros(rewards.shape, dtype=bool)
    dones[np.cumsum(LENGTHS) - 1] = True
    for size in (1.0, 1e6):
        stream = Stream("plain episodes", size * rewards, dones)
        shaped = step_through(trial, stream).shaped[:, 0]
        broken = _broken(trial, stream, shaped)
        if broken:
            low, high = float(shaped.min()), float(shaped.max())
            guesses = Counter(likely_cause(e, trial.gamma, low, high)[0].split(":")[0] for e in broken)
            if not np.isclose(shaped[0], stream.rewards[0, 0], rtol=1e-4):
                guesses = Counter({"changed after matching (even the first step of all is not paid its own reward)": 1})
            return common_cause(broken, trial.gamma) or guesses.most_common(1)[0][0]
    return ""


def _broken(trial: Trial, stream: Stream, shaped: np.ndarray) -> list[Episode]:
    broken, before, length = [], None, 0
    for rows in finished_episodes(stream, 0):
        x = shaped[rows]
        weight = trial.gamma ** np.arange(len(rows))
        leak = float(weight @ x)
        if abs(leak) > 1e-6 * float(weight @ np.abs(x)):
            broken.append(Episode(x, stream.rewards[rows, 0], leak, before, length))
        before, length = leak, len(rows)
    return broken
