"""rsl_rl (Isaac Lab, mjlab): a PPO whose `process_env_step` pays r_t + F'_t and never bootstraps a settled debt.

    cfg["algorithm"] = {"class_name": ShapedPPO, "transform": payback.grm(0.99, delay=30), "gamma": 0.99,
                        "rnd_cfg": {...}}                         or "bonus": a callable, in the place of rnd_cfg
    OnPolicyRunner(env, cfg).learn(1000)

rsl_rl's own PPO adds γ V(s_t) to the reward of every step that `extras["time_outs"]` flags, where a settled debt would
be paid twice. So time-outs are masked (`on_truncation="settle"`), or kept and the debt left to the value ("carry"):

    F'_t = −Debt_t + γ Debt_t at such a time-out, so that for a critic that sees the debt, V = V_E − Debt,
    r_t + F'_t + γ V(s_t) = r_t + γ V_E(s_t) − Debt_t

The debts are on the device of the rewards, in float64; an accelerator's values are read once per rollout.
"""

# pyright: standard, reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from payback import messages
from payback.core.state import leaves, rebuild
from payback.core.transform import Match, RewardTransform
from payback.integrations.host import ask, bind_bonus, host, read_tensor, read_tensor_end
from payback.ledger import LedgerState, OnTruncation, Step, make
from payback.monitor import Monitor

with host("rsl_rl", "pip install 'payback[rsl-rl]'"):
    import torch
    from rsl_rl.algorithms import PPO

Source = Callable[[Any, Any, Any, dict[str, Any]], Any] | str
"""(obs, actions, next_obs, extras) → (B,) on batches, or a key of extras; the observations are rsl_rl's TensorDicts.

rsl_rl does not show an episode's last observation: in the rows of `dones`, `next_obs` is the next episode's first,
`extras["valid"]` is False, and F is taken as 0, which changes no preference, because its loan is repaid at once. If the
callable has a method `reset(where)`, that is called with the (B,) mask of the episodes that ended.
"""


