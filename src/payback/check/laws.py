"""The laws a transform is held to on one stream. Each function raises `LawBroken` where its law is broken.

Σ_t γ^t F'_t = 0                                              in every finished episode (zero sum)
Σ_{n≥t} γ^(n−t) F'_n = −Debt_t                                for every way to go on from t  (the law)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from array_api_compat import is_jax_namespace

from payback.check.streams import Stream, continuations
from payback.check.trial import Run, Trial, as_numpy, roll_through, step_through, step_through_borrowed
from payback.core.errors import LawBroken
from payback.core.transform import Match, State, drop, owed

SHORT = 60
"""Streams up to this many steps are looked at in full; of longer ones, some of the steps."""


def examine(trial: Trial, stream: Stream) -> None:
    """Hold the transform to every law on one stream."""
    steps = _longest_episode(stream)
    size = float(np.abs(stream.rewards).max(initial=0))
    try:
        cuts = _cuts(stream)
        short = len(stream.rewards) <= SHORT
        run = step_through(trial, stream, keep=True if short else set(cuts), endings=not short)
        if not np.isfinite(run.shaped).all():
            if trial.may_overflow(steps, size):
                return
            t, b = (int(x) for x in np.argwhere(~np.isfinite(run.shaped))[0])
            raise _broken(stream, "finite", t, b, run.shaped[t, b], None, "what is paid is not a finite number")
        check_invalid_rows(trial, stream, run)
        check_zero_sum(trial, stream, run)
        check_purity(trial, stream, run)
        check_law(trial, stream, run, cuts)
        check_each_step(trial, stream, run)
        check_debt(trial, stream, run, cuts)
        check_rollouts(trial, stream, run)
    except OverflowError:
        if not trial.may_overflow(steps, size):
            raise


def check_zero_sum(trial: Trial, stream: Stream, run: Run) -> None:
    """Σ_t γ^t F'_t = 0 in every finished episode of every environment."""
    M = np.abs(stream.rewards).max(initial=0)
    for b in range(stream.rewards.shape[1]):
        for rows in finished_episodes(stream, b):
            paid = run.shaped[rows, b]
            weight = trial.gamma ** np.arange(len(rows))
            leak, scale = weight @ paid, weight @ (np.abs(paid) + M)
            if not abs(leak) <= trial.epsilon * scale:
                what = f"an episode of {len(rows)} steps sums to {leak:.6g}, not 0"
                raise _broken(stream, "zero sum", int(rows[-1]), b, paid[-1], settlement(trial.gamma, paid), what)


def check_invalid_rows(trial: Trial, stream: Stream, run: Run) -> None:
    """Rows that are no transition are paid 0, move no clock and leave no trace."""
    if stream.valid is None:
        return
    paid = np.argwhere(~stream.valid & (run.shaped != 0))
    if len(paid):
        t, b = (int(x) for x in paid[0])
        raise _broken(stream, "invalid rows", t, b, run.shaped[t, b], 0.0, "a row that is no transition is paid")
    if stream.rewards.shape[1] == 1:
        keep = stream.valid[:, 0]
        without = replace(stream.rows(keep), valid=None)
        other, mine = step_through(trial, without).shaped, run.shaped[keep]
    else:
        garbage = replace(
            stream,
            rewards=np.where(stream.valid, stream.rewards, -7.0),
            dones=np.where(stream.valid, stream.dones, ~stream.dones),
        )
        other, mine = step_through(trial, garbage).shaped, run.shaped
        keep = np.ones(len(mine), dtype=bool)
    where = _first_difference(trial, stream, mine, other)
    if where is not None:
        t, b = where
        what = "a row that is no transition changes what is paid for others"
        raise _broken(stream, "invalid rows", int(np.flatnonzero(keep)[t]), b, mine[t, b], other[t, b], what)


def check_purity(trial: Trial, stream: Stream, run: Run) -> None:
    """The same state and reward give the same answer, however often and however late they are asked for."""
    for t in range(len(stream.rewards)):
        if run.states[t] is None:
            continue
        again = step_through(trial, stream.rows(slice(t, t + 1)), run.states[t]).shaped[0]
        if not np.array_equal(again, run.shaped[t]):
            b = int(np.flatnonzero(again != run.shaped[t])[0])
            what = "asked again with the same state and reward, update pays something else: it keeps hidden state"
            raise _broken(stream, "purity", t, b, float(again[b]), float(run.shaped[t, b]), what)
    if len(stream.rewards) <= SHORT and not is_jax_namespace(trial.xp):
        lent = step_through_borrowed(trial, stream)
        if not np.array_equal(lent, run.shaped):
            t, b = (int(x) for x in np.argwhere(lent != run.shaped)[0])
            what = "it keeps an array it was given instead of a copy: callers use theirs again"
            raise _broken(stream, "purity", t, b, float(lent[t, b]), float(run.shaped[t, b]), what)


