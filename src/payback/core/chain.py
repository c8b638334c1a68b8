"""`chain`: feed the reward through several transforms, refusing an order that would break the law."""

from __future__ import annotations

import math
from typing import Any

from payback.core.arrays import Array, fields_of, is_tuple
from payback.core.transform import Door, Match, RewardTransform, State, drop, fit_of, raw_step
from payback.core.validate import OWN, Fit


def chain(*transforms: RewardTransform) -> RewardTransform:
    """Feed the reward through the transforms, first to last; the result is a `Match` exactly if one of them is.

    After a match only a constant `scale` may follow: clipping, centring, dividing by a drifting deviation or a second
    match would undo exact repayment, so they are refused here, when the chain is built.

    >>> import numpy as np, payback
    >>> shaping = chain(payback.clip(-1, 1), payback.scale(0.5))
    >>> shaping.update(shaping.init(np.zeros(2)), np.array([4.0, 0.5]), np.array([False, False]))[1]
    array([0.5 , 0.25])
    >>> chain(payback.center(), payback.match_at_end(0.9))
    chain(center(), match_at_end(gamma=0.9))
    """
    at = _match_place(transforms)
    steps = [raw_step(part) for part in transforms]

    def init(example: Array) -> State:
        return tuple(part.init(example) for part in transforms)

    def fit(state: State) -> Fit | None:
        length, found = len(transforms), None
        if not is_tuple(state) or fields_of(state) or len(state) != length:
            kind = type(state).__name__
            raise TypeError(f"chain of {length} transforms was given a state of another transform ({kind}); {OWN}")
        for part, part_state in zip(transforms, state):  # noqa: B905  strict takes half a microsecond more
            found = fit_of(part, part_state) or found
        return found

    def step(
        xp: Any, state: State, reward: Array, done: Array | None, valid: Array | None, settle: Array | None
    ) -> tuple[State, Array]:
        states: list[State] = []
        for part, part_state in zip(steps, state):  # noqa: B905
            part_state, reward = part(xp, part_state, reward, done, valid, settle)
            states.append(part_state)
        return tuple(states), reward

    call = f"chain({', '.join(map(repr, transforms))})"
    update, factors = Door("chain", fit, step), [part._factor for part in transforms]
    if at is None:
        constant = None if None in factors else math.prod(f for f in factors if f is not None)
        return RewardTransform(init, update, _factor=constant, _parts=transforms, _call=call)
    match, after = transforms[at], math.prod(f for f in factors[at + 1 :] if f is not None)
    assert isinstance(match, Match)

    def owed_of(state: State) -> Array:
        debt = match.owed(state[at])
        return debt if after == 1 else after * debt

    def drop_from(state: State, where: Array) -> State:
        return (*state[:at], drop(match, state[at], where)[0], *state[at + 1 :])

    return Match(
        init,
        update,
        gamma=match.gamma,
        owed=owed_of,
        drop=drop_from,
        falls_due_alone=match.falls_due_alone,
        _parts=transforms,
        _call=call,
    )


def _match_place(transforms: tuple[RewardTransform, ...]) -> int | None:
    """Return the place of the match in a chain, None if there is none; refuse an order that breaks the law."""
    if not transforms:
        raise ValueError("chain needs at least one transform")
    for k, part in enumerate(transforms):
        if not isinstance(part, RewardTransform):
            raise TypeError(f"chain: member {k} is a {type(part).__name__}, not a transform such as payback.center()")
    matches = [k for k, part in enumerate(transforms) if isinstance(part, Match)]
    if not matches:
        return None
    if len(matches) > 1:
        raise ValueError(
            f"chain: transforms {matches[0]} and {matches[1]} are both matches; "
            "what is repaid must not be repaid again: keep one"
        )
    for k, part in enumerate(transforms[matches[0] + 1 :], start=matches[0] + 1):
        if part._factor is None:
            raise ValueError(
                f"chain: transform {k} stands after the match and is not a constant scale; "
                "what changes rewards after they are matched breaks the guarantee: put it before the match"
            )
    return matches[0]
