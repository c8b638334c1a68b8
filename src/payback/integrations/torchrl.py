"""TorchRL: a Transform that adds a shaped intrinsic reward.

    env = TransformedEnv(base, Compose(RNDTransform(target, predictor), ShapeReward(payback.grm(0.99, delay=10))))

It reads `intrinsic_reward`, which RNDTransform writes, and pays `reward` = r_t + F'_t. Open loans travel in the
tensordict, under "loans", so that batched environments, collectors and resets handle them as any other state; F̄ is a
buffer of the transform. Beside them stand `debt` (give it to a network by its key), `extrinsic_reward`,
`shaped_reward` and `was_truncated`, the environment's own word.

Put StepCounter, and whatever else truncates, before this transform: a truncation that it does not see drops the debt
at the next reset, which `drops` counts. Put nothing after it that scales or clips the reward.
"""

# TorchRL's types are generic or missing, so that what comes from it is unknown to a type checker.
# pyright: reportMissingTypeArgument=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false, reportMissingTypeStubs=false, reportConstantRedefinition=false

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from payback.core.transform import Match, RewardTransform, drop, owed
from payback.core.validate import read_flags
from payback.integrations.host import host
from payback.integrations.ledger import (
    confirm_gamma,
    refuse_too_large,
    refuse_unknown,
    say_dropped,
    say_time_limit,
    say_unconfirmed,
)

with host("TorchRL", "pip install 'payback[torchrl]'"):
    import torch
    from tensordict import TensorDictBase
    from torchrl.data import Binary, Composite, Unbounded
    from torchrl.envs.transforms import Transform


class ShapeReward(Transform):
    """Add the shaped intrinsic reward to the reward.

    `on_truncation="settle"` collects the debt at a time limit and reports the step as terminated; "carry" leaves the
    debt to the bootstrapped value, which can be exact only if it reads `debt`. `event_key` names a boolean entry that
    flags the steps at which `match_when` repays. `learner_gamma` is compared with the transform's. F̄ learns until
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
        self._length = torch.zeros(0, dtype=torch.int64)
        # What does not grow with the number of environments is shared by them: F̄.
        self._outline, other = (transform.init(torch.zeros(n, dtype=torch.float64)) for n in (2, 3))
        pairs = list(zip(_leaves(self._outline), _leaves(other), strict=True))
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
        reward, F = next_tensordict.get("reward"), self._read_intrinsic(next_tensordict)
        terminated = _flags("terminated", next_tensordict.get("terminated"))
        truncated = next_tensordict.get("truncated", None)
        truncated = torch.zeros_like(terminated) if truncated is None else _flags("truncated", truncated)
        valid, event = (
            None if flags is None else flags.reshape(-1)
            for flags in (tensordict.get("_step", None), next_tensordict.get(self.event_key or "_event", None))
        )
        done = terminated | truncated if self.settles else terminated
        state, shaped = self.shaping.update(self._state(tensordict), F, done, valid, event)
        self.steps += 1
        self._length = self._length + 1 if len(self._length) == len(done) else torch.ones_like(done, dtype=torch.int64)
        self._refuse_too_large(shaped, reward.dtype)
        self._length = torch.where(terminated | truncated, 0, self._length)
        debt = self._owed(state)
        if not self.settles and isinstance(self.shaping, Match):
            state, _ = drop(self.shaping, state, truncated & ~terminated)
        if not self.confirmed and bool((terminated | truncated).any()):
            self.confirmed = True
            say_unconfirmed(self.shaping, stacklevel=5)
        self._put(next_tensordict, state, debt, truncated)
        paid = shaped.reshape(*batch, 1).to(reward.dtype)
        next_tensordict.update({"extrinsic_reward": reward, "shaped_reward": paid, "reward": reward + paid})
        if self.settles and bool(truncated.any()):
            self._report_as_terminal(next_tensordict, done)
        return next_tensordict

    def _reset(self, tensordict: TensorDictBase, tensordict_reset: TensorDictBase) -> TensorDictBase:
        n = tensordict_reset.batch_size.numel()
        mask = tensordict.get("_reset", None)
        mask = torch.ones(n, dtype=torch.bool, device=self.drops.device) if mask is None else mask.reshape(-1)
        if len(self._length) == n:
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

    def _read_intrinsic(self, next_tensordict: TensorDictBase) -> torch.Tensor:
        F = next_tensordict.get(self.intrinsic_key, None)
        n = next_tensordict.batch_size.numel()
        if F is None:
            raise KeyError(
                f"there is no {self.intrinsic_key!r} in the tensordict at step {self.steps}: "
                "put the transform that computes it (RNDTransform) before ShapeReward"
            )
        if F.numel() != n:
            raise ValueError(
                f"the intrinsic reward at step {self.steps} has shape {tuple(F.shape)}; "
                f"write one number per environment, of which there are {n}"
            )
        F = F.detach().reshape(-1).to(torch.float64)
        if F.device.type == "cpu" and not bool(torch.isfinite(F).all()):
            k = int(torch.nonzero(~torch.isfinite(F))[0])
            raise ValueError(f"the intrinsic reward of environment {k} at step {self.steps} is {float(F[k])}; fix it")
        return F

    def _refuse_too_large(self, shaped: torch.Tensor, dtype: torch.dtype) -> None:
        if shaped.device.type == "cpu" and dtype != shaped.dtype:
            large = torch.nonzero(shaped.abs() > torch.finfo(dtype).max)
            if len(large):
                k = int(large[0])
                refuse_too_large(float(shaped[k]), k, int(self._length[k]))

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
        fresh = list(_leaves(self.shaping.init(torch.zeros(n, dtype=torch.float64, device=self.drops.device))))
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
        for k, leaf in enumerate(_leaves(state)):
            if self._per_env[k]:
                # The axis of length 1 makes what stands for one environment a row, as rewards have it.
                tensordict.set(("loans", str(k)), leaf.movedim(-1, 0).reshape(*batch, 1, *leaf.shape[:-1]))
            elif learn and not self.frozen:
                self.shared[f"shared_{k}"].copy_(leaf)
        tensordict.set("debt", debt.expand(batch.numel()).reshape(*batch, 1).to(torch.float32))
        tensordict.set("was_truncated", truncated.reshape(*batch, 1).clone())

    def _assemble(self, read: Callable[[int], torch.Tensor]) -> Any:
        leaves = [read(k) if per_env else self.shared[f"shared_{k}"] for k, per_env in enumerate(self._per_env)]
        return _rebuild(self._outline, iter(leaves))

    def _specs(self) -> Composite:
        parent: Any = self.parent
        batch, device = parent.batch_size, parent.device
        loans = Composite(shape=batch, device=device)
        for k, leaf in enumerate(_leaves(self._outline)):
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


def _flags(what: str, flags: torch.Tensor) -> torch.Tensor:
    flags = flags.reshape(-1)
    return flags if flags.dtype == torch.bool else read_flags("ShapeReward", what, flags, flags)


def _leaves(state: Any) -> Iterator[torch.Tensor]:
    if isinstance(state, tuple):
        for part in state:
            yield from _leaves(part)
    else:
        yield state


def _rebuild(outline: Any, leaves: Iterator[torch.Tensor]) -> Any:
    if not isinstance(outline, tuple):
        return next(leaves)
    parts = [_rebuild(part, leaves) for part in outline]
    return type(outline)(*parts) if hasattr(outline, "_fields") else tuple(parts)
