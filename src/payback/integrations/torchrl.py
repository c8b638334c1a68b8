"""TorchRL: a Transform that adds a shaped intrinsic reward.

    env = TransformedEnv(base, Compose(RNDTransform(target, predictor), ShapeReward(payback.grm(0.99, delay=30))))

It reads `intrinsic_reward`, which RNDTransform writes, and pays `reward` = r_t + F'_t. The ledger's state travels in
the tensordict under "loans"; F̄ is a buffer of the transform. The tensordict also gets `debt` (give it to a network by
its key), `extrinsic_reward`, `shaped_reward` and `was_truncated`, the environment's own flag.

Put StepCounter, and whatever else truncates, before this transform; otherwise the next reset drops the debt, which
`drops` counts. Put nothing after it that scales or clips the reward: it compares each reward with what it paid, and
warns. `check_wiring(env)` plays a finished environment before training.
"""

# pyright: standard

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from payback.core.state import leaves, rebuild, roles
from payback.core.transform import Match, RewardTransform
from payback.integrations.host import ask, bind_bonus, host, read_tensor, read_tensor_end
from payback.integrations.torchrl_wiring import RewardTamperCheck, check_wiring, refuse_stacked, warn_outer_transforms
from payback.ledger import LedgerState, OnTruncation, make
from payback.monitor import Monitor, to_numpy

with host("TorchRL", "pip install 'payback[torchrl]'"):
    import torch
    from tensordict import TensorDictBase
    from torchrl.data import Binary, Composite, Unbounded
    from torchrl.envs.transforms import Transform

__all__ = ["BonusTransform", "ShapeReward", "check_wiring"]


