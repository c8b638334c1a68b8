"""skrl (Isaac Lab, ManiSkill): a wrapper that adds a shaped intrinsic reward, for any of its agents.

    env = ShapeVectorReward(wrap_env(env), bonus, payback.grm(0.99, delay=30))
    check_agent(agent, env)
    SequentialTrainer(env=env, agents=agent, cfg={"timesteps": 100_000}).train()

skrl's wrappers of these simulators reset at once and show the next episode's first observation, and unless an agent has
`time_limit_bootstrap=True`, its advantages run on over a truncation. "settle" therefore reports a truncation as a
termination; "carry" settles the debt, too, but leaves the truncation: the learner bootstraps with the next episode's
first observation, whose value contains no debt. `infos` gets, (B,) each: extrinsic r_t, intrinsic F_t, shaped F'_t,
owed, and the environment's own truncated. Shape Gymnasium's environments before `wrap_env`.
"""

# pyright: standard, reportMissingImports=false, reportCallIssue=false
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from payback import messages
from payback.core.transform import RewardTransform
from payback.integrations.host import Shaping, ask, bind_bonus, host, read_tensor, read_tensor_end
from payback.ledger import OnTruncation, make
from payback.monitor import Monitor

with host("skrl", "pip install 'payback[skrl]'"):
    import torch
    from skrl.envs.wrappers.torch import Wrapper

__all__ = ["ShapeVectorReward", "Source", "check_agent"]

Source = Callable[[Any, Any, Any, dict[str, Any]], Any] | str
"""(obs, actions, next_obs, infos) → (B,) on batches of flat tensors, or the name of an entry of `infos`.

`infos["valid"]`, (B,) in NumPy, is False where an episode ended: there `next_obs` is the next episode's first, and a
callable's F counts as 0, which changes no preference, because the last step's loan is repaid at once.
"""


class ShapeVectorReward(Shaping, Wrapper):
    """Add the shaped intrinsic reward to an environment that skrl has wrapped.

    The parameters are those of Gymnasium's `ShapeVectorReward`; there is no `observe_debt`, because no value at an end
    contains a debt. Debts are on the environment's device, in float64.
    """

    def __init__(
        self,
        env: Wrapper,
        bonus: Source,
        transform: RewardTransform,
        *,
        on_truncation: OnTruncation | None = None,
        event: Source | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
    ):
        if not isinstance(env, Wrapper) or "_reset_once" not in vars(env) or "_vectorized" in vars(env):
            what = f"what skrl's wrap_env returns for a simulator that resets at once, got {env!r}"
            raise TypeError(f"ShapeVectorReward shapes {what}; shape others before wrap_env, by Gymnasium's")
        messages.refuse_unknown(transform, on_truncation)
        super().__init__(env)
        bind_bonus(bonus, env.observation_space, env.action_space)
        self.carries = on_truncation == "carry"  # whether truncations stay truncations
        ledger = make(transform, None if on_truncation is None else "settle")
        self.monitor = Monitor(ledger, bonus=bonus, learner_gamma=learner_gamma, record=record, pays=np.float32)
        self.shaping_state = ledger.init(torch.zeros(env.num_envs, dtype=torch.float64, device=env.device))
        self._bonus, self._event, self._obs = bonus, event, None

    device = property(lambda self: self._env.device)
    num_envs = property(lambda self: self._env.num_envs)
    state_space = property(lambda self: self._env.state_space)
    observation_space = property(lambda self: self._env.observation_space)
    action_space = property(lambda self: self._env.action_space)

    def reset(self) -> tuple[torch.Tensor, dict[str, Any]]:
        """Reset the environments the first time; later skrl goes on with the episodes under way, and so does this."""
        begins = self._env._reset_once
        obs, infos = self._env.reset()
        if begins:
            self.shaping_state = self.monitor.reset(self.shaping_state)
        self._obs = obs.clone()
        return obs, infos

    def step(self, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, Any]:
        """Step all environments; the reward is r_t + F'_t."""
        obs, reward, terminated, truncated, infos = self._env.step(actions)
        before, self._obs = self._obs, obs.clone()
        terminated, truncated = read_tensor_end("terminated", terminated), read_tensor_end("truncated", truncated)
        ended = terminated | truncated
        transition = before, actions, obs, {**infos, "valid": (~ended).cpu().numpy()}
        F = self._ask(self._bonus, transition, ended)
        event = None if self._event is None else self._ask(self._event, transition, ended) != 0
        cut = torch.zeros_like(ended) if self.carries else truncated
        self.shaping_state, paid = self.monitor.step(self.shaping_state, F, ended & ~cut, cut, None, event)
        extrinsic = reward.reshape(-1).float()
        infos = {**infos, "extrinsic": extrinsic, "intrinsic": F, "shaped": paid.shaped, "owed": paid.owed}
        flags = (terminated, truncated & ~terminated) if self.carries else (paid.terminated, paid.truncated)
        # Of its own memory: skrl adds the bootstrapped value to the rewards that it is given.
        total = (extrinsic + paid.shaped.float())[:, None]
        return obs, total, flags[0][:, None], flags[1][:, None], {**infos, "truncated": truncated}

    def _ask(self, source: Source, transition: tuple[Any, ...], ended: torch.Tensor) -> torch.Tensor:
        """Return F, or the events, in float64; 0 at ends, whose last observation is not shown to a callable."""
        infos, step = transition[3], self.monitor.steps
        if not isinstance(source, str):
            return read_tensor(ask(source, len(ended), step, *transition), ended, step, ended)
        if source not in infos:
            raise KeyError(f"infos has no {source!r} at step {step}")
        return read_tensor(infos[source], ended, step)

    def state(self) -> torch.Tensor | None:
        """Return the environments' states, for critics."""
        return self._env.state()

    def render(self, *args: Any, **kwargs: Any) -> Any:
        """Render the environments."""
        return self._env.render(*args, **kwargs)

    def close(self) -> None:
        """Close the environments, and write what is left of the log."""
        self.monitor.close()
        self._env.close()


def check_agent(agent: Any, env: Any) -> None:
    """Refuse an agent whose γ, time limits or `rewards_shaper` undo the guarantee; `env` is what the trainer gets."""
    monitor, cfg = env.monitor, agent.cfg
    monitor.confirmed = messages.is_confirmed(monitor.ledger.transform, cfg.discount_factor)
    carries = getattr(env, "carries", monitor.ledger.on_truncation == "carry")
    if carries and not getattr(cfg, "time_limit_bootstrap", True):
        raise ValueError("on_truncation='carry' needs an agent that bootstraps there: set time_limit_bootstrap=True")
    if getattr(cfg, "rewards_shaper", None) is not None:
        rewards = torch.tensor([[1.0], [-3.0], [1000.0]])
        ratio = cfg.rewards_shaper(rewards.clone(), 0, 1) / rewards
        if not torch.allclose(ratio, ratio[0]):
            raise ValueError("rewards_shaper may only multiply by a constant, or loans and repayments don't cancel")
