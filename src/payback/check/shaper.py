"""`check_transform`: is shaping code policy-invariant, on streams made to find where it is not?"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from payback.check import equivalence, properties
from payback.check import plan as streams
from payback.check.counterexample import Trial
from payback.check.episode_function import check_function
from payback.check.plan import COMPILED, Effort, Plan, plan_for
from payback.check.report import CheckReport
from payback.check.stream import Finding, Stream, episodes_of
from payback.check.subject import FLOAT64, Run, Subject, step_through, subject_of
from payback.core.arrays import Array
from payback.core.errors import InvarianceError
from payback.core.transform import Match, RewardTransform
from payback.core.validate import read_gamma

Shaper = RewardTransform | Callable[[Any], Any]

OF_TRANSFORMS = ("zero sum", "policy invariance", "invalid rows", "purity", "rollout", "precision", "input")
MANY = 130  # with more environments, an end is tried before the first and after the last step only
LONG, VERY_LONG, STRIDE = 3_000, 5_000, 64  # an end is tried before every `STRIDE` steps of a very long stream


def check_transform(
    shaper: Shaper, gamma: float, *, example: Array | None = None, effort: Effort = "normal", seed: int = 0
) -> CheckReport:
    """Raise `InvarianceError` unless shaping code is policy-invariant, on streams made to find where it is not.

        Σ_t γ^t F'_t = 0 in every finished episode                               (zero sum)
        F'_t depends on nothing after t, nor on when the episode ends            (causality)
        Σ_{n≥t} γ^(n−t) F'_n = −Debt_t for every way to go on from step t        (policy invariance)

    `shaper` is a `RewardTransform`, or a function that takes one episode's rewards (N,) and returns the shaped
    rewards (N,). The function must not remember earlier episodes.

    A transform is also checked for: environments that are independent of each other, invalid rows, events, blocks
    that equal stepping, updates that are pure and share no array with the caller, arrays that are strided or read-only,
    flags that are integers (or refused), float32 that stays near float64, and a match's `owed` and `drop`.
    Not detected: *when* a reward is repaid (compare with `match_episode` for that), and what only goes wrong beyond the
    streams that are run. The `CheckReport` counts them; docs/guarantee.md lists the limits.

    `example` is any array of the library, dtype and device to test in (default: NumPy float64, float32 and float16).
    `effort` is "quick" (about a second for a NumPy transform), "normal" (a few seconds) or "thorough" (minutes). The
    same call runs the same streams on every machine. JAX compiles every new shape, so it gets fewer.
    The error shows the smallest counter-example found, and holds it: `rewards`, `step`, `paid`, `owed`, `violated`.

    >>> import payback
    >>> check_transform(payback.grm(0.99, delay=3), gamma=0.99, effort="quick")
    CheckReport(properties=('zero sum', ...), streams=..., longest_episode=3000, ...)
    >>> check_transform(payback.scale(0.1), gamma=0.99)
    Traceback (most recent call last):
    payback.InvarianceError: zero sum: an episode of 1 steps sums to 0.1, not 0 ...
    """
    gamma, plan, start = read_gamma(gamma), plan_for(effort, seed), time.perf_counter()
    _refuse_what_is_no_shaper(shaper)
    if isinstance(shaper, Match) and not np.isclose(shaper.gamma, gamma, rtol=1e-12, atol=0):
        what = f"the transform repays with interest at γ = {shaper.gamma}, the learner discounts with {gamma}"
        raise InvarianceError(f"wrong gamma: {what}; build it with the learner's", violated="gamma")
    if isinstance(shaper, RewardTransform):
        report = TransformCheck(shaper, gamma, example, plan).run()
    else:
        report = check_function(shaper, gamma, plan)
    return replace(report, seconds=time.perf_counter() - start)


class TransformCheck:
    """A transform in the caller's dtype or float64 (`main`), in float32 and float16, and the report so far."""

    def __init__(self, transform: RewardTransform, gamma: float, example: Array | None, plan: Plan) -> None:
        checked = (*OF_TRANSFORMS, "debt") if isinstance(transform, Match) else OF_TRANSFORMS
        self.report = CheckReport(checked, pays_nothing=True)
        self.main = subject_of(transform, np.zeros(1) if example is None else example, gamma)
        self.single = self.half = None
        if example is None:
            self.single, self.half = (self._unless_refused(transform, gamma, dtype) for dtype in ("f4", "f2"))
        self.plan = plan
        if self.main.compiled:
            self.plan = replace(COMPILED, random=min(COMPILED.random, plan.random), seed=plan.seed)

    def run(self) -> CheckReport:
        """Check the transform on every stream of the plan, the cheapest first."""
        seed = self.plan.seed
        self._small()
        if not self.main.compiled:
            for stream in streams.form_streams(seed):
                self._try(equivalence.check_forms, self.main, stream)
            for stream in streams.batch_streams(seed, self.plan.batch_sizes):
                self._try(check_batch, self.main, stream)
        if isinstance(self.main.transform, Match) and self.main.transform.falls_due_alone:
            rewards = np.eye(properties.LONG_ENOUGH, 1)
            stream = Stream("one reward, then none and no end", rewards, np.zeros(rewards.shape, dtype=bool))
            with np.errstate(over="ignore", invalid="ignore"):  # a debt that nobody repays overflows
                Trial(partial(properties.check_falls_due, self.main), self.main).run(stream)
        for k, stream in enumerate(streams.random_streams(seed, self.plan.random)):
            self._try(check_stream, (k % 3 == 0 and self.single) or self.main, stream)
        self._long()
        return self.report

    def _try(self, check: Callable[[Subject, Stream], Any], subject: Subject | None, stream: Stream) -> Run | None:
        """Check one stream, unless its dtype is refused; count it, and return the run on it."""
        if subject is None:
            return None
        # Interest may overflow on the longest streams: the shaped rewards are checked, NumPy's warning is not.
        with np.errstate(over="ignore", invalid="ignore"):
            result: Any = Trial(partial(check, subject), subject, partial(check_repayment, subject)).run(stream)
        self.report = self.report.with_stream(stream, subject.library, subject.dtype)
        if check is equivalence.check_forms:
            self.report = self.report.with_refused(*result)
        elif result is not None and result.shaped.any():
            self.report = replace(self.report, pays_nothing=False)
        return result

    def _unless_refused(self, transform: RewardTransform, gamma: float, dtype: str) -> Subject | None:
        """Return the subject, or None if the transform refuses its dtype: a long delay may refuse float32."""
        subject = subject_of(transform, np.zeros(1, dtype), gamma)
        try:
            subject.update(subject.init(1), subject.floats(np.ones(1)), np.array([False]))
        except Exception:  # whatever else is wrong will be found, and shown, in float64
            self.report = self.report.with_refused(subject.dtype)
            return None
        return subject

    def _small(self) -> None:
        """Check every third small stream in float32, too, and the plain ones in float16."""
        seed = self.plan.seed
        for k, stream in enumerate(streams.small_streams(seed)):
            self._try(check_stream, self.main, stream)
            sizes = np.abs(stream.rewards[stream.rewards != 0])
            if k % 3 == 0:
                self._try(check_stream, self.single, stream)
            elif k % 3 == 1 and len(sizes) and sizes.max() < 10 and len(stream.rewards) < 15:
                self._try(check_stream, self.half, stream)
        for stream in streams.large_last_streams(seed):
            self._try(check_stream, self.main, stream)
            self._try(check_stream, self.single, stream)
        wide = streams.wide_range_streams(seed) if self.main.precision == FLOAT64 else ()
        for stream in (*streams.gap_streams(seed), *wide):
            self._try(check_stream, self.main, stream)
        self._try(check_stream, self.single, streams.large_float32_stream(seed))

    def _long(self) -> None:
        """Check the long streams in the main dtype, and in float32 where its rounding has time to grow."""
        # Rounding that grows as γ⁻ᵗ shows in float32 after so many steps.
        steps = 14 / (1 - self.main.gamma) if self.main.gamma < 1 else np.inf
        steps = int(steps) if LONG < steps <= 15_000 else LONG
        for stream in islice(streams.long_streams(self.plan.seed), self.plan.long):
            run, longest = self._try(check_stream, self.main, stream), episodes_of(stream).longest
            if run is not None and longest >= steps and (longest < VERY_LONG or steps > LONG):
                self._try(partial(_check_float32, wide=self.main), self.single, stream[: steps + 2])


