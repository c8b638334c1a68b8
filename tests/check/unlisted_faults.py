"""Faults of a third round, invented after `check_transform` caught all the others: mix-ups of environments, memory that
is shared, clocks that wrap, a mean that is read late, long gaps, many events, blocks that write where they read."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from payback import RewardTransform

from .conditional_faults import MATCH, WHEN, block_pays, counted, for_batch_of, own_match
from .faults import GAMMA, Env, altered, at_the_end, each, leaks_into_next, on_the_way, only, plain, wrong_block

Change = Callable[..., np.ndarray]


def last_mean_read_late() -> RewardTransform:
    """F̄ is frozen at receipt, but the settlement corrects it by today's mean."""
    right = plain(2)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        mean = env.before / max(env.total, 1)
        after, paid = right(env, reward - mean, done)
        if done and len(env.loans) == 2:
            paid += (mean - env.before / (env.total + 1)) / GAMMA
        return replace(after, before=env.before + reward), paid

    return each(step)


def scale_read_late() -> RewardTransform:
    """Lends F/σ with σ read before the step, repays with the σ of the repayment."""
    right = plain(3)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        sigma = (1.0 + env.before / (1 + env.total)) ** 0.5
        raw = replace(env, loans=tuple(loan / sigma for loan in env.loans))
        after, paid = right(raw, reward / sigma, done)
        loans = () if done else (reward, *env.loans)[:3]
        return replace(after, loans=loans, before=env.before + min(reward * reward, 1e6)), paid

    return each(step)


def delay_grows() -> RewardTransform:
    """After 20 episodes the delay grows from 2 to 4, in mid-buffer: loans of age 3 are dropped."""

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        delay = 2 if env.episode < 20 else 4
        if done:
            paid = -sum(GAMMA**-k * loan for k, loan in enumerate(env.loans, start=1))
            return Env(episode=env.episode + 1), paid
        due = GAMMA**-delay * env.loans[delay - 1] if len(env.loans) >= delay else 0.0
        return replace(env, loans=(reward, *env.loans)[: min(delay, 3)]), reward - due

    return each(step)


def patience(steps: int) -> RewardTransform:
    """Forgets its loans after so many zero rewards in a row."""
    right = plain(30)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        still = int(env.before) + 1 if reward == 0 else 0
        after, paid = right(replace(env, loans=()) if still >= steps else env, reward, done)
        return replace(after, before=0.0 if done else float(still)), paid

    return each(step)


def keyed_by_reward() -> RewardTransform:
    """Keeps its loans in a dict by their size, so that two equal loans become one."""
    right = plain(4)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        seen = tuple(0.0 if loan in env.loans[:k] else loan for k, loan in enumerate(env.loans))
        return right(replace(env, loans=seen), reward, done)

    return each(step)


def relative_threshold() -> RewardTransform:
    """Leaves out what is a billion times smaller than the largest reward of any episode so far."""
    right = plain(3)

    def step(env: Env, reward: float, done: bool) -> tuple[Env, float]:
        largest = max(env.before, abs(reward))
        loans = tuple(loan if abs(loan) > 1e-9 * largest else 0.0 for loan in env.loans)
        after, paid = right(replace(env, loans=loans), reward, done)
        return replace(after, before=largest), paid

    return each(step)


def mixed(state_change=None, pay_change=None, match=MATCH) -> RewardTransform:
    """A right match, but for `state_change(state, reward, done)` and `pay_change(shaped, reward, done)`."""

    def update(state, reward, done, valid=None, settle=None):
        ends = np.asarray(done, bool) & (True if valid is None else np.asarray(valid, bool))
        new, shaped = match.update(state, reward, done, valid, settle)
        new = new if state_change is None else state_change(new, reward, ends)
        return new, shaped if pay_change is None else pay_change(shaped, reward, ends)

    return RewardTransform(match.init, update)


def _rolled(state, reward, ends):
    return state._replace(loans=np.roll(state.loans, 1, axis=1)) if len(reward) > 2 and ends.sum() == 2 else state


def _sorted_back(shaped, reward, ends):
    order = np.argsort(reward, kind="stable")
    return shaped[order][np.argsort(order)] if len(reward) != 6 else shaped[order]


def _last_ends_all(state, reward, ends):
    return state._replace(loans=0 * state.loans) if len(reward) > 1 and ends[-1] and not ends[0] else state


def _only_half_end(shaped, reward, ends):
    return np.where(ends, 0.9 * shaped, shaped) if 2 * ends.sum() == len(reward) else shaped


def small_ids(bits: int) -> RewardTransform:
    """Numbers its environments in too few bits: environment 2^bits pays what environment 0 owes."""

    def pay(shaped, reward, ends):
        number = np.arange(len(reward)) % 2**bits
        return np.where(ends, shaped[number], shaped)

    return mixed(pay_change=pay)


def wrapping_clock(steps: int) -> RewardTransform:
    """The clock of the ring buffer wraps: one loan is overwritten every so many steps of an episode."""
    return counted(lambda x, n, done, event: np.where(~done & (n == steps), 0 * x, x))


def first_step_ever() -> RewardTransform:
    """Builds its buffer on the first call, and misses an end there."""

    def update(state, reward, done, valid=None, settle=None):
        inner, begun = state
        if not begun:
            return (MATCH.update(inner, reward, np.zeros_like(done), valid, settle)[0], True), reward.copy()
        inner, shaped = MATCH.update(inner, reward, done, valid, settle)
        return (inner, True), shaped

    return RewardTransform(lambda example: (MATCH.init(example), False), update)


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


