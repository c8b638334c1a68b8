"""TorchRL: a Transform that adds a shaped intrinsic reward.

    env = TransformedEnv(base, Compose(RNDTransform(target, predictor), ShapeReward(payback.grm(0.99, delay=30))))

It reads `intrinsic_reward`, which RNDTransform writes, and pays `reward` = r_t + F'_t. The ledger's state travels in
the tensordict under "loans"; F̄ is a buffer of the transform. The tensordict also gets `debt` (give it to a network by
its key), `extrinsic_reward`, `shaped_reward` and `was_truncated`, the environment's own flag.

Put StepCounter, and whatever else truncates, before it, or the next reset drops the debt. Put nothing after it that
scales or clips rewards: it compares each reward with what it paid. `check_wiring(env)` plays a finished environment.
"""

# pyright: standard
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from payback.core.arrays import to_numpy
from payback.core.state import leaves, rebuild, roles
from payback.core.transform import Match, RewardTransform
from payback.integrations.host import ask, bind_bonus, host, read_tensor, read_tensor_end
from payback.integrations.wiring import NO_END, STEPS_PER_EPISODE, callers_of, compare, names_of, rehearsed
from payback.ledger import LedgerState, OnTruncation, make
from payback.messages import changed_reward, warn
from payback.monitor import Monitor, changed

with host("TorchRL", "pip install 'payback[torchrl]'"):
    import torch
    from tensordict import TensorDictBase
    from torchrl.data import Binary, Composite, Unbounded
    from torchrl.envs.transforms import Compose, Transform, TransformedEnv

__all__ = ["BonusTransform", "ShapeReward", "check_wiring"]

# TorchRL's transforms that change the values of their keys.
CHANGING = ("RewardClipping", "RewardScaling", "BinarizeReward", "SignTransform", "VecNorm", "VecNormV2")
OUTSIDE = "outside its TransformedEnv"
KEYS = ("reward", "terminated", "truncated", "extrinsic_reward", "shaped_reward", "debt", "was_truncated")


