"""The bonus as a second advantage (`grm_adv`): GRM's signal without the noise of its repayments, or its guarantee.

    Â_t   = Â^E_t + w·A^I_t                           Â^E: the learner's own estimate, of the task's reward alone
    A^I_t = f_t + γλ_I A^I_{t+1}                      0 after an end; with a second critic, GAE of f at discount γλ_I
    f_t   = (1 − λ_I^{K_t}) G_t,   G_t = F_t − F̄_t    K_t = min(D, steps to the episode's last step)

`delay=None, center=False` has f = F, the raw bonus of two critics. What GRM teaches under GAE is derived in
docs/understand/advantage-side.md. Nothing here is mutable, so `estimate` runs under `jit`, `vmap` and `scan`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, Literal, NamedTuple

from array_api_compat import is_jax_namespace, is_torch_namespace

from payback.core import rollout
from payback.core.arrays import Array, Mask, can_look, cast_to, first_not_finite, namespace
from payback.core.blocks import Rows, Sum, sum_backwards
from payback.core.center import read_center
from payback.core.rollout import _shape, _through_numpy, read_block
from payback.core.scaling import scale
from payback.core.transform import Match, RewardTransform, State
from payback.core.validate import detached, read_count, read_flags, read_gamma, read_share

NAME = "grm_adv"


class Estimate(NamedTuple):
    """What `AdvantageEstimator.estimate` returns."""

    state: State
    """For the next rollout: F̄."""
    advantage: Array
    """(T, B) w·A^I, to be added to the task's advantage; 0 in invalid rows."""
    target: Array | None
    """(T, B) what the second critic is regressed on, whatever w; None without one."""


def grm_adv(
    gamma: float,
    delay: int | None,
    lam: float,
    *,
    center: bool | RewardTransform = True,
    gae_lambda: float = 0.95,
    on_truncation: Literal["settle", "carry"] = "settle",
) -> AdvantageEstimator:
    """Estimate an advantage from the bonus, to be added to that of the task's reward; see the equations above.

    Not guaranteed: by policy invariance, all that A^I adds between two actions is bias, |E A^I| ≤
    (1 − λ_I^D) max|G| / (1 − γλ_I), so the optimal policy may change while w > 0; nor that the policy survives
    w = 0: it collapses where the task's advantage alone can't hold it. Guaranteed: the task's critic never learns from
    a bonus, and from w = 0 on (`taken_back`) the policy is trained on the task's own advantage. `grm` preserves the
    optimal policy from the first step.

    `gamma`: the learner's discount. `delay`: D; None does not fade the bonus. `lam`: λ_I; A^I reaches about
    1 / (1 − γλ_I) steps ahead. `center`: subtract F̄, or a transform such as `payback.center(1000)`; False does not.
    `gae_lambda`: λ of the GAE over f with a second critic. `on_truncation`: "settle" takes a truncation for an end,
    "carry" has K = D there, and the second critic bootstraps.

    >>> import numpy as np
    >>> estimator = grm_adv(0.9, delay=2, lam=0.5, center=False)
    >>> state = estimator.init(np.zeros(1))
    >>> done = np.array([[False], [True], [False]])
    >>> state, advantage, target = estimator.estimate(state, np.array([[1.0], [1.0], [1.0]]), done)
    >>> advantage[:, 0]  # 1 − ½¹ one step before the end, 0 at it, 1 − ½² where no end is in sight
    array([0.5 , 0.  , 0.75])
    """
    if on_truncation not in ("settle", "carry"):
        raise ValueError(f"on_truncation must be 'settle' or 'carry', got {on_truncation!r}")
    if isinstance(center, Match):
        raise TypeError(f"{NAME} repays nothing, and center={center!r} does: give it the bonus' scaling and centring")
    gamma, delay = read_gamma(gamma), None if delay is None else read_count("delay", delay, least=1)
    lam, before, gae_lambda = read_share("lam", lam), read_center(center), read_share("gae_lambda", gae_lambda)
    return AdvantageEstimator(gamma, delay, lam, before or scale(1), gae_lambda, on_truncation == "carry")


