"""Centre rewards on F̄, the running mean of earlier rewards, which outlives episodes and merges across workers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from array_api_compat import is_jax_namespace

from payback.core.arrays import Array, Mask, cast_to, constant, namespace, plain, sum_of, wide_dtype
from payback.core.blocks import sums_before_rows, wide
from payback.core.transform import RewardTransform
from payback.core.validate import read_horizon, read_state


class CenterState(NamedTuple):
    """The running mean: scalars that the B environments share."""

    count: Array  # valid rewards seen: an integer, exact where a float32 would stop at 2²⁴
    weight: Array  # their weight in the mean: `count`, or less with a horizon
    mean: Array  # F̄
    lost: Array  # the rounding error of `mean` (Kahan); without it, a cumulative mean in float32 stops moving
    fade: Array  # the factor by which old rewards fade with each new one: 1 − 1/horizon, or 1
    merges: Array  # the number of merges so far
    shared = ("count", "weight", "mean", "lost", "merges")
    constants = ("fade",)


def center(horizon: float | None = None) -> RewardTransform:
    """Subtract the mean F̄ of all valid rewards of earlier calls: F'_t = F_t − F̄_t (conversion).

    The mean starts at 0, and all environments share it; under `jax.shard_map` those of one device, so pass
    `check_vma=False`. F̄_t is fixed when the reward arrives, so a match after it repays exactly what was paid. With
    `horizon`, a reward keeps (1 − 1/horizon)ⁿ of its weight after n more valid rewards. The paper uses a running mean
    within an epoch in one place, a cumulative mean over training in another.

    >>> import numpy as np, payback
    >>> subtract, F = center(), np.array([[2.0, 4.0], [3.0, 6.0]])
    >>> payback.shape_rollout(subtract, subtract.init(F[0]), F, F < 0)[1].tolist()
    [[2.0, 4.0], [0.0, 3.0]]
    """
    return _Center(plain(horizon))


def read_center(given: bool | RewardTransform) -> RewardTransform | None:
    """Return the transform that an argument `center` stands for, None for False."""
    if not isinstance(given, (bool, RewardTransform)):
        raise TypeError(f"center must be True, False or a transform such as payback.center(1000), got {given!r}")
    return given if isinstance(given, RewardTransform) else center() if given else None


@dataclass(frozen=True, repr=False)
class RunningStatistic(RewardTransform):
    """A statistic of all valid rewards of earlier calls, shared by all environments; with `horizon`, old ones fade."""

    horizon: float | None = None
    _kind: ClassVar[type[Any]]  # the state: sums, and `fade`
    _whole: ClassVar[tuple[str, ...]] = ()  # those of its sums that are integers
    _fade: ClassVar[float]

    def __post_init__(self) -> None:
        vars(self).update(_fade=read_horizon(self.horizon))

    @cached_property
    def _terms(self) -> np.ndarray:
        return np.array(self._fade)

    def init(self, example: Any, /) -> Any:
        """Begin without rewards."""
        xp = namespace(example)
        wide = wide_dtype(xp)
        whole = xp.uint32 if is_jax_namespace(xp) and wide == xp.float32 else xp.int64
        kinds = (whole if name in self._whole else wide for name in self._kind._fields)
        sums = self._kind(*(constant(xp, np.zeros(()), example, kind) for kind in kinds))
        return sums._replace(fade=constant(xp, self._terms, example, wide))

    def _expected(self, state: Any) -> None:
        read_state(self._name, state, self._kind, self._terms)


@dataclass(frozen=True, repr=False)
class _Center(RunningStatistic):
    _name = "center"
    _kind = CenterState
    _whole = ("count", "merges")

    def _step(self, xp: Any, state: Any, reward: Array, done: Mask, valid: Mask, settle: Mask) -> tuple[Any, Array]:
        wide = state.mean.dtype
        is_wide = reward.dtype == wide
        mean = state.mean if is_wide else cast_to(xp, state.mean, reward.dtype)
        shaped, seen = reward - mean, reward.size if xp is np else math.prod(reward.shape)
        if valid is not None:
            shaped, seen = xp.where(valid, shaped, 0.0), np.count_nonzero(valid) if xp is np else xp.sum(valid)
        excess = sum_of(shaped) if xp is np else xp.sum(shaped, dtype=wide)
        if not is_wide:
            # Σ (F − F̄) in the wide dtype, although F̄ was rounded to the reward's before it was subtracted.
            excess = excess + seen * (cast_to(xp, mean, wide) - state.mean)
        count = state.count + seen if xp is np else _add(state.count, seen)
        weight = count if self._fade == 1 else state.weight * state.fade**seen + seen
        old, lost = state.mean, state.lost
        if xp is np:  # Python's floats take a fraction of the time of NumPy's
            weight, old, lost = float(weight), float(old), float(lost)
        elif self._fade == 1:
            weight = count * state.fade
        # Before the first valid reward there is no weight, and nothing to divide.
        step = excess / (weight + (weight == 0)) + lost
        mean = old + step
        lost = step - (mean - old)
        if xp is np:
            weight, mean, lost = np.float64(weight), np.float64(mean), np.float64(lost)
        return CenterState(count, weight, mean, lost, state.fade, state.merges), shaped

    def _block(self, state: CenterState, rewards: Array, dones: Array, valid: Mask, settle: Mask) -> Any:
        xp = namespace(rewards)
        if is_jax_namespace(xp) and self._fade == 1 and len(rewards):
            return _jitted()(xp, state, rewards, valid)
        if xp is not np:
            return NotImplemented
        sums = np.add.reduce(rewards, axis=1, dtype=np.float64)
        seen = np.full(len(rewards), rewards.shape[1]) if valid is None else np.count_nonzero(valid, axis=1)
        weights, means = _run(state, sums, seen, self._fade)
        shaped = rewards - means[:-1].astype(rewards.dtype)[:, None]
        if valid is not None:
            shaped[~valid] = 0
        count = state.count + seen.sum()
        return CenterState(count, weights[-1], means[-1], np.float64(0), state.fade, state.merges), shaped

    def _device_block(self, xp: Any, state: CenterState, rewards: Any, dones: Any, valid: Any, settle: Any) -> Any:
        weight = wide(xp, state.count if self._fade == 1 else state.weight)
        total = weight * wide(xp, state.mean + state.lost)
        weights, totals, n = sums_before_rows(xp, self._fade, weight, total, wide(xp, rewards), valid)
        means = totals / weights.clamp(min=1e-30)
        weight, mean = weights[-1].to(state.weight.dtype), means[-1].to(state.mean.dtype)
        count = state.count + n.to(state.count.dtype)
        after = CenterState(count, weight, mean, xp.zeros_like(state.lost), state.fade, state.merges)
        return after, rewards - means[:-1].to(rewards.dtype)[:, None]


def merge_centers(common: CenterState, *later: CenterState) -> CenterState:
    """Merge what each worker has seen since `common`; pass the result back to the workers.

        F̄ = (w·F̄_common + Σ_k Σ_new F) / (w + Σ_k n_k)

    A state from before the last merge, or without new rewards, adds nothing, so none counts twice. With a horizon the
    common part fades by all new rewards together.

    >>> import numpy as np
    >>> subtract, no = center(), np.array([False])
    >>> common = subtract.init(np.zeros(1))
    >>> a, b = (subtract.update(common, np.array([F]), no)[0] for F in (1.0, 5.0))
    >>> merged = merge_centers(common, a, b)
    >>> float(merged.mean), int(merged.count), int(merge_centers(merged, a, b).count)
    (3.0, 2, 2)
    """
    for state in (common, *later):
        read_state("merge_centers", state, CenterState)
    base = CenterState(*(x.item() for x in common))
    new: list[tuple[Any, ...]] = []
    for k, state in enumerate(CenterState(*(x.item() for x in worker)) for worker in later):
        if state.fade != base.fade:
            raise ValueError(f"merge_centers: worker {k} centres with another horizon than the common state")
        if state.merges > base.merges:
            raise ValueError(f"merge_centers: worker {k} has been merged since; merge into the newest common state")
        if state.merges == base.merges and state.count > base.count:
            kept = base.weight * base.fade ** (state.count - base.count)
            new.append((state.count - base.count, state.weight - kept, state.weight * state.mean - kept * base.mean))
    if not new:
        return common
    count, weight, total = (sum(added[k] for added in new) for k in range(3))
    kept = base.weight * base.fade**count
    mean = (kept * base.mean + total) / (kept + weight)
    merged = CenterState(base.count + count, kept + weight, mean, 0.0, base.fade, base.merges + 1)
    return CenterState(*(old * 0 + new for old, new in zip(common, merged, strict=True)))


def _run(state: CenterState, sums: np.ndarray, seen: np.ndarray, fade: float) -> tuple[np.ndarray, np.ndarray]:
    """Return weight and mean before each row of a block and after the last, from the sums and counts of the rows."""
    if fade == 1:
        weights = np.cumsum(np.concatenate(([float(state.count)], seen)))
        totals = np.cumsum(np.concatenate(([weights[0] * (state.mean + state.lost)], sums)))
        return weights, totals / np.maximum(weights, 1)
    weight, mean = float(state.weight), float(state.mean)
    weights, means = [weight], [mean]
    for n, total in zip(seen.tolist(), sums.tolist(), strict=True):
        weight = weight * fade**n + n
        mean += (total - n * mean) / weight if n else 0.0
        weights.append(weight)
        means.append(mean)
    return np.array(weights), np.array(means)


@cache
def _jitted() -> Any:
    """Compile `_center_block`, whose operations would take ten times as long one by one outside `jit`."""
    import jax

    return jax.jit(_center_block, static_argnums=0)  # pyright: ignore


def _center_block(xp: Any, state: CenterState, rewards: Array, valid: Mask) -> tuple[CenterState, Array]:
    """Centre a JAX block on the cumulative mean."""
    # Relative to F̄ of the first row, because float32 would round sums of the rewards themselves.
    kind, seen = state.mean.dtype, xp.arange(1, len(rewards) + 1) * rewards.shape[1]
    excess = rewards.astype(kind) - state.mean
    if valid is not None:
        excess, seen = xp.where(valid, excess, 0.0), xp.cumsum(xp.sum(valid, axis=1))
    weight = state.count.astype(kind)
    risen = weight * state.lost + xp.cumsum(xp.sum(excess, axis=1))
    risen = xp.concat((state.lost[None], risen / xp.maximum(weight + seen.astype(kind), 1)))
    count, mean = _add(state.count, seen[-1]), state.mean + risen[-1]
    shaped = rewards - (state.mean + risen[:-1]).astype(rewards.dtype)[:, None]
    after = CenterState(count, count * state.fade, mean, risen[-1] - (mean - state.mean), state.fade, state.merges)
    return after, shaped if valid is None else xp.where(valid, shaped, 0.0)


def _add(count: Array, seen: Array) -> Array:
    """Return count + seen, at most the largest integer that JAX has without x64."""
    if str(count.dtype) != "uint32":
        return count + seen
    total = count + (seen if isinstance(seen, int) else seen.astype(count.dtype))
    return total | -(total < count).astype(count.dtype)
