"""TorchRL: a Transform that adds a shaped intrinsic reward.

    env = TransformedEnv(base, Compose(RNDTransform(target, predictor), ShapeReward(payback.grm(0.99, delay=30))))

It reads `intrinsic_reward`, which RNDTransform writes, and pays `reward` = r_t + F'_t. Open loans travel in the
tensordict, under "loans", so that batched environments, collectors and resets handle them as any other state; F̄ is a
buffer of the transform. Beside them stand `debt` (give it to a network by its key), `extrinsic_reward`,
`shaped_reward` and `was_truncated`, the environment's own word.

Put StepCounter, and whatever else truncates, before this transform: a truncation that it does not see drops the debt
at the next reset, which `drops` counts. Put nothing after it that scales or clips the reward: it looks at each step
what became of the reward that it paid, and warns. `check_wiring(env)` plays a finished environment before training.
"""

# TorchRL's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from payback.core.transform import Match, RewardTransform, drop, owed
from payback.integrations.host import host
from payback.integrations.lasting_state import leaves, rebuild
from payback.integrations.told import confirm_gamma, refuse_unknown, say_dropped, say_time_limit, say_unconfirmed
from payback.integrations.torchrl_followed import Followed
from payback.integrations.torchrl_outside import Outside, refuse_stacked, say_around
from payback.integrations.torchrl_reading import read_end, read_intrinsic, refuse_dtype, refuse_too_large_for
from payback.integrations.torchrl_wiring import check_wiring

with host("TorchRL", "pip install 'payback[torchrl]'"):
    import torch
    from tensordict import TensorDictBase
    from torchrl.data import Binary, Composite, Unbounded
    from torchrl.envs.transforms import Transform

__all__ = ["ShapeReward", "check_wiring"]


