"""rsl_rl (Isaac Lab, mjlab): a PPO whose `process_env_step` pays r_t + F'_t and never bootstraps a settled debt.

    cfg["algorithm"] = {"class_name": ShapedPPO, "transform": payback.grm(0.99, delay=30), "gamma": 0.99,
                        "rnd_cfg": {...}}                         or "intrinsic": a callable, in the place of rnd_cfg
    OnPolicyRunner(env, cfg).learn(1000)

rsl_rl's own PPO adds the bonus and then adds γ V(s) to the reward of every step that `extras["time_outs"]` flags. With
a debt that was settled at that step this is the double payment that reverses preferences. Here the time-outs are masked
(`on_truncation="settle"`: the time limit is part of the task), or kept and the debt left to the value ("carry"):

    F'_t = −Debt_t + γ Debt_t at such a time-out, so that for a critic that sees the debt, V = V_E − Debt,
    r_t + F'_t + γ V(s_t) = r_t + γ V_E(s_t) − Debt_t                                                       (the law)

since it is V(s_t), not V(s_{t+1}), that rsl_rl bootstraps with.

The state of the loans is on the device of the rewards, in float64; values are looked at once per rollout.
"""

# rsl_rl's types are partial, so that what comes from it is unknown to a type checker.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownVariableType=false, reportMissingTypeStubs=false, reportConstantRedefinition=false
# pyright: reportMissingTypeArgument=false, reportMissingImports=false, reportUntypedBaseClass=false

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from payback.core.transform import Match, RewardTransform, drop, owed
from payback.core.validate import read_flags
from payback.integrations.bonus_values import ask
from payback.integrations.host import host
from payback.integrations.lasting_state import leaves, rebuild
from payback.integrations.residual import Paid, add_step, nothing_paid
from payback.integrations.shaping_warning import ShapingWarning
from payback.integrations.step_log import StepLog
from payback.integrations.told import confirm_gamma, refuse_too_large, refuse_unknown, say_time_limit
from payback.integrations.watch import TOLERANCE

with host("rsl_rl", "pip install 'payback[rsl_rl]'"):
    import torch
    from rsl_rl.algorithms import PPO

Source = Callable[[Any, Any, Any, dict[str, Any]], Any]
"""(obs, actions, next_obs, extras) → (B,) on batches; the observations are rsl_rl's TensorDicts.

An environment of rsl_rl does not show an episode's last observation: in the rows of `dones`, `next_obs` is the next
episode's first, `extras["valid"]` is False, and F is taken as 0, which favours nothing, because the last step's loan is
repaid at once. A bonus with `reset(where)` is told that an episode is over, by a (B,) mask.
"""


