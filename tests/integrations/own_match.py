"""A match of a user's own: half of each reward is taken back one step later, half two steps later."""

from typing import Any, NamedTuple

import payback


class Halves(NamedTuple):
    """The loans of the last two steps, (B,) each."""

    newest: Any
    older: Any


def forgets_the_end(match: payback.Match) -> payback.Match:
    """Return the match without its settlement at `done`, as a user may get it wrong: what is open is forgotten."""

    def update(state: Any, reward: Any, done: Any, valid: Any = None, settle: Any = None) -> tuple[Any, Any]:
        state, shaped = match.update(state, reward, done & ~done, valid, settle)
        return match.drop(state, done), shaped

    falls = match.falls_due_alone
    return payback.Match(match.init, update, gamma=match.gamma, owed=match.owed, drop=match.drop, falls_due_alone=falls)


def halves(xp: Any, gamma: float) -> payback.Match:
    """Write the match for NumPy or Torch arrays, as a user would."""

    def init(example: Any) -> Halves:
        return Halves(xp.zeros_like(example), xp.zeros_like(example))

    def owed(state: Halves) -> Any:
        return state.newest / gamma + state.older / 2 / gamma**2

    def update(state: Halves, reward: Any, done: Any, valid: Any = None, settle: Any = None) -> tuple[Halves, Any]:
        due = state.newest / 2 / gamma + state.older / 2 / gamma**2
        shaped = xp.where(done, -owed(state), reward - due)
        after = Halves(xp.where(done, 0.0, reward), xp.where(done, 0.0, state.newest))
        if valid is not None:
            shaped = xp.where(valid, shaped, 0.0)
            after = Halves(*(xp.where(valid, new, old) for new, old in zip(after, state, strict=True)))
        return after, shaped

    def drop(state: Halves, where: Any) -> Halves:
        return Halves(*(xp.where(where, 0.0, loans) for loans in state))

    return payback.Match(init, update, gamma=gamma, owed=owed, drop=drop, falls_due_alone=True)