class ShapeReward(Transform):
    """Add the shaped intrinsic reward to the reward.

    `on_truncation="settle"` collects the debt at a time limit and reports the step as terminated; "carry" leaves the
    debt to the bootstrapped value, which can be exact only if it reads `debt`. `event_key` names a boolean entry that
    flags the steps at which `match_when` repays. `learner_gamma` is compared with the transform's. `record` names a
    folder for the log of all steps that `payback audit` reads; `close()` writes what is left of it. F̄ learns until
    `frozen` is set: not by train() and eval(), as TransformedEnv puts every transform in evaluation mode.
    """

    drops: torch.Tensor
    """Episodes that were reset before they ended, with a debt."""

    def __init__(
        self,
        transform: RewardTransform,
        intrinsic_key: str = "intrinsic_reward",
        on_truncation: str = "settle",
        event_key: str | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
    ):
        refuse_unknown(transform, on_truncation)
        confirmed = confirm_gamma(transform, learner_gamma)
        super().__init__(in_keys=["reward", intrinsic_key], out_keys=["reward"])
        self.shaping, self.intrinsic_key, self.event_key = transform, intrinsic_key, event_key
        self.settles = on_truncation == "settle"
        self.steps = 0
        self.confirmed = confirmed
        self.frozen = self._said = False
        self._open: torch.Tensor | None = None
        self.record, self.outside = record, Outside()
        self.followed: Followed | None = None
        """From the first step on: the watch over finished episodes, and the log."""
        self._length = torch.zeros(0, dtype=torch.int64)
        # What does not grow with the number of environments is shared by them: F̄.
        self._outline, other = (transform.init(torch.zeros(n, dtype=torch.float64)) for n in (2, 3))
        pairs = list(zip(leaves(self._outline), leaves(other), strict=True))
        self._per_env = [a.shape != b.shape for a, b in pairs]
        for k, (leaf, _) in enumerate(pairs):
            if not self._per_env[k]:
                self.register_buffer(f"shared_{k}", leaf.clone())
        self.register_buffer("drops", torch.zeros((), dtype=torch.int64))

    @property
    def shared(self) -> dict[str, torch.Tensor]:
        """The buffers that all environments share: F̄ and what goes with it."""
        return {name: value for name, value in self.named_buffers() if name.startswith("shared_")}

    def _step(self, tensordict: TensorDictBase, next_tensordict: TensorDictBase) -> TensorDictBase:
        batch = next_tensordict.batch_size
        reward, F = next_tensordict.get("reward"), read_intrinsic(next_tensordict, self.intrinsic_key, self.steps)
        if not self.steps:
            self._begin(reward.dtype, len(F))
        self.outside.look(self)
        terminated = read_end("terminated", next_tensordict.get("terminated"))
        truncated = next_tensordict.get("truncated", None)
        truncated = torch.zeros_like(terminated) if truncated is None else read_end("truncated", truncated)
        valid, event = (
            None if flags is None else flags.reshape(-1)
            for flags in (tensordict.get("_step", None), next_tensordict.get(self.event_key or "_event", None))
        )
        done = terminated | truncated if self.settles else terminated
        before = self._state(tensordict)
        state, shaped = self.shaping.update(before, F, done, valid, event)
        self.steps += 1
        self._length = self._length + 1 if len(self._length) == len(done) else torch.ones_like(done, dtype=torch.int64)
        refuse_too_large_for(reward.dtype, shaped, self._length)
        self._length = torch.where(terminated | truncated, 0, self._length)
        debt = self._owed(state)
        if not self.settles and isinstance(self.shaping, Match):
            state, _ = drop(self.shaping, state, truncated & ~terminated)
        if self.followed is not None:
            self.followed.add(F, before, shaped, terminated, truncated, valid)
        if not self.confirmed and bool((terminated | truncated).any()):
            self.confirmed = True
            say_unconfirmed(self.shaping, stacklevel=5)
        self._put(next_tensordict, state, debt, truncated)
        paid = shaped.reshape(*batch, 1).to(reward.dtype)
        total = reward + paid
        next_tensordict.update({"extrinsic_reward": reward, "shaped_reward": paid, "reward": total})
        self.outside.paid(next_tensordict, total, reward.abs() + paid.abs())
        if self.settles and bool(truncated.any()):
            self._report_as_terminal(next_tensordict, done)
        return next_tensordict

    def _begin(self, dtype: torch.dtype, n: int) -> None:
        """Look at what the first step shows: the reward's dtype, what comes after, how many environments."""
        refuse_dtype(dtype)
        if isinstance(self.shaping, Match):
            refuse_stacked(self, self.shaping.gamma)
            say_around(self)
            self.followed = Followed(self.shaping, n, self.settles, self.record)

    def close(self) -> None:
        """Write what is left of the log to the disk; the environment calls this when it is closed."""
        if self.followed is not None:
            self.followed.close()

    def _reset(self, tensordict: TensorDictBase, tensordict_reset: TensorDictBase) -> TensorDictBase:
        n = tensordict_reset.batch_size.numel()
        mask = tensordict.get("_reset", None)
        mask = torch.ones(n, dtype=torch.bool, device=self.drops.device) if mask is None else mask.reshape(-1)
        self.outside.look(self)
        if len(self._length) == n:
            if self.followed is not None:
                self.followed.restart(mask, self._length)
            self._length = torch.where(mask.to(self._length.device), 0, self._length)
        # TorchRL hands in no loans when all environments are reset: what was open is remembered to be counted.
        if self._open is not None and len(self._open) == n:
            dropped = self._open * mask
            if not int(self.drops) and bool(dropped.any()):
                say_dropped(dropped.cpu().numpy(), self.steps, stacklevel=6)
            self.drops += torch.count_nonzero(dropped)
        state = self._state(tensordict) if "loans" in tensordict else self._fresh(n)
        if isinstance(self.shaping, Match):
            state, _ = drop(self.shaping, state, mask)
        self._put(tensordict_reset, state, self._owed(state), torch.zeros_like(mask), learn=False)
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

    def _report_as_terminal(self, next_tensordict: TensorDictBase, done: torch.Tensor) -> None:
        if not self._said:
            self._said = True
            say_time_limit(stacklevel=6)
        truncated = next_tensordict.get("truncated")
        next_tensordict.set("terminated", done.reshape(truncated.shape))
        next_tensordict.set("truncated", torch.zeros_like(truncated))

    def _owed(self, state: Any) -> torch.Tensor:
        return owed(self.shaping, state) if isinstance(self.shaping, Match) else torch.zeros(1)

    def _fresh(self, n: int) -> Any:
        fresh = list(leaves(self.shaping.init(torch.zeros(n, dtype=torch.float64, device=self.drops.device))))
        return self._assemble(lambda k: fresh[k])

    def _state(self, tensordict: TensorDictBase) -> Any:
        """Read the state: open loans from the tensordict, with the environments as last axis, F̄ from the buffers."""
        loans, batch = tensordict.get("loans", None), len(tensordict.batch_size)
        if loans is None:
            raise KeyError("there are no 'loans' in the tensordict: keep what reset and step_mdp return whole")

        def read(k: int) -> torch.Tensor:
            leaf = loans.get(str(k))
            return leaf.reshape(-1, *leaf.shape[batch + 1 :]).movedim(0, -1)

        return self._assemble(read)

    def _put(
        self, tensordict: TensorDictBase, state: Any, debt: torch.Tensor, truncated: torch.Tensor, learn: bool = True
    ) -> None:
        batch = tensordict.batch_size
        self._open = self._owed(state)
        for k, leaf in enumerate(leaves(state)):
            if self._per_env[k]:
                # The axis of length 1 makes what stands for one environment a row, as rewards have it.
                tensordict.set(("loans", str(k)), leaf.movedim(-1, 0).reshape(*batch, 1, *leaf.shape[:-1]))
            elif learn and not self.frozen:
                self.shared[f"shared_{k}"].copy_(leaf)
        tensordict.set("debt", debt.expand(batch.numel()).reshape(*batch, 1).to(torch.float32))
        tensordict.set("was_truncated", truncated.reshape(*batch, 1).clone())

    def _assemble(self, read: Callable[[int], torch.Tensor]) -> Any:
        leaves = [read(k) if per_env else self.shared[f"shared_{k}"] for k, per_env in enumerate(self._per_env)]
        return rebuild(self._outline, iter(leaves))

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
        """Add the loans, the debt and the environment's own truncation."""
        observation_spec.update(self._specs())
        return observation_spec

    def transform_input_spec(self, input_spec: Any) -> Any:
        """Add the loans, which `step` needs."""
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