class ShapeReward(Transform):
    """Add the shaped intrinsic reward to the reward.

    The parameters are those of Gymnasium's `ShapeVectorReward`, but the bonus and the events are entries of the
    tensordict. `on_truncation="carry"` is exact only if the value function reads `debt`. F̄ learns until `frozen` is
    set; train() and eval() do not change that, because TransformedEnv puts every transform in evaluation mode.
    """

    drops: torch.Tensor  # episodes that were reset before they ended, with a debt

    def __init__(
        self,
        transform: RewardTransform,
        *,
        intrinsic_key: str = "intrinsic_reward",
        on_truncation: OnTruncation | None = None,
        event_key: str | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
    ):
        ledger = make(transform, on_truncation)
        super().__init__(in_keys=["reward", intrinsic_key], out_keys=["reward"])
        self.monitor = Monitor(ledger, learner_gamma=learner_gamma, record=record)
        self.intrinsic_key, self.event_key = intrinsic_key, event_key
        self.frozen, self.tampering = False, RewardTamperCheck()
        self._open: torch.Tensor | None = None
        self._outline = ledger.init(torch.zeros(1, dtype=torch.float64))
        self._of_transform = len(leaves(self._outline.loans))
        self._per_env: list[bool] = []
        for k, (leaf, role) in enumerate(zip(leaves(self._outline), roles(self._outline), strict=True)):
            self._per_env.append(role == "environment" and leaf.ndim > 0)
            if not self._per_env[k]:
                self.register_buffer(f"shared_{k}", leaf.clone())
        self.register_buffer("drops", torch.zeros((), dtype=torch.int64))

    @property
    def shared(self) -> dict[str, torch.Tensor]:
        """The buffers that all environments share: F̄ and what goes with it."""
        return {name: value for name, value in self.named_buffers() if name.startswith("shared_")}

    def _step(self, tensordict: TensorDictBase, next_tensordict: TensorDictBase) -> TensorDictBase:
        batch, monitor = next_tensordict.batch_size, self.monitor
        reward, F = next_tensordict.get("reward"), next_tensordict.get(self.intrinsic_key, None)
        if F is None:
            where = f"in the tensordict at step {monitor.steps}: put BonusTransform or RNDTransform before ShapeReward"
            raise KeyError(f"there is no {self.intrinsic_key!r} {where}")
        F = read_tensor(F.reshape(-1) if F.numel() == reward.numel() else F, reward.reshape(-1), monitor.steps)
        if not monitor.steps:
            self._begin(reward.dtype)
        self.tampering.look(self)
        terminated = read_tensor_end("terminated", next_tensordict.get("terminated"))
        truncated = next_tensordict.get("truncated", None)
        truncated = torch.zeros_like(terminated) if truncated is None else read_tensor_end("truncated", truncated)
        flags = tensordict.get("_step", None), next_tensordict.get(self.event_key or "_event", None)
        valid, event = (None if column is None else column.reshape(-1) for column in flags)
        state, step = monitor.step(self._state(tensordict), F, terminated, truncated, valid, event)
        self._put(next_tensordict, state, step.owed, truncated)
        paid = step.shaped.reshape(*batch, 1).to(reward.dtype)
        total = reward + paid
        next_tensordict.update({"extrinsic_reward": reward, "shaped_reward": paid, "reward": total})
        self.tampering.paid = next_tensordict, reward, paid, total
        if monitor.ledger.settles and bool(truncated.any()):
            ends = next_tensordict.get("truncated")
            next_tensordict.set("terminated", step.terminated.reshape(ends.shape))
            next_tensordict.set("truncated", torch.zeros_like(ends))
        return next_tensordict

    def _begin(self, dtype: torch.dtype) -> None:
        """Check what the first step shows: the reward's dtype, and the transforms after and around this one."""
        if dtype not in (torch.float32, torch.float64):
            why = "in which bonuses and repayments do not cancel; cast it to float32 before ShapeReward"
            raise TypeError(f"the environment's reward is {dtype}, {why}")
        self.monitor.pay_in(str(dtype).removeprefix("torch."))
        transform = self.monitor.ledger.transform
        if isinstance(transform, Match):
            stacked = [part for part in after(self) if isinstance(part, ShapeReward)]
            if stacked:  # both would keep their debts under the same keys
                other = getattr(stacked[0].monitor.ledger.transform, "gamma", None)
                words = "in one environment; add the bonuses up and shape them once"
                raise ValueError(f"there are two ShapeReward (gamma {transform.gamma}, then {other}) {words}")
            warn_outer_transforms(self)

    def close(self) -> None:
        """Write what is left of the log to the disk; the environment calls this when it is closed."""
        self.monitor.close()

    def _reset(self, tensordict: TensorDictBase, tensordict_reset: TensorDictBase) -> TensorDictBase:
        mask = _reset_mask(tensordict, tensordict_reset).to(self.drops.device)
        n = len(mask)
        self.tampering.look(self)
        # TorchRL hands in no state when all environments are reset: the debts were kept to be counted.
        if self._open is not None and len(self._open) == n:
            dropped = self._open * mask
            self.monitor.see_reset(to_numpy(dropped), to_numpy(mask))
            self.drops += torch.count_nonzero(dropped)
        if "loans" in tensordict:
            state, _ = self.monitor.ledger.reset(self._state(tensordict), mask)
        else:
            fresh = leaves(self.monitor.ledger.init(torch.zeros(n, dtype=torch.float64, device=self.drops.device)))
            state = self._assemble(fresh.__getitem__)
        self._put(tensordict_reset, state, state.owed, torch.zeros_like(mask), learn=False)
        return tensordict_reset

    def _reset_on_native_autoreset(self, tensordict: Any, tensordict_reset: Any) -> TensorDictBase:
        return self._reset(tensordict, tensordict_reset)

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Refuse to shape stored data, whose episodes' histories may be cut off."""
        raise RuntimeError("ShapeReward shapes rewards as they come; for stored rollouts use payback.shape_rollout")

    def _state(self, tensordict: TensorDictBase) -> LedgerState:
        """Read each environment's part from the tensordict, as the last axis, and F̄ from the buffers."""
        loans, batch = tensordict.get("loans", None), len(tensordict.batch_size)
        if loans is None:
            raise KeyError("there are no 'loans' in the tensordict: keep what reset and step_mdp return whole")

        def read(k: int) -> torch.Tensor:
            leaf = loans.get(str(k))
            return leaf.reshape(-1, *leaf.shape[batch + 1 :]).movedim(0, -1)

        return self._assemble(read)

    def _put(self, tensordict: Any, state: LedgerState, debt: Any, truncated: Any, learn: bool = True) -> None:
        """Write each environment's part to the tensordict, and what they share to the buffers; F̄ if it `learn`s."""
        batch = tensordict.batch_size
        self._open = state.owed
        for k, leaf in enumerate(leaves(state)):
            if self._per_env[k]:
                # The axis of length 1 makes what stands for one environment a row, as rewards have it.
                tensordict.set(("loans", str(k)), leaf.movedim(-1, 0).reshape(*batch, 1, *leaf.shape[:-1]))
            elif k >= self._of_transform or (learn and not self.frozen):
                self.shared[f"shared_{k}"].copy_(leaf)
        tensordict.set("debt", debt.reshape(*batch, 1).to(torch.float32))
        tensordict.set("was_truncated", truncated.reshape(*batch, 1).clone())

    def _assemble(self, read: Callable[[int], torch.Tensor]) -> LedgerState:
        arrays = (read(k) if per_env else self.shared[f"shared_{k}"] for k, per_env in enumerate(self._per_env))
        return rebuild(self._outline, arrays)

    def _specs(self) -> Composite:
        parent: Any = self.parent
        batch, device = parent.batch_size, parent.device
        column = torch.Size((*batch, 1))
        loans = Composite(shape=batch, device=device)
        for k, leaf in enumerate(leaves(self._outline)):
            if self._per_env[k]:
                loans[str(k)] = Unbounded(column + leaf.shape[:-1], device=device, dtype=leaf.dtype)
        debt = Unbounded(column, device=device, dtype=torch.float32)
        flags = Binary(n=1, shape=column, device=device, dtype=torch.bool)
        return Composite(loans=loans, debt=debt, was_truncated=flags, shape=batch, device=device)

    def transform_observation_spec(self, observation_spec: Any) -> Any:
        """Add the ledger's state, the debt and the environment's own truncation."""
        observation_spec.update(self._specs())
        return observation_spec

    def transform_input_spec(self, input_spec: Any) -> Any:
        """Add the ledger's state, which `step` needs."""
        if input_spec["full_state_spec"] is None:
            input_spec["full_state_spec"] = Composite(shape=input_spec.shape, device=input_spec.device)
        input_spec["full_state_spec"].update(self._specs())
        return input_spec

    def transform_reward_spec(self, reward_spec: Any) -> Any:
        """Add the parts of the reward; the whole has no bounds."""
        spec = reward_spec["reward"]
        for key in ("reward", "extrinsic_reward", "shaped_reward"):
            reward_spec[key] = Unbounded(spec.shape, device=spec.device, dtype=spec.dtype)
        return reward_spec