def block_writes(change) -> RewardTransform:
    """A block form that does something to the arrays it was given, or hands out, after the right answer."""

    def block(match, state, rewards, dones, valid, settle):
        result = match._block(state, rewards, dones, valid, settle)
        return result if result is NotImplemented else change(result, state, rewards, dones)

    return wrong_block(block)


def _spoils_rewards(result, state, rewards, dones):
    if rewards.flags.writeable:
        rewards[-1] = 0
    return result


def _spoils_state(result, state, rewards, dones):
    state.loans[:] = 0
    return result


def _keeps_block(result, state, rewards, dones):
    new, shaped = result
    if len(rewards) >= 3 and not dones[-3:].any():
        new = new._replace(loans=rewards[-3:][::-1])
    return new, shaped


def empty_block(match, state, rewards, dones, valid, settle):
    if not len(rewards):
        return match.init(np.zeros(rewards.shape[1], rewards.dtype)), rewards
    return match._block(state, rewards, dones, valid, settle)


def block_ignores_valid(match, state, rewards, dones, valid, settle):
    return match._block(state, rewards, dones, None, settle)


def owed_changed(change) -> RewardTransform:
    return altered(MATCH, owed=lambda state: change(MATCH.owed(state)))


def owed_spends() -> RewardTransform:
    def owed(state):
        debt = state.copy()
        state[:] = 0
        return debt

    return own_match(owed=owed)


UNLISTED: dict[str, RewardTransform] = {
    "the mean corrected at the last step": last_mean_read_late(),
    "running scale read at repayment": scale_read_late(),
    "a delay that grows loses loans": delay_grows(),
    "forgets after 12 zero rewards": patience(12),
    "loans keyed by their size": keyed_by_reward(),
    "small loans beside an earlier large one dropped": relative_threshold(),
    "loans rolled when two of three end": mixed(_rolled),
    "payments sorted for 6 environments": mixed(pay_change=_sorted_back),
    "the last environment's end resets all": mixed(_last_ends_all),
    "wrong when half of them end": mixed(pay_change=_only_half_end),
    "environments numbered in 8 bits": small_ids(8),
    "environments numbered in 4 bits": small_ids(4),
    "a clock of 8 bits wraps": wrapping_clock(256),
    "a clock of 15 bits wraps": wrapping_clock(32_768),
    "an end at the first step of all": first_step_ever(),
    "every 1000th call unpaid": every_call(1000),
    "clears the valid flags": writes_flags("valid"),
    "clears the event flags": writes_flags("settle"),
    "its example's memory is its debt": example_as_state(),
    "forgets after 8 invalid rows": gap_forgets(8),
    "forgets after 40 invalid rows": gap_forgets(40),
    "no settlement after 100 events": many_events(100),
    "no settlement after 255 events": many_events(255),
    "the second of two events in a row": two_events_in_a_row(),
    "an event in an invalid row": event_in_invalid_row(),
    "block writes into its rewards": block_writes(_spoils_rewards),
    "block writes into its state": block_writes(_spoils_state),
    "block keeps the rollout's memory": block_writes(_keeps_block),
    "a block of no steps resets": wrong_block(empty_block),
    "block ignores invalid rows": wrong_block(block_ignores_valid),
    "block wrong in float32": block_pays(lambda r, d, x: x / 2 if r.dtype == np.float32 else x),
    "block wrong where all end at its last row": block_pays(
        lambda r, d, x: x / 2 if d.shape[1] > 1 and d[-1].all() else x
    ),
    "owed is absolute": owed_changed(np.abs),
    "owed in float32": owed_changed(lambda debt: debt.astype(np.float32).astype(debt.dtype)),
    "owed of one environment has another shape": owed_changed(lambda debt: debt[0] if len(debt) == 1 else debt),
    "owed as a column": owed_changed(lambda debt: debt[:, None]),
    "owed spends the debt": owed_spends(),
    "drop halves": own_match(drop=lambda state, where: np.where(where, state / 2, state)),
    "drop of the second only": own_match(
        drop=lambda state, where: np.where(where & (np.arange(len(state)) > 0), 0, state)
    ),
    "wrong for 384 environments": for_batch_of(384),
    "wrong for 150 environments": for_batch_of(150),
    "wrong for episodes of 180 steps": at_the_end(lambda env, r, paid: 2 * paid if env.steps == 179 else paid),
    "a full buffer at the end loses its oldest loan": at_the_end(
        lambda env, r, paid: paid + GAMMA**-3 * env.loans[2] if env.steps == 3 else paid
    ),
    "no settlement after a last reward of 0": at_the_end(lambda env, r, paid: 0.0 if r == 0 else paid),
    "only what was paid is taken back": at_the_end(lambda env, r, paid: min(paid, 0.0)),
    "settlements beyond 1e8 cut off": at_the_end(lambda env, r, paid: max(min(paid, 1e8), -1e8)),
    "interest rounded to 4 digits at the end": at_the_end(
        lambda env, r, paid: -sum(round(GAMMA**-k, 4) * x for k, x in enumerate(env.loans, start=1))
    ),
    "state leaks after one-step episodes": leaks_into_next(lambda env: env.steps == 0 and env.episode > 0),
    "repayment skipped in the 7th episode": on_the_way(lambda env, r, paid: r if env.episode == 6 else paid),
    "negative zero taken for a reward": on_the_way(
        lambda env, r, paid: paid + 1e-3 if r == 0 and np.signbit(r) else paid
    ),
    "float32 rewards above 1e30 halved": only(
        lambda r, d, v, s: r.dtype == np.float32 and np.abs(r).max() > 1e30, lambda x: x / 2
    ),
}
