"""The paper's boundary condition, for a potential of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from payback.core.errors import LawBroken
from payback.core.validate import read_gamma

Episode = Sequence[Any]
"""s_0, a_0, s_1, a_1, …, s_N in one flat sequence."""


def check_boundary(
    potential: Callable[[Episode, int], float], episodes: Iterable[Episode], gamma: float, *, tolerance: float = 1e-9
) -> None:
    """Raise `LawBroken` if the shaping γΦ_{t+1} − Φ_t would favour one action over another.

        γ^(N−t) Φ_N − Φ_t = Φ'_t, constant with respect to a_t, for every t            (boundary_condition)

    `episodes` are flat: s_0, a_0, s_1, …, s_N; `payback.mdp` lists all of a small MDP's. `potential(episode, t)`
    is Φ_t, t = 0 … N, and may look at any of it. Wherever two episodes have the same past up to s_t, the left
    side must be the same. This asks of every trajectory what the paper asks of the expectation: it is what
    can be checked on plain episodes, and what the loans of `match_*` keep.

    >>> episodes = [("s", 0, "left"), ("s", 1, "right")]
    >>> check_boundary(lambda episode, t: 1.0 if t == 0 else 0.0, episodes, gamma=0.9)
    >>> check_boundary(lambda episode, t: float(episode[2 * t] == "left"), episodes, gamma=0.9)
    Traceback (most recent call last):
    payback.LawBroken: boundary_condition: after ('s',), γ^(N−t)Φ_N − Φ_t is 0.9 if the episode goes on ...
    """
    gamma = read_gamma(gamma)
    seen: dict[tuple[Any, ...], tuple[float, Episode]] = {}
    flat = sorted((tuple(e) for e in episodes), key=len)
    if not flat:
        raise ValueError("check_boundary was given no episodes, so nothing would be checked")
    for episode in flat:
        if len(episode) % 2 == 0 or len(episode) < 3:
            raise ValueError(
                f"an episode is s_0, a_0, s_1, …, s_N: an odd number of at least 3 entries; got {len(episode)}"
            )
        N = len(episode) // 2
        last = float(potential(episode, N))
        for t in range(N):
            phi = float(potential(episode, t))
            value = gamma ** (N - t) * last - phi
            if not math.isfinite(value):
                raise ValueError(f"the potential is not finite at step {t} of {_short(episode)}")
            past = episode[: 2 * t + 1]
            other, before = seen.setdefault(past, (value, episode))
            if abs(value - other) > tolerance * (1 + abs(last) + abs(phi) + abs(other)):
                raise LawBroken(
                    f"boundary_condition: after {_short(past)}, γ^(N−t)Φ_N − Φ_t is {other:.6g} if the episode goes on "
                    f"as {_short(before[2 * t + 1 :])} and {value:.6g} if as {_short(episode[2 * t + 1 :])} (t = {t}); "
                    "set Φ = 0 after the last step, and let Φ_t depend on nothing but the past",
                    law="boundary_condition",
                    step=t,
                    paid=value,
                    owed=other,
                )


def _short(part: Sequence[Any]) -> str:
    shown = repr(tuple(part))
    return shown if len(shown) <= 100 else f"{shown[:60]} … {shown[-30:]}"