def check_law(trial: Trial, stream: Stream, run: Run, cuts: list[int]) -> None:
    """From each step on, the rest of the episode is worth −Debt: the same for all rewards and lengths to come."""
    M = float(np.abs(stream.rewards).max(initial=0))
    ways = continuations(stream, max(M, 1e-30))
    for t in cuts:
        tails = [_tails(trial, way, run.states[t]) for way in ways]
        first, scale = tails[0][0], sum(scale for _, scale in tails)
        for way, (tail, _) in zip(ways[1:], tails[1:], strict=True):
            bad = np.flatnonzero(~(np.abs(tail - first) <= trial.epsilon * (scale + M)))
            if bad.size:
                b = int(bad[0])
                n, k = (int(np.flatnonzero(w.dones[:, b])[0]) + 1 for w in (ways[0], way))
                what = (
                    f"after {t} steps the rest of the episode is worth {first[b]:.6g} if it ends in {n} step, "
                    f"{tail[b]:.6g} if it goes on for {k} with rewards {_row(way.rewards[:k, b])}"
                )
                whole = stream.rows(slice(0, t)).followed_by(way)
                raise _broken(whole, "the law", t, b, float(tail[b]), float(first[b]), what)


def check_each_step(trial: Trial, stream: Stream, run: Run) -> None:
    """What is paid for ending now is what is paid for one more step and ending then.

        E_t = F'_t + γE_{t+1},   E_t = −Debt_t what is paid if the episode ends at t

    It is the law between neighbours: no discount hides what goes wrong late in a long episode.
    """
    B = stream.rewards.shape[1]
    E = np.array([*map(trial.ending(B), run.states)]) if run.endings is None else run.endings
    live, dones = stream.live, stream.dones
    later = np.where(dones & live, 0.0, E[1:]) * np.where(live, trial.gamma, 1.0)
    M = np.abs(stream.rewards).max(initial=0)
    scale = np.abs(E[:-1]) + np.abs(run.shaped) + np.abs(later) + M
    bad = np.argwhere(~(np.abs(E[:-1] - run.shaped - later) <= trial.epsilon * scale))
    if len(bad):
        t, b = (int(x) for x in bad[0])
        what = (
            f"ending at step {t} pays {E[t, b]:.6g}; going on pays {run.shaped[t, b]:.6g} and is then worth "
            f"{later[t, b]:.6g}: not the same"
        )
        raise _broken(stream, "the law", t, b, float(run.shaped[t, b]), float(E[t, b] - later[t, b]), what)


def check_debt(trial: Trial, stream: Stream, run: Run, cuts: list[int]) -> None:
    """`owed` is what the rest of the episode takes back, and `drop` makes it nothing, for those asked for only."""
    transform = trial.transform
    if not isinstance(transform, Match):
        return
    M = float(np.abs(stream.rewards).max(initial=0))
    way, B = continuations(stream, max(M, 1e-30))[1], stream.rewards.shape[1]
    for t in cuts:
        debt = as_numpy(owed(transform, run.states[t]))
        tail, scale = _tails(trial, way, run.states[t])
        _same_debt(trial, stream, t, -tail, debt, scale + M, "owed tells another debt than is repaid")
        where = np.arange(B) % 2 == 0
        state, dropped = drop(transform, run.states[t], trial.flags(where))
        tail, scale = _tails(trial, way, state)
        left = np.where(where, 0.0, debt)
        _same_debt(trial, stream, t, -tail, left, scale + M, "after drop the wrong debt is repaid")
        _same_debt(trial, stream, t, as_numpy(dropped), debt - left, scale + M, "drop tells another debt than owed")