class BonusTransform(Transform):
    """Write what a bonus pays as `intrinsic_reward`, for ShapeReward to read: in the place of RNDTransform.

        Compose(StepCounter(200), BonusTransform(EpisodicCount()), ShapeReward(payback.grm(0.99, delay=30)))

    `bonus`: (obs, action, next_obs, info) → (B,), as in the other hosts; `obs` is the entry `in_key`, its batch axes
    flattened to one. Its `reset(where)`, if it has one, is called at resets.
    """

    def __init__(
        self,
        bonus: Callable[[Any, Any, Any, dict[str, Any]], Any],
        *,
        in_key: str = "observation",
        intrinsic_key: str = "intrinsic_reward",
    ):
        if not callable(bonus):
            raise TypeError(f"BonusTransform calls a bonus like EpisodicCount(), got {bonus!r}; ShapeReward reads keys")
        super().__init__(in_keys=[in_key], out_keys=[intrinsic_key])
        self.bonus, self.in_key, self.intrinsic_key, self._steps = bonus, in_key, intrinsic_key, 0

    def _step(self, tensordict: TensorDictBase, next_tensordict: TensorDictBase) -> TensorDictBase:
        batch, n = next_tensordict.batch_size, next_tensordict.batch_size.numel()
        sources = (tensordict, self.in_key), (tensordict, "action"), (next_tensordict, self.in_key)
        rows = [part.get(key).reshape(n, *part.get(key).shape[len(batch) :]) for part, key in sources]
        if not self._steps:  # TorchRL's actions are numbers, one-hot where the environment takes whole ones
            bind_bonus(self.bonus, None, SimpleNamespace(shape=tuple(rows[1].shape[1:])))
        valid = tensordict.get("_step", None)
        info = {} if valid is None else {"valid": to_numpy(valid.reshape(-1))}
        F = read_tensor(ask(self.bonus, n, self._steps, *rows, info), rows[2].new_zeros(n), self._steps)
        self._steps += 1
        next_tensordict.set(self.intrinsic_key, F.reshape(*batch, 1).to(torch.float32))
        return next_tensordict

    def _reset(self, tensordict: TensorDictBase, tensordict_reset: TensorDictBase) -> TensorDictBase:
        clear = getattr(self.bonus, "reset", None)
        if clear is not None:
            clear(to_numpy(_reset_mask(tensordict, tensordict_reset)))
        return tensordict_reset

    def transform_reward_spec(self, reward_spec: Any) -> Any:
        """Add the intrinsic reward."""
        spec = reward_spec["reward"]
        reward_spec[self.intrinsic_key] = Unbounded(spec.shape, device=spec.device, dtype=torch.float32)
        return reward_spec


def _reset_mask(tensordict: TensorDictBase, tensordict_reset: TensorDictBase) -> torch.Tensor:
    mask = tensordict.get("_reset", None)
    return torch.ones(tensordict_reset.batch_size.numel(), dtype=torch.bool) if mask is None else mask.reshape(-1)


