"""A transform held to the laws on every stream of a plan, in float64, float32 and float16."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice

import numpy as np

from payback.check.counterexample import hold
from payback.check.debt import LONG_ENOUGH, check_falls_due
from payback.check.examine import DRIFTS, compare_precisions, examine, examine_batch, examine_repayment
from payback.check.input_forms import check_flag_dtypes, check_layouts, check_nan_in_invalid_rows
from payback.check.likely_cause import guess_cause
from payback.check.long_streams import long_streams
from payback.check.plan import COMPILED, Plan
from payback.check.purity import check_example
from payback.check.reward_patterns import episodes, with_events, with_invalid_rows
from payback.check.rounding import FLOAT64
from payback.check.short_streams import (
    batch_streams,
    gap_streams,
    large_float32_stream,
    large_last_streams,
    random_streams,
    small_streams,
    wide_range_streams,
)
from payback.check.stream import Stream
from payback.check.subject import Subject, subject_of
from payback.check.tried import Tried, with_stream
from payback.core.arrays import Array
from payback.core.transform import Match, RewardTransform


def check_on_all_streams(
    transform: RewardTransform, gamma: float, example: Array | None, plan: Plan, seed: int
) -> Tried:
    """Hold a transform to the laws on every stream of the plan; return what was tried."""
    first = subject_of(transform, np.zeros(1) if example is None else example, gamma)
    other = [] if example is not None else [subject_of(transform, np.zeros(1, dtype), gamma) for dtype in ("f4", "f2")]
    trials = Trials()
    single, half = (trials.unless_refused(subject) for subject in other or (None, None))
    if first.compiled:
        plan = replace(COMPILED, random=min(COMPILED.random, plan.random))
    _try_small(trials, first, single, half, seed)
    if not first.compiled:
        _try_forms(trials, first, seed)
        for stream in batch_streams(seed, plan.batch_sizes):
            trials.hold(examine_batch, first, stream)
    if isinstance(transform, Match) and transform.falls_due_alone:
        trials.hold(check_falls_due, first, _one_loan(10 * LONG_ENOUGH if _still_owes(first) else LONG_ENOUGH))
    _try_long(trials, first, single, plan, seed)
    for k, stream in enumerate(random_streams(seed, plan.random)):
        trials.hold(examine, single if single is not None and k % 3 == 0 else first, stream)
    return trials.tried


class Trials:
    """What has been tried so far."""

    def __init__(self) -> None:
        self.tried = Tried()

    def hold(self, law: Callable[[Subject, Stream], list[str] | None], subject: Subject, stream: Stream) -> None:
        """Hold a transform to a law on one stream, and count the stream."""
        dtype, refused = str(subject.example.dtype), list(self.tried.refused)

        def ask(stream: Stream) -> None:
            # Interest may overflow on the longest streams: what is then paid is judged, NumPy's warning is not.
            with np.errstate(over="ignore", invalid="ignore"):
                refused.extend(law(subject, stream) or ())

        cheap = partial(examine_repayment, subject)
        hold(ask, stream, subject.gamma, dtype, lambda: guess_cause(subject), cheap)
        self.tried = replace(with_stream(self.tried, stream, dtype), refused=tuple(dict.fromkeys(refused)))

    def unless_refused(self, subject: Subject | None) -> Subject | None:
        """Return the subject, or None where the transform refuses its dtype: a long delay may refuse float32."""
        if subject is None:
            return None
        try:
            subject.transform.update(subject.init(1), subject.floats(np.ones(1)), np.array([False]))
        except Exception:
            # What else is wrong is found, and shown, in float64.
            self.tried = replace(self.tried, refused=(*self.tried.refused, str(subject.example.dtype)))
            return None
        return subject


def _try_small(trials: Trials, first: Subject, single: Subject | None, half: Subject | None, seed: int) -> None:
    """Every third small stream is tried in float32, too, and the plain ones in float16."""
    for k, stream in enumerate(small_streams(seed)):
        trials.hold(examine, first, stream)
        if single is not None and k % 3 == 0:
            trials.hold(examine, single, stream)
        sizes = np.abs(stream.rewards[stream.rewards != 0])
        if half is not None and k % 3 == 1 and len(sizes) and sizes.max() < 10 and len(stream.rewards) < 15:
            trials.hold(examine, half, stream)
    for stream in large_last_streams(seed):
        for subject in (first, single):
            if subject is not None:
                trials.hold(examine, subject, stream)
    for stream in (*gap_streams(seed), *(wide_range_streams(seed) if first.precision == FLOAT64 else ())):
        trials.hold(examine, first, stream)
    if single is not None:
        trials.hold(examine, single, large_float32_stream(seed))


def _try_forms(trials: Trials, first: Subject, seed: int) -> None:
    """Hand over the same numbers in the forms that callers use."""
    rng = np.random.default_rng([seed, 5])
    plain = episodes("two episodes in each of three environments", rng, [[5, 4], [7, 2], [1, 8]], "normal")
    marked = with_invalid_rows(with_events(plain, rng), rng)
    trials.hold(check_example, first, plain)
    for stream in (plain, marked):
        trials.hold(check_layouts, first, stream)
        trials.hold(check_flag_dtypes, first, stream)
    trials.hold(check_nan_in_invalid_rows, first, marked)


def _try_long(trials: Trials, first: Subject, single: Subject | None, plan: Plan, seed: int) -> None:
    for k, stream in enumerate(islice(long_streams(seed), plan.long)):
        trials.hold(examine, first, stream)
        if single is not None and k % 3 == 1 and len(stream.rewards) <= DRIFTS[1]:
            trials.hold(examine, single, stream)
        if single is not None and DRIFTS[0] < len(stream.rewards) <= DRIFTS[1]:
            trials.hold(lambda narrow, s: compare_precisions(first, narrow, s), single, stream)


def _still_owes(subject: Subject) -> bool:
    """Whether so many steps are too few for a loan to fall due: the delay may be longer."""
    try:
        check_falls_due(subject, _one_loan(LONG_ENOUGH))
    except Exception:
        return True
    return False


def _one_loan(steps: int) -> Stream:
    rewards = np.zeros((steps, 1))
    rewards[0] = 1.0
    return Stream("one reward, then none and no end", rewards, np.zeros((steps, 1), dtype=bool))
