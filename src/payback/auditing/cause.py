"""The causes that the auditor can name: each is a value, with one sentence that says what to look at."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Cause(Enum):
    """Why an episode does not sum to zero, as far as its numbers show it.

    >>> Cause.WRONG_GAMMA.value
    'wrong γ'
    >>> Cause.NEVER_REPAID.sentence
    'the bonus is paid as it is and nothing is repaid: is the shaping applied at all?'
    """

    NEVER_REPAID = "never repaid"
    WRONG_GAMMA = "wrong γ"
    CLIPPED = "clipped"
    CONSTANT_ADDED = "constant added"
    CONSTANT_FACTOR = "constant factor"
    AUTORESET_ROW = "autoreset row"
    LATE_RESET = "late reset"
    NEVER_RESET = "never reset"
    LAST_REWARD_KEPT = "last reward kept"
    UNPAID_END = "unpaid end"
    UNSETTLED_TRUNCATION = "unsettled truncation"
    CHANGED_AFTER_MATCHING = "changed after matching"
    ONE_STEP_EPISODE = "one-step episode"
    INVALID_ROW_PAID = "invalid row paid"
    UNKNOWN = "unknown"

    @property
    def sentence(self) -> str:
        """What happened, and where to look."""
        return _SENTENCES[self]


_SENTENCES = {
    Cause.NEVER_REPAID: "the bonus is paid as it is and nothing is repaid: is the shaping applied at all?",
    Cause.WRONG_GAMMA: "the episodes sum to zero at another γ: give the matching and the learner the same one",
    Cause.CLIPPED: "payments are cut off at a bound: clip the bonus before matching, never after",
    Cause.CONSTANT_ADDED: "the same amount is added to every step: add it to the environment's reward instead",
    Cause.CONSTANT_FACTOR: "every settlement is the same multiple of what was owed",
    Cause.AUTORESET_ROW: "without its first row the episode sums to zero: mark autoreset rows as invalid",
    Cause.LATE_RESET: "the episodes sum to zero if each ends one row later: `done` must mark the episode's last step",
    Cause.NEVER_RESET: "loans of the episode before are repaid in this one: the state must be reset at `done`",
    Cause.LAST_REWARD_KEPT: "what was owed is settled, but the last step keeps its own reward: repay it at once",
    Cause.UNPAID_END: "the last step does not settle what is owed: `done` must reach the matching",
    Cause.UNSETTLED_TRUNCATION: "only truncated episodes leave a debt: put the time limit inside the shaping, or audit "
    "with on_truncation='carry' if the learner bootstraps there",
    Cause.CHANGED_AFTER_MATCHING: "payments were changed after matching, for example divided by a running scale",
    Cause.ONE_STEP_EPISODE: "the only reward is lent and repaid at once, so that 0 must be paid",
    Cause.INVALID_ROW_PAID: "rows that are marked as invalid are paid: they must be paid 0",
    Cause.UNKNOWN: "the numbers fit none of the causes that the auditor knows",
}


class Diagnosis(NamedTuple):
    """A cause, with the numbers that speak for it."""

    cause: Cause
    detail: str
    """The cause's sentence, with the numbers of this log."""
    step: int | None = None
    """The step to look at; None for the last."""

    def __str__(self) -> str:
        """Write the cause and its sentence."""
        return f"{self.cause.value}: {self.detail}"


def because(cause: Cause, numbers: str = "", step: int | None = None) -> Diagnosis:
    """Return a diagnosis whose detail is the cause's sentence and, in parentheses, the numbers."""
    return Diagnosis(cause, f"{cause.sentence} ({numbers})" if numbers else cause.sentence, step)
