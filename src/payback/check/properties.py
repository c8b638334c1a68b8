"""The properties of shaped rewards; each check raises a `Finding` at the first violation.

    Σ_t γ^t F'_t = 0                               in every finished episode                  (zero sum)
    Σ_{n≥t} γ^(n−t) F'_n = −Debt_t                 however the episode goes on                (policy invariance)

Further: the debt is what `owed` returns and `drop` forgets; `update` is pure; float32 stays near float64.

Rounding is measured against what was lent and paid in the same episode of the same environment. The last reward of an
episode is not part of that, because it is lent and repaid in the same step: a settlement that loses its digits beside a
large last reward does not repay the debt.
"""

from __future__ import annotations

import numpy as np

from payback.check.stream import Finding, Stream, continuations, episodes_of, refuse_where, written
from payback.check.subject import Continuation, Run, Subject, Tested, as_numpy, overwrite
from payback.core.transform import Match, State, drop, owed

TINY = 1e-300  # added to every scale, so that 0 is within rounding of 0
MAX_DRIFT = 1e-2  # the largest distance of float32 from float64, relative to the largest reward or payment so far
LONG_ENOUGH = 40_000  # steps after which a reward that falls due by itself must have been repaid


def check_finite(tested: Tested, stream: Stream, shaped: np.ndarray) -> None:
    """Check that the shaped rewards are finite; raise OverflowError where so much interest may overflow."""
    bad = ~np.isfinite(shaped)
    if bad.any() and tested.may_overflow(stream):
        raise OverflowError
    refuse_where(bad, "finite", "a shaped reward is not a finite number", stream, shaped, None)


def check_zero_sum(tested: Tested, stream: Stream, shaped: np.ndarray, last: float = 0.0) -> None:
    """Check Σ_t γ^t F'_t = 0 in every finished episode; rounding may be measured against a share `last` of its end."""
    index = episodes_of(stream)
    if not index.finished.any():
        return
    paid = shaped[index.step, index.environment]
    lent = np.abs(stream.rewards[index.step, index.environment])
    lent[index.ends[index.finished]] *= last
    weight = np.float64(tested.gamma) ** index.age
    leaks = np.add.reduceat(weight * paid, index.starts)
    scales = np.add.reduceat(weight * (np.abs(paid) + lent), index.starts) + TINY
    for k in np.flatnonzero(~(np.abs(leaks) <= tested.epsilon * scales) & index.finished)[:1]:
        first, end = index.starts[k], index.ends[k]
        what = f"an episode of {end - first + 1} steps sums to {leaks[k]:.6g}, not 0"
        due = settlement(tested.gamma, paid[first : end + 1])
        raise Finding("zero sum", what, stream, index.step[end], index.environment[end], paid[end], due)


def check_each_step(run: Run) -> None:
    """Check that ending now is worth what going on to the next place and ending there is worth.

        E_t = F'_t + γE_{t+1},   E_t = −Debt_t, the shaped reward if the episode ends at t

    This is policy invariance between neighbours: no discount hides what goes wrong late in a long episode.
    """
    endings, places, stream, live = run.endings, run.places, run.stream, run.stream.live
    assert endings is not None
    factor = np.where(live, np.where(stream.dones, 0.0, run.subject.gamma), 1.0)
    sizes = np.abs(run.shaped) + np.where(live & ~stream.dones, np.abs(stream.rewards), 0.0)
    later, scale, nearest = endings[1:].copy(), np.abs(endings[1:]), endings[1:]
    for offset in reversed(range(run.stride)):
        rows = places[:-1] + offset
        inside = rows < places[1:]  # the last stride may be shorter
        rows = rows[inside]
        later[inside] = run.shaped[rows] + factor[rows] * later[inside]
        scale[inside] = sizes[rows] + factor[rows] * scale[inside]
    scale = scale + np.abs(endings[:-1]) + stream.lent_before[places[:-1]] + TINY
    for k, b in np.argwhere(~(np.abs(endings[:-1] - later) <= run.subject.epsilon * scale))[:1]:
        t, end, paid = places[k], places[k + 1], run.shaped[places[k], b]
        then = f"to step {end} is worth {later[k, b]:.6g}"
        if end == t + 1:
            then = f"pays {paid:.6g} and is then worth {factor[t, b] * nearest[k, b]:.6g}: not the same"
        what = f"ending at step {t} pays {endings[k, b]:.6g}; going on {then}"
        raise Finding("policy invariance", what, stream, t, b, paid, endings[k, b] - (later[k, b] - paid))


