"""Faults of a block form: it overwrites what it reads, ignores an argument, or differs from the step."""

import numpy as np

import payback
from payback import RewardTransform
from payback.core.transform import altered

from .planting import GAMMA


def block_forgets_border(match, state, rewards, dones, valid, settle):
    return match._block(match.init(rewards[0]), rewards, dones, valid, settle)


def block_keeps_old_state(match, state, rewards, dones, valid, settle):
    return state, match._block(state, rewards, dones, valid, settle)[1]


def late_at_borders(match, state, rewards, dones, valid, settle):
    """A block pays its first repayment one row late."""
    state, shaped = match._block(state, rewards, dones, valid, settle)
    if len(rewards) < 2 or dones[0].any() or valid is not None:
        return state, shaped
    shaped = np.array(shaped)
    shaped[1], shaped[0] = shaped[1] - rewards[0] + shaped[0], rewards[0]
    return state, shaped


def block_pays(change) -> RewardTransform:
    """A block form whose payments are changed by `change(rewards, dones, shaped)`."""

    def block(match, state, rewards, dones, valid, settle):
        result = match._block(state, rewards, dones, valid, settle)
        if result is NotImplemented:
            return result
        return result[0], change(rewards, dones, np.array(result[1]))

    return wrong_block(block)


def block_in_memory_order(match, state, rewards, dones, valid, settle):
    """Reads the block's memory as if its rows lay one after the other."""
    return match._block(state, rewards.ravel(order="K").reshape(rewards.shape), dones, valid, settle)


def block_loses_its_state(rows: int):
    def block(match, state, rewards, dones, valid, settle):
        result = match._block(state, rewards, dones, valid, settle)
        return (match.init(rewards[0]), result[1]) if result is not NotImplemented and len(rewards) > rows else result

    return block


def block_writes(change) -> RewardTransform:
    """A block form that does something to the arrays it was given, or hands out, after the correct answer."""

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


def wrong_block(change) -> RewardTransform:
    match = payback.match_after(GAMMA, 3)

    def rollout(state, rewards, dones, valid, settle):
        return change(match, state, rewards, dones, valid, settle)

    return altered(match, _block=rollout)


ROLLOUTS: dict[str, dict[str, RewardTransform]] = {
    "the border of a rollout": {
        "block forgets its border": wrong_block(block_forgets_border),
        "repayment late at rollout borders": wrong_block(late_at_borders),
    },
    "the returned state": {
        "block hands back the old state": wrong_block(block_keeps_old_state),
        "block loses its state after 1000 rows": wrong_block(block_loses_its_state(1000)),
    },
    "one number of steps": {
        "block wrong for one step": block_pays(lambda r, d, x: x / 2 if len(r) == 1 else x),
        "block wrong for 20 steps": block_pays(lambda r, d, x: x / 2 if len(r) == 20 else x),
        "block wrong for 128 steps": block_pays(lambda r, d, x: x / 2 if len(r) == 128 else x),
    },
    "no steps": {
        "a block of no steps resets": wrong_block(empty_block),
    },
    "under one condition": {
        "block wrong for 64 environments": block_pays(lambda r, d, x: x / 2 if r.shape[1] == 64 else x),
        "block wrong for 8 environments": block_pays(lambda r, d, x: x / 2 if r.shape[1] == 8 else x),
        "block wrong in float32": block_pays(lambda r, d, x: x / 2 if r.dtype == np.float32 else x),
        "block settles by subtraction": block_pays(lambda r, d, x: np.where(d, (r + x) - r, x)),
        "block wrong where all end at its last row": block_pays(
            lambda r, d, x: x / 2 if d.shape[1] > 1 and d[-1].all() else x
        ),
    },
    "invalid rows": {
        "block ignores invalid rows": wrong_block(block_ignores_valid),
    },
    "overwritten inputs": {
        "block writes into its rewards": block_writes(_spoils_rewards),
        "block writes into its state": block_writes(_spoils_state),
    },
    "a view of the rollout": {
        "block keeps the rollout's memory": block_writes(_keeps_block),
    },
    "memory layout": {
        "block wrong where rewards are not contiguous": wrong_block(block_in_memory_order),
    },
}