def check_stream(subject: Subject, stream: Stream) -> Run:
    """Check every property on one stream, and return the run."""
    short, cuts = len(stream.rewards) <= equivalence.SHORT, _cuts(stream)
    stride = STRIDE if len(stream.rewards) > VERY_LONG else 1
    run = step_through(subject, stream, keep=None if short else set(cuts), stride=stride)
    properties.check_finite(subject, stream, run.shaped)
    equivalence.check_invalid_rows(run)
    properties.check_zero_sum(subject, stream, run.shaped)
    properties.check_repeated_calls(run)
    properties.check_owed(run)
    properties.check_debts(run, cuts)
    _check_each_step(run)
    if short and not subject.compiled:
        properties.check_own_memory(run)
        equivalence.check_block_leaves_state(run)
    equivalence.check_blocks(run)
    return run


def check_repayment(subject: Subject, stream: Stream) -> None:
    """Check zero sum and policy invariance between neighbouring steps: cheap, and finds most faults."""
    run = step_through(subject, stream, stride=1)
    properties.check_zero_sum(subject, stream, run.shaped)
    properties.check_each_step(run)


def check_batch(subject: Subject, stream: Stream) -> Run:
    """Check what may depend on the number of environments, on a few steps of many environments."""
    T, B = stream.rewards.shape
    run = step_through(subject, stream, keep=(T,), stride=1 if B <= MANY else T)
    properties.check_each_step(run)
    properties.check_zero_sum(subject, stream, run.shaped)
    properties.check_owed(run)
    if subject.has_block_form:
        equivalence.check_blocks(run, at_once=True)
    return run