class ShapeReward(Transform):
    """Add the shaped intrinsic reward to the reward.

    `on_truncation="settle"` (the default, which warns once) collects the debt at a time limit and reports the step as
    terminated; "carry" leaves the debt to the bootstrapped value, which is exact only if it reads `debt`. `event_key`
    names a boolean entry that flags the steps at which `match_when` repays. `learner_gamma` must equal the transform's.
    `record` names a folder for the log of all steps that `payback audit` reads; `close()` writes what is left of it. F̄
    learns until `frozen` is set; train() and eval() do not change that, because TransformedEnv puts every transform in
    evaluation mode.
    """

    drops: torch.Tensor
    """Episodes that were reset before they ended, with a debt."""

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
        """Warns, counts and logs."""
        self.intrinsic_key, self.event_key = intrinsic_key, event_key
        self.frozen, self.tampering = False, RewardTamperCheck()
        self._open: torch.Tensor | None = None
        self._outline = ledger.init(torch.zeros(1, dtype=torch.float64))
        self._of_transform = len(leaves(self._outline.loans))
        parts = list(zip(leaves(self._outline), roles(self._outline), strict=True))
        self._per_env = [role == "environment" and leaf.ndim > 0 for leaf, role in parts]
        for k, (leaf, _) in enumerate(parts):
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
            raise KeyError(
                f"there is no {self.intrinsic_key!r} in the tensordict at step {monitor.steps}: "
                "put the transform that computes it (RNDTransform, BonusTransform) before ShapeReward"
            )
        F = read_tensor(F.reshape(-1) if F.numel() == reward.numel() else F, reward.reshape(-1), monitor.steps)
        if not monitor.steps:
            self._begin(reward.dtype)
        self.tampering.look(self)
        terminated = read_tensor_end("terminated", next_tensordict.get("terminated"))
        truncated = next_tensordict.get("truncated", None)
        truncated = torch.zeros_like(terminated) if truncated is None else read_tensor_end("truncated", truncated)
        valid, event = (
            None if flags is None else flags.reshape(-1)
            for flags in (tensordict.get("_step", None), next_tensordict.get(self.event_key or "_event", None))
        )
        state, step = monitor.step(self._state(tensordict), F, terminated, truncated, valid, event)
        self._put(next_tensordict, state, step.owed, truncated)
        paid = step.shaped.reshape(*batch, 1).to(reward.dtype)
        total = reward + paid
        next_tensordict.update({"extrinsic_reward": reward, "shaped_reward": paid, "reward": total})
        self.tampering.paid(next_tensordict, reward, paid, total)
        if monitor.ledger.settles and bool(truncated.any()):
            ends = next_tensordict.get("truncated")
            next_tensordict.set("terminated", step.terminated.reshape(ends.shape))
            next_tensordict.set("truncated", torch.zeros_like(ends))
        return next_tensordict

    def _begin(self, dtype: torch.dtype) -> None:
        """Check what the first step shows: the reward's dtype, and the transforms after and around this one."""
        _refuse_dtype(dtype)
        self.monitor.pay_in(str(dtype).removeprefix("torch."))
        transform = self.monitor.ledger.transform
        if isinstance(transform, Match):
            refuse_stacked(self, transform.gamma)
            warn_outer_transforms(self)

    def close(self) -> None:
        """Write what is left of the log to the disk; the environment calls this when it is closed."""
        self.monitor.close()

    def _reset(self, tensordict: TensorDictBase, tensordict_reset: TensorDictBase) -> TensorDictBase:
        n = tensordict_reset.batch_size.numel()
        mask = tensordict.get("_reset", None)
        mask = torch.ones(n, dtype=torch.bool, device=self.drops.device) if mask is None else mask.reshape(-1)
        self.tampering.look(self)
        # TorchRL hands in no state when all environments are reset: the debts were kept to be counted.
        if self._open is not None and len(self._open) == n:
            dropped = self._open * mask
            self.monitor.see_reset(to_numpy(dropped), to_numpy(mask))
            self.drops += torch.count_nonzero(dropped)
        state = self._state(tensordict) if "loans" in tensordict else self._fresh(n)
        state, _ = self.monitor.ledger.reset(state, mask)
        self._put(tensordict_reset, state, state.owed, torch.zeros_like(mask), learn=False)
        return tensordict_reset

    def _reset_on_native_autoreset(
        self, tensordict: TensorDictBase, tensordict_reset: TensorDictBase
    ) -> TensorDictBase:
        return self._reset(tensordict, tensordict_reset)

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Refuse to shape stored data, whose episodes' histories may be cut off."""
        raise RuntimeError(
            "ShapeReward shapes rewards as they are earned, in an environment; "
            "for stored rollouts use payback.shape_rollout"
        )

    def _fresh(self, n: int) -> LedgerState:
        example = torch.zeros(n, dtype=torch.float64, device=self.drops.device)
        fresh = leaves(self.monitor.ledger.init(example))
        return self._assemble(lambda k: fresh[k])

    def _state(self, tensordict: TensorDictBase) -> LedgerState:
        """Read each environment's part from the tensordict, as the last axis, and F̄ from the buffers."""
        loans, batch = tensordict.get("loans", None), len(tensordict.batch_size)
        if loans is None:
            raise KeyError("there are no 'loans' in the tensordict: keep what reset and step_mdp return whole")

        def read(k: int) -> torch.Tensor:
            leaf = loans.get(str(k))
            return leaf.reshape(-1, *leaf.shape[batch + 1 :]).movedim(0, -1)

        return self._assemble(read)

    def _put(
        self,
        tensordict: TensorDictBase,
        state: LedgerState,
        debt: torch.Tensor,
        truncated: torch.Tensor,
        learn: bool = True,
    ) -> None:
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
        loans = Composite(shape=batch, device=device)
        for k, leaf in enumerate(leaves(self._outline)):
            if self._per_env[k]:
                loans[str(k)] = Unbounded(torch.Size((*batch, 1, *leaf.shape[:-1])), device=device, dtype=leaf.dtype)
        debt = Unbounded(torch.Size((*batch, 1)), device=device, dtype=torch.float32)
        flags = Binary(n=1, shape=torch.Size((*batch, 1)), device=device, dtype=torch.bool)
        return Composite(loans=loans, debt=debt, was_truncated=flags, shape=batch, device=device)

    def transform_observation_spec(self, observation_spec: Any) -> Any:
        """Add the ledger's state, the debt and the environment's own truncation."""
        observation_spec.update(self._specs())
        return observation_spec

    def transform_input_spec(self, input_spec: Any) -> Any:
        """Add the ledger's state, which `step` needs."""
        state_spec = input_spec["full_state_spec"]
        if state_spec is None:
            state_spec = Composite(shape=input_spec.shape, device=input_spec.device)
        state_spec.update(self._specs())
        input_spec["full_state_spec"] = state_spec
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

    `bonus` is a ready one or a callable of your own, (obs, action, next_obs, info) → (B,), as in the other hosts; `obs`
    is the entry `in_key`, its batch axes flattened to one. Its `reset(where)`, if it has one, is called at resets.
    """

    def __init__(
        self,
        bonus: Callable[[Any, Any, Any, dict[str, Any]], Any],
        *,
        in_key: str = "observation",
        intrinsic_key: str = "intrinsic_reward",
    ):
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
        if hasattr(self.bonus, "reset"):
            mask = tensordict.get("_reset", None)
            n = tensordict_reset.batch_size.numel()
            where = torch.ones(n, dtype=torch.bool) if mask is None else mask.reshape(-1)
            getattr(self.bonus, "reset")(to_numpy(where))  # noqa: B009  a callable need not have one
        return tensordict_reset

    def transform_reward_spec(self, reward_spec: Any) -> Any:
        """Add the intrinsic reward."""
        spec = reward_spec["reward"]
        reward_spec[self.intrinsic_key] = Unbounded(spec.shape, device=spec.device, dtype=torch.float32)
        return reward_spec


def _refuse_dtype(dtype: torch.dtype) -> None:
    """Refuse half precision and integers, in which bonuses and repayments are rounded and do not cancel."""
    if dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"the environment's reward is {dtype}, in which bonuses and repayments are rounded and do not cancel; cast "
            "it to float32 before ShapeReward (DTypeCastTransform)"
        )