def taken_back(progress: Any, start: float = 5 / 8, end: float = 7 / 8, least: float = 1e-3) -> Any:
    """Return the weight w of A^I after a share `progress` of training: 1, then less and less, and 0 from `end` on.

        w = least^((progress − start) / (end − start))        between `start` and `end`

    `progress` is a number, or an array of any library.

    >>> [taken_back(share) for share in (0.0, 0.625, 0.875, 1.0)], round(taken_back(0.75), 3)
    ([1.0, 1.0, 0.0, 0.0], 0.032)
    """
    if not (0 <= start < end <= 1 and 0 < least <= 1):
        raise ValueError(f"taken_back needs 0 ≤ start < end ≤ 1 and 0 < least ≤ 1, got {start}, {end} and {least}")
    if isinstance(progress, Real):
        share = float(progress)
        if math.isnan(share):
            raise ValueError("progress must be a share of training, got nan")
        return 0.0 if share >= end else least ** min(1.0, max(0.0, (share - start) / (end - start)))
    xp = namespace(progress)
    return xp.where(progress >= end, 0.0, least ** xp.clip((progress - start) / (end - start), 0.0, 1.0))


@dataclass(frozen=True)
class AdvantageEstimator:
    """Pure functions `init` and `estimate`; made by `grm_adv`."""

    gamma: float
    delay: int | None
    lam: float
    center: RewardTransform
    gae_lambda: float
    carries: bool

    @cached_property
    def discount(self) -> float:
        """γλ_I, of A^I and of the second critic."""
        return self.gamma * self.lam

    def init(self, example: Array) -> State:
        """Make the state for bonuses like `example`, (B,)."""
        return self.center.init(example)

    def estimate(
        self,
        state: State,
        bonuses: Array,
        dones: Array,
        truncated: Mask = None,
        valid: Mask = None,
        values: Array | None = None,
        last_values: Array | None = None,
        *,
        weight: Any = 1.0,
        dones_late: bool = False,
    ) -> Estimate:
        """Return the next state, w·A^I, and what the second critic is regressed on; `state` is not changed.

        All arrays are (T, B), of NumPy, Torch or JAX, or (T,) for one environment, as under `jax.vmap`.
        `bonuses`: F. `dones`: which rows ended their episode. `truncated`: those that a time limit ended; they may be
        marked in `dones`, too. `valid`: False marks rows that are no transition: they count for nothing.
        `values`: the second critic's V of each row's observation. `last_values`: V after the last row, (B,), or after
        each row, (T, B), the episode's own last observation where it ended; carried truncations need that form.
        `weight`: w, such as `taken_back(progress)`. `dones_late`: `dones` (and `truncated`) are CleanRL's, one step
        late, with `next_done` as row T.
        """
        xp, shape = namespace(bonuses), tuple(bonuses.shape)
        if not (len(shape) == 2 or (len(shape) == 1 and is_jax_namespace(xp))) or not shape[0]:
            raise ValueError(
                f"{NAME} needs bonuses of shape (T, B), T at least 1, got {shape}; one environment is (T, 1)"
            )
        fit, dones = self.center._expected(state), _on_time("dones", dones, bonuses, dones_late)
        xp, F, ends, valid, _ = read_block(NAME, fit, bonuses, dones, valid)
        settled, carried = ends, None
        if truncated is not None:
            cut = read_flags(NAME, "truncated", _on_time("truncated", truncated, bonuses, dones_late), F)
            cut = cut if valid is None else cut & valid
            settled, carried = (ends & ~cut, cut) if self.carries else (ends | cut, None)
        V, after = self._read_values(xp, F, valid, carried is not None, values, last_values)
        block = (state, F, settled, carried, valid, V, after)
        found: Any = NotImplemented
        if is_torch_namespace(xp) and F.device.type in rollout.HOST:
            found = _through_numpy(xp, self._estimate, block)
        state, advantage, target = self._estimate(*block) if found is NotImplemented else found
        return Estimate(state, _weighed(xp, advantage, weight), target)

    def _estimate(
        self, state: State, F: Array, settled: Array, carried: Mask, valid: Mask, V: Array | None, after: Array | None
    ) -> tuple[State, Array, Array | None]:
        """Return (state, A^I, target) of arrays that have been read; invalid rows hold 0."""
        xp = namespace(F)
        ended = settled if carried is None else settled | carried
        state, G = _shape(xp, self.center, state, (F, ended, valid, None))
        last = None
        if after is not None and after.ndim < G.ndim:
            last, after = after, None
        elif after is not None:
            after = xp.where(settled, 0.0, after)
        rows = Rows(G, ~ended, carried, valid, V, after)
        advantage = _masked(xp, sum_backwards(xp, self._sum, rows, last), valid)
        return state, advantage, None if V is None else advantage + V

    @cached_property
    def _sum(self) -> Sum:
        fades = self.delay is not None
        return Sum(self.lam if fades else None, self.delay or 0, self.discount, self.gae_lambda)

    def _read_values(
        self, xp: Any, F: Array, valid: Mask, carries: bool, values: Any, last_values: Any
    ) -> tuple[Array | None, Array | None]:
        """Return V of each row and after it, floats like F."""
        if values is None and last_values is None:
            return None, None
        if values is None or last_values is None:
            given, missing = ("last_values", "values") if values is None else ("values", "last_values")
            raise ValueError(f"{NAME} was given {given} without {missing}; the second critic needs both")
        if self.discount >= 1:
            raise ValueError(f"{NAME}: a second critic's values at γλ_I = 1 have no bound; take lam or gamma below 1")
        namespace(values, last_values, F)
        each = last_values.ndim == F.ndim
        if carries and not each:
            raise ValueError(
                f"{NAME}: after a carried truncation the second critic needs the value of the episode's own last "
                "observation; pass last_values as (T, B), V of what followed each row"
            )
        read: list[Array] = []
        for what, x, rows in (("values", values, True), ("last_values", last_values, each)):
            shape = tuple(F.shape if rows else F.shape[1:])
            if tuple(x.shape) != shape:
                raise ValueError(f"{NAME}: {what} has shape {tuple(x.shape)}, not {shape}, as the bonuses")
            x = detached(x)
            x = x if x.dtype == F.dtype else cast_to(xp, x, F.dtype)
            read.append(_masked(xp, x, valid if rows else None))
            where = first_not_finite(xp, read[-1])
            if where is not None:
                raise ValueError(f"{NAME}: {what}{list(where)} is {float(x[where])}; fix the second critic")
        return read[0], read[1]