def _check_float32(subject: Subject, stream: Stream, wide: Subject) -> Run:
    run = step_through(subject, stream, stride=STRIDE)
    if np.isfinite(run.shaped).all():
        properties.check_zero_sum(subject, stream, run.shaped)
        _check_each_step(run)
    elif subject.may_overflow(stream):
        raise OverflowError
    properties.check_drift(step_through(wide, stream).shaped, run.shaped, stream)
    return run


def _check_each_step(run: Run) -> None:
    """Check policy invariance between the places where an end was tried; name the very step that violates it."""
    try:
        properties.check_each_step(run)
    except Finding as found:
        if run.stride > 1:
            check_repayment(run.subject, run.stream[: found.step + run.stride + 1])
        raise


def _cuts(stream: Stream) -> list[int]:
    """Return the steps from which a stream is continued: few of a long one, where `check_each_step` sees the rest."""
    T = len(stream.rewards)
    ends = np.flatnonzero(stream.dones.any(axis=1))[-2:]
    places = {1, T, *np.linspace(0, T, 4).astype(int).tolist(), *(ends + 1).tolist(), *ends.tolist()}
    return sorted(range(T + 1) if T <= 5 else places)


def _refuse_what_is_no_shaper(shaper: Any) -> None:
    """Raise a TypeError for a class or object that shapes step by step, and for anything else that is no shaper."""
    if isinstance(shaper, RewardTransform):
        return
    takes = "check_transform takes a RewardTransform or a function of one episode's rewards"
    wrap = "write a function that makes one, steps it through the rewards and returns the shaped rewards"
    if isinstance(shaper, type):
        raise TypeError(f"{takes}, got the class {shaper.__name__}: {wrap}")
    if not callable(shaper):
        raise TypeError(f"{takes}, got {type(shaper).__name__}" + (f": {wrap}" if hasattr(shaper, "step") else ""))
    try:
        inspect.signature(shaper).bind(None)
    except TypeError:
        arguments = ", ".join(inspect.signature(shaper).parameters)
        raise TypeError(f"{takes}, got one of ({arguments}): {wrap}") from None
    except ValueError:  # built-in functions have no signature
        return
