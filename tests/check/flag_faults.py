"""Faults in the use of `valid` and `settle`: long gaps, many events, events in invalid rows, flags that are cleared."""

import numpy as np

from payback import RewardTransform

from .conditional_faults import MATCH, WHEN


def writes_flags(which: str) -> RewardTransform:
    """Clears the flags it was given, once it has read them."""

    def update(state, reward, done, valid=None, settle=None):
        result = WHEN.update(state, reward, done, valid, settle)
        flags = valid if which == "valid" else settle
        if flags is not None and flags.flags.writeable:
            flags[:] = which == "valid"
        return result

    return RewardTransform(WHEN.init, update)


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


FLAGS: dict[str, RewardTransform] = {
    "clears the valid flags": writes_flags("valid"),
    "clears the event flags": writes_flags("settle"),
    "forgets after 8 invalid rows": gap_forgets(8),
    "forgets after 40 invalid rows": gap_forgets(40),
    "no settlement after 100 events": many_events(100),
    "no settlement after 255 events": many_events(255),
    "the second of two events in a row": two_events_in_a_row(),
    "an event in an invalid row": event_in_invalid_row(),
}
