"""Faults of code that is not pure: hidden state, and memory that is shared with the caller."""

import numpy as np

import payback
from payback import RewardTransform

from .planting import GAMMA, MATCH, WHEN, by_subtraction, own_match


def shared_memory() -> RewardTransform:
    """Keeps its loans in one array that it writes into: a state kept for later is not what it was."""
    match = payback.match_after(GAMMA, 3)

    def update(state, reward, done, valid=None, settle=None):
        new, shaped = match.update(match.init(reward)._replace(loans=state.copy()), reward, done, valid, settle)
        state[:] = new.loans
        return state, shaped

    return RewardTransform(lambda example: match.init(example).loans, update)


def keeps_its_example() -> RewardTransform:
    """Takes the values of the example, which only gives shape and dtype, for a first loan."""

    def init(example):
        state = MATCH.init(example)
        return state._replace(loans=np.concatenate((example[None], state.loans[1:])))

    return RewardTransform(init, MATCH.update)


def keeps_the_callers_array() -> RewardTransform:
    """Keeps the reward array it was given as its loan of D = 1, without a copy."""

    def update(state, reward, done, valid=None, settle=None):
        due = state / np.asarray(GAMMA, reward.dtype)
        shaped = np.where(done, -due, reward - due)
        new = np.where(done, 0, reward) if done.any() else reward
        if valid is not None:
            shaped, new = np.where(valid, shaped, 0), np.where(valid, new, state)
        return new, shaped

    return RewardTransform(np.zeros_like, update)


def keeps_what_it_paid() -> RewardTransform:
    """match_at_end whose state holds the very array that it paid last."""

    def update(state, reward, done, valid=None, settle=None):
        debt, last = state
        debt = (debt + last) / np.asarray(GAMMA, reward.dtype)
        ends = np.array(done, dtype=bool)
        shaped = np.where(ends, -debt, reward)
        if valid is not None:
            old, (debt0, last0) = shaped, state
            shaped = np.where(valid, old, 0)
            kept = np.where(valid, np.where(ends, 0, old), last0)
            return (np.where(valid, np.where(ends, 0, debt), debt0), kept), shaped
        if ends.any():
            return (np.where(ends, 0, debt), np.where(ends, 0, reward)), shaped
        return (debt, shaped), shaped

    return RewardTransform(lambda example: (np.zeros_like(example), np.zeros_like(example)), update)


def shares_its_first_state() -> RewardTransform:
    """init hands out one and the same list, into which update writes."""
    states: dict[tuple[int, str], list[np.ndarray]] = {}

    def init(example):
        return states.setdefault((len(example), str(example.dtype)), [np.zeros_like(example)])

    def update(state, reward, done, valid=None, settle=None):
        new, shaped = by_subtraction(state[0], reward, done, valid)
        state[0] = new
        return state, shaped

    return RewardTransform(init, update)


def writes_and_restores() -> RewardTransform:
    """Negates the flags in place and back: a caller's read-only array raises."""

    def update(state, reward, done, valid=None, settle=None):
        np.logical_not(done, out=done)
        np.logical_not(done, out=done)
        return MATCH.update(state, reward, done, valid, settle)

    return RewardTransform(MATCH.init, update)


def every_call(count: int) -> RewardTransform:
    """A counter outside the state: every so many calls a payment is left out."""
    calls = [0]

    def update(state, reward, done, valid=None, settle=None):
        calls[0] += 1
        new, shaped = MATCH.update(state, reward, done, valid, settle)
        return new, 0 * shaped if calls[0] % count == 0 else shaped

    return RewardTransform(MATCH.init, update)


def writes_flags(which: str) -> RewardTransform:
    """Clears the flags it was given, once it has read them."""

    def update(state, reward, done, valid=None, settle=None):
        result = WHEN.update(state, reward, done, valid, settle)
        flags = valid if which == "valid" else settle
        if flags is not None and flags.flags.writeable:
            flags[:] = which == "valid"
        return result

    return RewardTransform(WHEN.init, update)


def example_as_state() -> RewardTransform:
    """Takes the memory of its example for its debt."""
    right = own_match()

    def init(example):
        if not example.flags.writeable:
            return np.zeros_like(example)
        example[:] = 0
        return example

    return RewardTransform(init, right.update)


PURITY: dict[str, dict[str, RewardTransform]] = {
    "hidden state": {
        "every 1000th call unpaid": every_call(1000),
    },
    "a state that is overwritten": {
        "state in shared memory": shared_memory(),
        "init shares its first state": shares_its_first_state(),
    },
    "the example": {
        "keeps its example": keeps_its_example(),
        "its example's memory is its debt": example_as_state(),
    },
    "the caller's rewards": {
        "keeps the caller's array": keeps_the_callers_array(),
        "keeps what it paid": keeps_what_it_paid(),
    },
    "the caller's flags": {
        "clears the event flags": writes_flags("settle"),
        "clears the valid flags": writes_flags("valid"),
        "writes into flags and restores them": writes_and_restores(),
    },
}