class ShapedPPO(PPO):
    """PPO of rsl_rl with a shaped intrinsic reward.

    The bonus is rsl_rl's RND (`rnd_cfg`) or `bonus`; the other parameters are those of Gymnasium's `ShapeVectorReward`,
    with rsl_rl's own `gamma` for `learner_gamma`. rsl_rl deep-copies its configuration: read the bonus as
    `runner.alg.bonus`. With several GPUs each process has its own F̄. With `record` each step is copied to the CPU.
    """

    def __init__(
        self,
        *args: Any,
        transform: RewardTransform,
        bonus: Source | None = None,
        on_truncation: OnTruncation | None = None,
        event: Source | None = None,
        record: str | Path | None = None,
        **options: Any,
    ):
        messages.refuse_unknown(transform, on_truncation)
        super().__init__(*args, **options)
        if (bonus is None) == (self.rnd is None):
            raise ValueError("ShapedPPO needs one bonus: give rnd_cfg, or bonus (a callable, a key of extras)")
        messages.warn_unseen_debt(transform, on_truncation, "Add `runner.alg.debts.owed` to the critic's observations")
        # rsl_rl bootstraps with V(s_t): a carried debt is settled too, and γ Debt_t given back.
        ledger = make(transform, None if on_truncation is None else "settle")
        self.monitor = Monitor(ledger, bonus=bonus, learner_gamma=self.gamma, record=record, pays=np.float32)
        self.bonus, self.event, self.settles = bonus, event, ledger.settles and on_truncation != "carry"
        self.debts: LedgerState | None = None  # the ledger's state; `debts.owed` is what each environment owes
        self.shaped_rewards = torch.zeros(0)  # F'_t of the last step; `intrinsic_rewards` has F_t, which rsl_rl logs
        self._each_step = record is not None or hasattr(bonus, "reset")
        self._residuals: list[torch.Tensor] = []
        self._limits: torch.Tensor | None = None

    def process_env_step(self, obs: Any, rewards: torch.Tensor, dones: torch.Tensor, extras: dict[str, Any]) -> None:
        """Record one environment step, paid r_t + F'_t."""
        # rsl_rl stores float32; integers and halves, in which loans would be rounded, are paid in it too.
        rewards = rewards if rewards.dtype in (torch.float32, torch.float64) else rewards.float()
        ended, limit, ledger = read_tensor_end("dones", dones), extras.get("time_outs"), self.monitor.ledger
        no = torch.zeros_like(ended)
        limit = no if limit is None else read_tensor_end("time_outs", limit.to(ended.device)) & ended
        F = self._ask(self.bonus, obs, ended, extras)
        event = None if self.event is None else self._ask(self.event, obs, ended, extras) != 0
        before = ledger.init(F) if self.debts is None else self.debts
        self.debts, step = ledger.step(before, F, ended & ~limit, limit, event=event)
        if not self.settles:
            given_back = torch.where(limit, self.gamma * before.owed, 0.0)
            step = step._replace(shaped=step.shaped + given_back, terminated=ended & ~limit, truncated=limit)
        self._look(before, F, step, limit)
        if self.settles:
            extras = {key: value for key, value in extras.items() if key != "time_outs"}
        self.intrinsic_rewards, self.shaped_rewards = F.to(rewards.dtype), step.shaped.to(rewards.dtype)
        # The bonus has been added: rsl_rl must not add it again.
        rnd, self.rnd = self.rnd, None
        super().process_env_step(obs, rewards + self.shaped_rewards, dones, extras)
        self.rnd = rnd

    def update(self) -> dict[str, float]:
        """Train on the rollout, and warn if one of its episodes did not cancel."""
        if self._residuals:
            self.monitor.judge(torch.cat(self._residuals))
            self._residuals = []
        if self._limits is not None and bool(self._limits):
            self.monitor.see_time_limit()
        self._limits = None
        return super().update()

    def save(self) -> dict:
        """Return rsl_rl's dictionary with the transform's state in it, as a list of tensors."""
        return {**super().save(), "shaping": [] if self.debts is None else list(leaves(self.debts.loans))}

    def load(self, loaded_dict: dict, load_cfg: dict | None, strict: bool) -> bool:
        """Load what `save` returned. Episodes start over: their debts are dropped, F̄ stays."""
        saved = loaded_dict.get("shaping", [])
        if saved:
            ledger, B = self.monitor.ledger, self.storage.num_envs
            example = torch.zeros(B, dtype=torch.float64, device=self.device)
            loans = rebuild(ledger.transform.init(example), iter(leaf.to(example.device) for leaf in saved))
            self.debts, _ = ledger.reset(ledger.init(example, loans), torch.ones_like(example, dtype=torch.bool))
        return super().load(loaded_dict, load_cfg, strict)

    def _ask(self, source: Source | None, obs: Any, ended: torch.Tensor, extras: dict[str, Any]) -> torch.Tensor:
        """Return F_t, or the events, in float64, (B,); 0 at ends, whose last observation is not shown to a callable."""
        if source is None:
            values: Any = self.rnd.get_intrinsic_reward(obs)  # type: ignore[union-attr]
        elif isinstance(source, str):
            if source not in extras:
                raise KeyError(f"extras has no {source!r}; the environment gives {', '.join(sorted(extras))}")
            values = extras[source]
        else:
            before, actions = self.transition.observations, self.transition.actions
            if not self.monitor.steps:  # rsl_rl has no spaces: its actions are numbers
                bind_bonus(source, None, SimpleNamespace(shape=tuple(actions.shape[1:])))
            seen = {**extras, "valid": (~ended).cpu().numpy()}
            values = ask(source, len(ended), self.monitor.steps, before, actions, obs, seen)
        return read_tensor(values, ended, self.monitor.steps, None if isinstance(source, str) else ended)

    def _look(self, before: LedgerState, F: torch.Tensor, step: Step, limit: torch.Tensor) -> None:
        """Let the monitor see the step; on an accelerator, if nothing else reads each step, once per rollout."""
        if self._each_step or F.device.type == "cpu":
            self.monitor.see(before, F, step, limit if self.settles else torch.zeros_like(limit))
            return
        if isinstance(self.monitor.ledger.transform, Match):
            self._residuals.append(step.residual[step.terminated])
        if self.settles:
            self._limits = limit.any() if self._limits is None else self._limits | limit.any()