def worth(gamma: float, way: Stream, shaped: np.ndarray, last: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return Σ_n γ^n F'_n up to each environment's first `done`, and the size that rounding is measured against."""
    is_open = np.cumsum(way.dones, axis=0) - way.dones == 0
    weight = is_open * np.float64(gamma) ** np.arange(len(shaped))[:, None]
    lent = np.abs(way.rewards) * np.where(way.dones, last, 1.0)
    return (weight * shaped).sum(axis=0), (weight * (np.abs(shaped) + lent)).sum(axis=0)


def settlement(gamma: float, paid: np.ndarray) -> float:
    """Return the last shaped reward that makes an episode sum to 0: −Σ_{n<N−1} γ^(n−N+1) F'_n, possibly infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        weight = np.float64(gamma) ** -np.arange(len(paid) - 1.0, 0, -1)
        return 0.0 - float(np.where(paid[:-1] == 0, 0, weight * paid[:-1]).sum())


def check_debts(run: Run, cuts: list[int]) -> None:
    """Check that the rest of the episode is worth −Debt at each of the cuts, whatever its rewards and its length."""
    subject, stream = run.subject, run.stream
    ways = [Continuation(subject, way) for way in continuations(stream)]
    dropped_at = cuts[1 :: max(1, len(cuts) // 2)] if isinstance(subject.transform, Match) else []
    end_now = subject.ending(stream.rewards.shape[1])
    for t in cuts:
        state, now = run.states[t], end_now(run.states[t])
        tails = [worth(subject.gamma, way.stream, way.paid_from(state)) for way in ways]
        scale = sum(scale for _, scale in tails) + np.abs(now) + stream.lent_before[t]
        for way, (tail, _) in zip(ways, tails, strict=True):
            for b in np.flatnonzero(~(np.abs(tail - now) <= subject.epsilon * scale))[:1]:
                steps = int(np.flatnonzero(way.stream.dones[:, b])[0]) + 1
                what = (
                    f"after {t} steps the rest of the episode is worth {now[b]:.6g} if it ends in 1 step, "
                    f"{tail[b]:.6g} if it goes on for {steps} with rewards {written(way.stream.rewards[:steps, b])}"
                )
                raise Finding("policy invariance", what, stream[:t].followed_by(way.stream), t, b, tail[b], now[b])
        if t in dropped_at:
            _check_drop(run, t, state, ways[0], scale)


def check_owed(run: Run) -> None:
    """Check that `owed` is what ending now would take back."""
    if run.debts is None or run.endings is None:
        return
    # Rounding is as large as the largest payment so far allows: at γ = ½ a reward of 1 is repaid with a million.
    paid = np.vstack((np.zeros_like(run.shaped[:1]), np.maximum.accumulate(np.abs(run.shaped), axis=0)))
    places = run.places
    scale = np.abs(run.debts) + np.abs(run.endings) + run.stream.lent_before[places] + paid[places] + TINY
    for k, b in np.argwhere(~(np.abs(run.debts + run.endings) <= run.subject.epsilon * scale))[:1]:
        t, what = places[k], "`owed` disagrees with what is actually repaid"
        raise Finding("debt", what, run.stream[:t], t, b, -run.endings[k, b], run.debts[k, b])


def _check_drop(run: Run, t: int, state: State, way: Continuation, scale: np.ndarray) -> None:
    """Check that `drop` clears the debt of the given environments, and changes nothing for the others."""
    subject, transform, B = run.subject, run.subject.transform, int(run.shaped.shape[1])
    b = np.arange(B)

    def same(found: np.ndarray, due: np.ndarray | float, what: str) -> None:
        bad = ~(np.abs(found - due) <= subject.epsilon * scale)
        refuse_where(bad[None], "debt", what, run.stream[:t], found[None], np.broadcast_to(due, bad.shape)[None], t)

    debt, before = as_numpy(owed(transform, state)), way.paid_from(state)
    overwrite(owed(transform, state))
    for who, where in {"nobody": b < 0, "everyone": b >= 0, "the first": b == 0, "every second": b % 2 == 1}.items():
        after, dropped = drop(transform, state, subject.flags(where))
        left, paid = np.where(where, 0.0, debt), way.paid_from(after)
        same(-worth(subject.gamma, way.stream, paid)[0], left, f"after drop of {who} the wrong debt is repaid")
        same(as_numpy(dropped), debt - left, f"drop of {who} returns another debt than owed")
        moved = np.where(where, 0.0, np.abs(paid - before).max(axis=0))
        same(moved, 0.0, f"drop of {who} changes the shaped rewards of the others")
    again = np.abs(way.paid_from(state) - before).max(axis=0)
    same(again, 0.0, "owed or drop changes the state that it was given, or returns a view of it")


def check_falls_due(subject: Subject, stream: Stream) -> None:
    """Check that a match with `falls_due_alone` repays a reward that nothing follows, no end either: γ^n Debt_n → 0."""
    if len(stream.rewards) < LONG_ENOUGH or stream.dones.any() or not stream.rewards.any():
        return
    state, transform, left = subject.init(1), subject.transform, np.inf
    first, later = Continuation(subject, stream[:2]).rows
    for t in range(len(stream.rewards)):
        state, _ = transform.update(state, *(later if t else first))
        if (t + 1) % 50 == 0:
            left = float(as_numpy(owed(transform, state))[0]) * subject.gamma ** (t + 1)
            if abs(left) <= 0.5 * stream.size:
                return
    what = f"falls_due_alone is set, but {len(stream.rewards):,} steps later the reward has not been repaid"
    raise Finding("debt", what, stream, len(stream.rewards) - 1, owed=left)  # NaN if the debt has overflowed


def check_repeated_calls(run: Run) -> None:
    """Check that the same state and reward give the same answer, however often and late `update` is called."""
    what = "update returns something else when it is called again with the same arguments: it keeps hidden state"
    for t, row in enumerate(Continuation(run.subject, run.stream).rows):
        if run.states[t] is not None:
            again, before = as_numpy(run.subject.update(run.states[t], *row)[1])[None], run.shaped[t : t + 1]
            refuse_where(again != before, "purity", what, run.stream, again, before, t)


def check_own_memory(run: Run) -> None:
    """Check that nothing changes if the caller overwrites its arrays, and the shaped rewards, after each step."""
    state = run.subject.init(run.shaped.shape[1])
    shaped = Continuation(run.subject, run.stream).paid_from(state, reuse=True)
    what = "it keeps a view of an array that it was given or returned; keep a copy, because callers reuse their arrays"
    refuse_where(shaped != run.shaped, "purity", what, run.stream, shaped, run.shaped)


def check_drift(wide: np.ndarray, narrow: np.ndarray, stream: Stream) -> None:
    """Check that float32 stays near float64: the rounding error of debt ← debt/γ + F − due grows as γ⁻ᵗ."""
    scale = np.maximum.accumulate(np.abs(wide), axis=0) + stream.size
    for t, b in np.argwhere(~(np.abs(wide - narrow) <= MAX_DRIFT * scale))[:1]:
        what = (
            f"float32 pays {narrow[t, b]:.6g} where float64 pays {wide[t, b]:.6g}: rounding errors grow from step to "
            "step; keep the rewards and sum them anew instead of carrying debt ← debt/γ"
        )
        raise Finding("precision", what, stream, t, b, narrow[t, b], wide[t, b])
