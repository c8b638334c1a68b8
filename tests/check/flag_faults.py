"""Faults in the use of `valid` and `settle`, and in the forms in which arrays and flags are passed."""

import numpy as np

import payback
from payback import RewardTransform

from .planting import GAMMA, MATCH, WHEN, counted, each, half, only, own_match, plain


def event_takes_own_reward() -> RewardTransform:
    """An event settles, and forgets to keep its own reward as a new loan."""
    match = payback.match_when(GAMMA)

    def update(state, reward, done, valid=None, settle=None):
        new, shaped = match.update(state, reward, done, valid, settle)
        if settle is None:
            return new, shaped
        return new._replace(lent=np.where(settle & ~done, 0, new.lent)), shaped

    return RewardTransform(match.init, update)


def ends_dropped() -> RewardTransform:
    """Beside one invalid row, the end of no environment is noticed."""

    def update(state, reward, done, valid=None, settle=None):
        return MATCH.update(state, reward, done & (valid is None or valid.all()), valid, settle)

    return RewardTransform(MATCH.init, update)


def not_flagged(which: str) -> RewardTransform:
    """Negates a flag with `~`: right for booleans, true for every integer."""

    def update(state, reward, done, valid=None, settle=None):
        open_ = ~done if which == "done" else ~done.astype(bool)
        shaped = np.where(open_, reward, -state)
        new = np.where(open_, (state + reward) / np.asarray(GAMMA, reward.dtype), 0)
        if valid is not None:
            bad = ~valid if which == "valid" else ~valid.astype(bool)
            shaped, new = np.where(bad, 0, shaped), np.where(bad, state, new)
        return new, shaped

    return own_match(update=update)


def late_event(age: int) -> RewardTransform:
    return counted(lambda x, n, done, event: np.where(event & ~done & (n > age), 2 * x, x), match=WHEN)


def first_event() -> RewardTransform:
    return counted(lambda x, n, done, event: np.where(event & ~done & (n == 0), x + 1, x), match=WHEN)


def poisoned_by_nan() -> RewardTransform:
    """Multiplies invalid rewards by 0, which leaves NaN."""

    def update(state, reward, done, valid=None, settle=None):
        if valid is None:
            return MATCH.update(state, reward, done, valid, settle)
        new, shaped = MATCH.update(state, reward, done, valid, settle)
        return new, shaped + (reward * ~np.array(valid, dtype=bool)) * 0

    return RewardTransform(MATCH.init, update)


def resets_where_nobody_is_valid() -> RewardTransform:
    def update(state, reward, done, valid=None, settle=None):
        if valid is not None and len(reward) > 2 and not np.any(valid):
            return MATCH.init(reward), np.zeros_like(reward)
        return MATCH.update(state, reward, done, valid, settle)

    return RewardTransform(MATCH.init, update)


def marked_and_late() -> RewardTransform:
    def update(state, reward, done, valid=None, settle=None):
        inner, steps = state
        inner, shaped = MATCH.update(inner, reward, done, valid, settle)
        return (inner, steps + 1), shaped / 2 if valid is not None and steps > 300 else shaped

    return RewardTransform(lambda example: (MATCH.init(example), 0), update)


def gap_forgets(rows: int) -> RewardTransform:
    """Forgets everything after so many invalid rows in a row."""

    def update(state, reward, done, valid=None, settle=None):
        inner, gap = state
        live = np.ones(len(reward), bool) if valid is None else np.asarray(valid, bool)
        gap = np.where(live, 0, gap + 1)
        inner, shaped = MATCH.update(inner, reward, done, valid, settle)
        return (inner._replace(loans=np.where(gap >= rows, 0, inner.loans)), gap), shaped

    return RewardTransform(lambda example: (MATCH.init(example), np.zeros(len(example), int)), update)


def many_events(count: int) -> RewardTransform:
    """Counts an episode's events, and no longer settles after so many."""

    def update(state, reward, done, valid=None, settle=None):
        inner, events = state
        live = np.ones(len(reward), bool) if valid is None else np.asarray(valid, bool)
        flags = live & (np.zeros(len(reward), bool) if settle is None else np.asarray(settle, bool))
        before = WHEN.owed(inner)
        inner, shaped = WHEN.update(inner, reward, done, valid, settle)
        late = flags & ~np.asarray(done, bool) & (events >= count)
        events = np.where(live & np.asarray(done, bool), 0, events + flags)
        return (inner, events), np.where(late, shaped + before, shaped).astype(shaped.dtype)

    return RewardTransform(lambda example: (WHEN.init(example), np.zeros(len(example), int)), update)


def two_events_in_a_row() -> RewardTransform:
    def update(state, reward, done, valid=None, settle=None):
        inner, last = state
        flags = np.zeros(len(reward), bool) if settle is None else np.asarray(settle, bool)
        inner, shaped = WHEN.update(inner, reward, done, valid, settle)
        live = np.ones(len(reward), bool) if valid is None else np.asarray(valid, bool)
        bad = flags & last & live & ~np.asarray(done, bool)
        return (inner, np.where(live, flags & ~np.asarray(done, bool), last)), np.where(bad, reward, shaped)

    return RewardTransform(lambda example: (WHEN.init(example), np.zeros(len(example), bool)), update)


def event_in_invalid_row() -> RewardTransform:
    """Settles, and forgets, at an event of an invalid row."""

    def update(state, reward, done, valid=None, settle=None):
        new, shaped = WHEN.update(state, reward, done, valid, settle)
        if valid is None or settle is None:
            return new, shaped
        return new._replace(lent=np.where(~np.asarray(valid, bool) & np.asarray(settle, bool), 0, new.lent)), shaped

    return RewardTransform(WHEN.init, update)


FLAGS: dict[str, dict[str, RewardTransform]] = {
    "invalid rows are paid": {
        "bonus on autoreset rows": each(plain(3), invalid_pays=True),
    },
    "invalid rows change the valid ones": {
        "autoreset rows move the clock": each(plain(3), invalid_moves=True),
        "reset where nobody is valid": resets_where_nobody_is_valid(),
        "ends dropped beside an invalid row": ends_dropped(),
        "wrong where rows are marked": only(lambda r, d, v, s: v is not None and v.all() and d.any(), half),
    },
    "many invalid rows": {
        "forgets after 8 invalid rows": gap_forgets(8),
        "forgets after 40 invalid rows": gap_forgets(40),
    },
    "an event": {
        "an event forgets its own reward": event_takes_own_reward(),
        "event at the first step paid": first_event(),
        "an event in an invalid row": event_in_invalid_row(),
        "the second of two events in a row": two_events_in_a_row(),
        "wrong where an event ends the episode": only(
            lambda r, d, v, s: s is not None and (s & d).any(), half, payback.match_when(GAMMA)
        ),
    },
    "late in an episode or in training": {
        "event after 100 steps repaid twice": late_event(100),
        "event after 1000 steps repaid twice": late_event(1000),
        "marked rows after 300 steps": marked_and_late(),
    },
    "many events": {
        "no settlement after 100 events": many_events(100),
        "no settlement after 255 events": many_events(255),
    },
    "integer flags": {
        "integer done negated": not_flagged("done"),
        "integer valid negated": not_flagged("valid"),
    },
    "NaN in invalid rows": {
        "NaN in invalid rows gets out": poisoned_by_nan(),
    },
    "memory layout": {
        "step wrong where rewards are not contiguous": only(
            lambda r, d, v, s: len(r) > 1 and not r.flags.c_contiguous and d.any(), half
        ),
    },
}
