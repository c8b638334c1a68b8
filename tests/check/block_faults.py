"""Faults of a block form: it writes where it reads, ignores what it is given, or pays otherwise than the step."""

import numpy as np

from payback import RewardTransform

from .conditional_faults import block_pays
from .planting import wrong_block


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


BLOCKS: dict[str, RewardTransform] = {
    "block writes into its rewards": block_writes(_spoils_rewards),
    "block writes into its state": block_writes(_spoils_state),
    "block keeps the rollout's memory": block_writes(_keeps_block),
    "a block of no steps resets": wrong_block(empty_block),
    "block ignores invalid rows": wrong_block(block_ignores_valid),
    "block wrong in float32": block_pays(lambda r, d, x: x / 2 if r.dtype == np.float32 else x),
    "block wrong where all end at its last row": block_pays(
        lambda r, d, x: x / 2 if d.shape[1] > 1 and d[-1].all() else x
    ),
}