class ShapedPPO(PPO):
    """PPO of rsl_rl with a shaped intrinsic reward.

    The bonus is rsl_rl's RND, if `rnd_cfg` is given, or `intrinsic`. `on_truncation="settle"` collects the debt at a
    time-out and masks the time-out, so that nothing is bootstrapped there; "carry" lets rsl_rl bootstrap and leaves the
    debt to the value. Another γ than the transform's is refused. rsl_rl deep-copies its configuration: read the bonus
    as `runner.alg.intrinsic`. With several GPUs each process has an F̄ of its own. `record` names a folder for the log
    of all steps that `payback audit` reads; each step is then copied to the CPU.
    """

    def __init__(
        self,
        *args: Any,
        transform: RewardTransform,
        intrinsic: Source | None = None,
        on_truncation: str = "settle",
        record: str | Path | None = None,
        **options: Any,
    ):
        refuse_unknown(transform, on_truncation)
        super().__init__(*args, **options)
        confirm_gamma(transform, self.gamma)
        if (intrinsic is None) == (self.rnd is None):
            raise ValueError("ShapedPPO needs one bonus: give rnd_cfg, or intrinsic, a callable, and not both")
        self.transform, self.intrinsic, self.settles = transform, intrinsic, on_truncation == "settle"
        self.loans: Any = None
        """The transform's state."""
        self.owed = torch.zeros(0)
        """What each environment owes, valued at its next step."""
        self.shaped_rewards = torch.zeros(0)
        """F'_t of the last step; `intrinsic_rewards` has F_t, which rsl_rl logs."""
        self.steps = 0
        self.broken = 0
        """Finished episodes whose shaped rewards did not cancel, counted after each rollout."""
        self._wrong = self._age = torch.zeros(0)
        self._paid: Paid | None = None
        self._said = False
        self.log = None if record is None else StepLog(record, transform, self.storage.num_envs)

    def process_env_step(
        self, obs: Any, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, torch.Tensor]
    ) -> None:
        """Record one environment step, paid r_t + F'_t."""
        # rsl_rl stores float32; integers and halves, in which loans would be rounded, are paid in it too.
        rewards = rewards if rewards.dtype in (torch.float32, torch.float64) else rewards.float()
        ended = _flags("dones", dones)
        limit = extras.get("time_outs")
        limit = torch.zeros_like(ended) if limit is None else _flags("time_outs", limit.to(ended.device)) & ended
        carried = torch.zeros_like(ended) if self.settles else limit
        F = torch.where(ended, 0.0, self._ask(obs, ended, extras))
        loans = self.transform.init(F) if self.loans is None else self.loans
        after, shaped = self.transform.update(loans, F, ended)
        if isinstance(self.transform, Match):
            # rsl_rl adds γ V(s_t) at a time-out, and V(s_t) charges Debt_t again: that much is given back.
            shaped = shaped + torch.where(carried, self.gamma * owed(self.transform, loans), 0.0)
            self.owed = owed(self.transform, after)
            self._refuse_too_large(shaped, rewards.dtype)
            self._count(shaped, ended, carried)
        if self.log is not None:
            self._record(self.log, loans, F, shaped, ended, limit)
        self.loans, self.steps = after, self.steps + 1
        if self.settles and "time_outs" in extras:
            self._say_once(limit)
            extras = {key: value for key, value in extras.items() if key != "time_outs"}
        self.intrinsic_rewards, self.shaped_rewards = F.to(rewards.dtype), shaped.to(rewards.dtype)
        # The bonus has been added: rsl_rl must not add it again.
        rnd, self.rnd = self.rnd, None
        super().process_env_step(obs, rewards + self.shaped_rewards, dones, extras)
        self.rnd = rnd
        clear = getattr(self.intrinsic, "reset", None)
        if clear is not None and bool(ended.any()):
            clear(ended.cpu().numpy())

    def update(self) -> dict[str, float]:
        """Train on the rollout, and warn if one of its episodes did not cancel."""
        wrong = int(self._wrong.sum()) - self.broken
        if wrong and not self.broken:
            warnings.warn(
                f"{wrong} finished episodes of this rollout did not cancel: the bonus may change the optimal policy; "
                "the likely cause is a Match of your own that does not settle at `done`: payback.check_transform shows "
                "where",
                ShapingWarning,
                stacklevel=2,
            )
        self.broken += wrong
        return super().update()

    def save(self) -> dict:
        """Return rsl_rl's dictionary with the state of the loans in it, as a list of tensors."""
        return {**super().save(), "shaping": [] if self.loans is None else list(leaves(self.loans))}

    def load(self, loaded_dict: dict, load_cfg: dict | None, strict: bool) -> bool:
        """Load what `save` returned. Episodes begin anew: their debts are dropped, F̄ stays."""
        saved = loaded_dict.get("shaping", [])
        if saved:
            device = torch.device(self.device)
            loans = self.transform.init(torch.zeros(self.storage.num_envs, dtype=torch.float64, device=device))
            self.loans = rebuild(loans, iter(leaf.to(device) for leaf in saved))
            if isinstance(self.transform, Match):
                everywhere = torch.ones(self.storage.num_envs, dtype=torch.bool, device=device)
                self.loans, _ = drop(self.transform, self.loans, everywhere)
        return super().load(loaded_dict, load_cfg, strict)

    def _ask(self, obs: Any, ended: torch.Tensor, extras: dict[str, Any]) -> torch.Tensor:
        """Return F_t in float64, (B,)."""
        if self.intrinsic is None:
            values: Any = self.rnd.get_intrinsic_reward(obs)  # type: ignore[union-attr]
        else:
            before, actions = self.transition.observations, self.transition.actions
            seen = {**extras, "valid": (~ended).cpu().numpy()}
            values = ask(self.intrinsic, len(ended), self.steps, before, actions, obs, seen)
        F = torch.as_tensor(values, device=ended.device).detach()
        if tuple(F.shape) != tuple(ended.shape):
            raise ValueError(
                f"the intrinsic reward at step {self.steps} has shape {tuple(F.shape)}, not {tuple(ended.shape)}; "
                "return one number per environment"
            )
        return F.to(torch.float64)

    def _count(self, shaped: torch.Tensor, ended: torch.Tensor, carried: torch.Tensor) -> None:
        """Follow Σγ^t F'_t of each environment and how many steps its episode has had, on its device."""
        if self._paid is None:
            self._paid, self._wrong = nothing_paid(shaped), torch.zeros_like(shaped)
            self._age = torch.zeros_like(shaped)
        judged = ended & ~carried
        # What is below 1e-12 is rounding, whatever the size.
        self._paid, left = add_step(self._paid, shaped, self.owed, ended, judged, self.gamma, 1e-12 / TOLERANCE)
        self._wrong = self._wrong + ~(left <= TOLERANCE)
        self._age = torch.where(ended, 0.0, self._age + 1)

    def _record(
        self, log: StepLog, loans: Any, F: torch.Tensor, shaped: torch.Tensor, ended: torch.Tensor, limit: torch.Tensor
    ) -> None:
        """Write a step; an episode whose debt was carried stays unfinished in the log, because it is not settled."""
        terminated, truncated = (flags.cpu().numpy() for flags in (ended & ~limit, limit))
        settled = truncated if self.settles else None
        log.add(F.cpu().numpy(), loans, shaped.cpu().numpy(), terminated, settled, None)
        if not self.settles and truncated.any():
            log.restart(truncated)

    def _refuse_too_large(self, shaped: torch.Tensor, dtype: torch.dtype) -> None:
        if shaped.device.type == "cpu" and len(self._age):
            large = torch.nonzero(shaped.abs() > torch.finfo(dtype).max)
            if len(large):
                k = int(large[0])
                refuse_too_large(float(shaped[k]), k, int(self._age[k]) + 1)

    def _say_once(self, limit: torch.Tensor) -> None:
        if not self._said and bool(limit.any()):
            self._said = True
            say_time_limit(stacklevel=4)


def _flags(what: str, flags: torch.Tensor) -> torch.Tensor:
    flags = flags.reshape(-1)
    return flags if flags.dtype == torch.bool else read_flags("ShapedPPO", what, flags, flags)