class RewardTamperCheck:
    """Compare what a step paid, one step later, with the tensordict, which transforms write and the learner reads."""

    def __init__(self) -> None:
        self.warned = False
        self.paid: Any = None  # the last step's tensordict, r_t, F′_t and their sum, as it was put there

    def __getstate__(self) -> dict[str, Any]:
        return {"warned": self.warned, "paid": None}

    def look(self, shaping: Transform) -> None:
        """Warn once if the reward of the last step is not what was paid."""
        if self.paid is None or self.warned:
            return
        tensordict, extrinsic, shaped, total = self.paid
        self.paid, seen = None, tensordict.get("reward")
        if seen is total:
            return
        given, r, F = (to_numpy(x).reshape(-1) for x in (seen, extrinsic, shaped))
        k = changed(given, r, F)
        if k is not None:
            self.warned = True
            culprit = f"a transform after ShapeReward ({names_of(after(shaping), OUTSIDE)})"
            warn(changed_reward(float(r[k] + F[k]), float(given[k]), k, culprit, "put it before ShapeReward"))


def after(shaping: Transform) -> list[Transform]:
    """Return the transforms that come after the shaping, as far as the environment shows them."""
    found: list[Transform] = []
    inner: Any = shaping
    while True:
        reference = inner.__dict__.get("_container")
        container = None if reference is None else reference()
        if not isinstance(container, Compose):
            return found
        members: list[Any] = list(container.transforms)
        found += members[[member is inner for member in members].index(True) + 1 :]
        inner = container


def warn_outer_transforms(shaping: Transform) -> None:
    """Warn of transforms that change rewards around a vector of shaped environments (SerialEnv), which copies them."""
    for _, env in callers_of(("_step",)):
        if not isinstance(env, TransformedEnv) or _holds(env, shaping):
            continue
        parts: list[Any] = list(env.transform.modules())
        changing = [part for part in parts if type(part).__name__ in CHANGING and "reward" in part.in_keys]
        if changing:
            where = "around a vector of shaped environments changes the rewards that they paid"
            warn(f"{names_of(changing)} {where}; put it before ShapeReward")
            return


def _holds(env: Any, shaping: Transform) -> bool:
    """Return whether the shaping is in this environment, or in one that it wraps without a vector between them."""
    while isinstance(env, TransformedEnv) and all(part is not shaping for part in env.transform.modules()):
        env = env.base_env
    return isinstance(env, TransformedEnv)


def check_wiring(env: Any, episodes: int = 20) -> int:
    """Play `episodes` with random actions, and compare the reward that comes out with r_t + F′_t as it was paid.

    Takes the finished TransformedEnv. Raises InvarianceError where a transform after ShapeReward changes the reward or
    ends episodes. Returns the number of episodes. Afterwards F̄ is restored, and what the bonus learned stays.
    """
    inner, found = env, list[Any]()
    while inner is not None and not found:
        transform = getattr(inner, "transform", None)
        members = list(getattr(transform, "transforms", [transform]))
        found = [member for member in members if hasattr(member, "tampering") and hasattr(member, "monitor")]
        inner = getattr(inner, "base_env", None)
    if not found:
        raise ValueError("check_wiring found no ShapeReward among the transforms; give it the finished TransformedEnv")
    shaping = found[-1]
    buffers = {name: buffer.clone() for name, buffer in shaping.named_buffers()}
    tampering = vars(shaping.tampering).copy()
    with rehearsed(shaping.monitor):
        try:
            finished = _play(env, shaping, episodes)
            env.reset()
        finally:
            vars(shaping.tampering).update(tampering, paid=None)
            for name, buffer in shaping.named_buffers():
                buffer.copy_(buffers[name])
            shaping._open = None
    if not finished:
        warn(NO_END)
    return finished


def _play(env: Any, shaping: Any, episodes: int) -> int:
    outside, finished, steps, length = names_of(after(shaping), OUTSIDE), 0, 0, 64
    while finished < episodes and steps < episodes * STEPS_PER_EPISODE:
        rollout = env.rollout(length, break_when_any_done=False)["next"]
        rollout.setdefault("truncated", torch.zeros_like(rollout["terminated"]))  # for those without a time limit
        # Time first, whatever the environment's batch: (T, B).
        columns = [to_numpy(rollout[key].movedim(len(rollout.batch_size) - 1, 0)).reshape(length, -1) for key in KEYS]
        for t in range(length):
            row = [column[t] for column in columns]
            finished += int(np.count_nonzero(compare(row, steps + t, shaping.monitor.ledger.settles, outside)))
        steps, length = steps + length, 2 * length
    return finished