def check_rollouts(trial: Trial, stream: Stream, run: Run) -> None:
    """Blocks, wherever they are cut, pay what stepping pays, and leave a state that goes on alike."""
    T = len(stream.rewards)
    ends = np.flatnonzero(stream.dones.any(axis=1))
    cuts: dict[tuple[int, ...], str] = {(): "at once"}
    if not is_jax_namespace(trial.xp) or T % 5 == 0:  # each new block length is compiled anew
        cuts[tuple(int(t) + 1 for t in ends if t + 1 < T)[:200]] = "with borders right after the ends"
        cuts[tuple(int(t) for t in ends if t > 0)[:200]] = "with borders right before the last steps"
        cuts[tuple(range(3, T, 4))[:200]] = "in blocks of 4 steps"
    way = continuations(stream, float(np.abs(stream.rewards).max(initial=0)))[1]
    after = step_through(trial, way, run.states[-1]).shaped
    for cut, how in cuts.items():
        block = roll_through(trial, stream, list(cut))
        where = _first_difference(trial, stream, block.shaped, run.shaped)
        if where is not None:
            t, b = where
            what = f"shape_rollout, {how}, pays something else than stepping"
            raise _broken(stream, "rollout", t, b, block.shaped[t, b], run.shaped[t, b], what)
        then = step_through(trial, way, block.states[-1]).shaped
        where = _first_difference(trial, stream, then, after, run.shaped)
        if where is not None:
            t, b = where
            what = f"the state left by shape_rollout, {how}, goes on otherwise than the one left by stepping"
            raise _broken(stream, "rollout", T + t, b, then[t, b], after[t, b], what)


def settlement(gamma: float, paid: np.ndarray) -> float:
    """Return what the last step would have had to pay: −Σ_{n<N−1} γ^(n−N+1) F'_n, infinite where float64 ends."""
    with np.errstate(over="ignore", invalid="ignore"):
        weight = np.float64(gamma) ** -np.arange(len(paid) - 1.0, 0, -1)
        return 0.0 - float(np.where(paid[:-1] == 0, 0, weight * paid[:-1]).sum())


def finished_episodes(stream: Stream, b: int) -> list[np.ndarray]:
    """Return the rows of each finished episode of environment b, without those that are no transition."""
    rows = np.flatnonzero(stream.live[:, b])
    ends = np.flatnonzero(stream.dones[rows, b]) + 1
    return np.split(rows, ends)[: len(ends)]


def _tails(trial: Trial, way: Stream, state: State) -> tuple[np.ndarray, np.ndarray]:
    """Σ_n γ^n F'_n over the rest of each environment's episode, and the size against which to measure it."""
    shaped = step_through(trial, way, state).shaped
    open_ = np.cumsum(way.dones, axis=0) - way.dones == 0
    weight = open_ * trial.gamma ** np.arange(len(shaped))[:, None]
    return (weight * shaped).sum(axis=0), (weight * (np.abs(shaped) + np.abs(way.rewards).max(initial=0))).sum(axis=0)


def _same_debt(
    trial: Trial, stream: Stream, t: int, found: np.ndarray, due: np.ndarray, scale: np.ndarray, what: str
) -> None:
    bad = np.flatnonzero(~(np.abs(found - due) <= trial.epsilon * scale))
    if bad.size:
        b = int(bad[0])
        raise _broken(stream.rows(slice(0, t)), "debt", t, b, float(found[b]), float(due[b]), what)


def _first_difference(
    trial: Trial, stream: Stream, one: np.ndarray, other: np.ndarray, before: np.ndarray | None = None
) -> tuple[int, int] | None:
    """Return the first (step, environment) where the two differ by more than rounding, or None."""
    largest = np.maximum.accumulate(np.maximum(np.abs(one), np.abs(other)), axis=0) if len(one) else np.abs(one)
    scale = largest + np.abs(stream.rewards).max(initial=0)
    if before is not None:
        scale = scale + np.abs(before).max(initial=0)
    bad = np.argwhere(~(np.abs(one - other) <= trial.epsilon * scale))
    return (int(bad[0, 0]), int(bad[0, 1])) if len(bad) else None


def _cuts(stream: Stream) -> list[int]:
    """The steps from which the stream is continued in other ways: all of a short one, the odd places of a long one."""
    T = len(stream.rewards)
    if T <= 12:
        return list(range(T + 1))
    ends = np.flatnonzero(stream.dones.any(axis=1))[-2:]
    places = {1, T, *np.linspace(0, T, 6).astype(int).tolist(), *(ends + 1).tolist(), *ends.tolist()}
    return sorted(int(t) for t in places)


def _longest_episode(stream: Stream) -> int:
    ends = [np.flatnonzero(np.concatenate(([True], column, [True]))) for column in stream.dones.T]
    return max(int(np.diff(e).max(initial=0)) for e in ends) + 12


def _row(values: np.ndarray) -> str:
    shown = ", ".join(f"{x:.6g}" for x in values[:12])
    return f"[{shown}{', …' if len(values) > 12 else ''}]"


def _broken(
    stream: Stream, law: str, step: int, environment: int, paid: float, owed: float | None, what: str
) -> LawBroken:
    found = LawBroken(what, law=law, rewards=stream.rewards, step=step, paid=paid, owed=owed)
    found.environment, found.stream = environment, stream  # pyright: ignore[reportAttributeAccessIssue]
    return found