def _on_time(what: str, flags: Array, like: Array, late: bool) -> Array:
    """Return flags (T, B) of how each row ended, from CleanRL's if they are `late`."""
    namespace(flags, like)
    rows, T = (flags.shape or (0,))[0], like.shape[0]
    if rows == T + 1 and late:
        return flags[1:]
    if rows == T + 1 or late:
        raise ValueError(
            f"{NAME}: {what} has {rows} rows for bonuses of {T}. CleanRL's dones are one step late (dones[t] says "
            "whether row t begins an episode): pass cat((dones, next_done[None])) with dones_late=True"
        )
    return flags


def _masked(xp: Any, x: Array, valid: Mask) -> Array:
    return x if valid is None else xp.where(valid, x, 0.0)


def _weighed(xp: Any, advantage: Array, weight: Any) -> Array:
    """Return w·A^I, in the dtype of A^I."""
    if not isinstance(weight, Real) and tuple(getattr(weight, "shape", (0,))):
        raise ValueError(f"weight must be one number of [0, 1] such as payback.taken_back(progress), got {weight!r}")
    if isinstance(weight, Real) or can_look(xp, weight):
        w = read_share("weight", weight if isinstance(weight, Real) else float(weight))
        return advantage if w == 1 else advantage * w
    return advantage * cast_to(namespace(weight, advantage), weight, advantage.dtype)
