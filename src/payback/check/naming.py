"""Guessing what is wrong with a transform that breaks zero sum, from a few plain episodes."""

from __future__ import annotations

import numpy as np

from payback.auditing.diagnose import diagnose
from payback.auditing.evidence import Episode
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
            return str(diagnose(broken, trial.gamma))
    return ""


def _broken(trial: Trial, stream: Stream, shaped: np.ndarray) -> list[Episode]:
    broken = []
    for rows in finished_episodes(stream, 0):
        x = shaped[rows]
        weight = trial.gamma ** np.arange(len(rows))
        leak = float(weight @ x)
        if abs(leak) > 1e-6 * float(weight @ np.abs(x)):
            before, after = rows[0], rows[-1] + 1
            broken.append(
                Episode(
                    x,
                    stream.rewards[rows, 0],
                    leak,
                    paid_before=shaped[:before] if before else None,
                    rewards_before=stream.rewards[:before, 0] if before else None,
                    paid_after=float(shaped[after]) if after < len(shaped) else None,
                )
            )
    return broken
