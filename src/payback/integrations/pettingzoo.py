"""PettingZoo: a wrapper that adds a shaped intrinsic reward to every agent of a parallel environment.

    env = ShapeReward(pursuit_v5.parallel_env(), bonus, payback.grm(0.99, delay=30))

Agents are the rows of one ledger, in the order of `possible_agents`: each earns and repays its own bonus, until its
own end. An agent that has left is an invalid row. All agents share F̄ and the bonus. Each agent's info gets

    extrinsic r_t,  intrinsic F_t,  shaped F'_t,  owed the debt at the next step,  truncated as the environment said
"""

# pyright: standard, reportMissingImports=false
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from payback import messages
from payback.core.transform import RewardTransform
from payback.integrations.host import Shaping, ask, bind_bonus, host, read_end, read_intrinsic
from payback.ledger import OnTruncation, make
from payback.monitor import Monitor

with host("PettingZoo", "pip install 'payback[pettingzoo]'"):
    from pettingzoo import ParallelEnv
    from pettingzoo.utils import BaseParallelWrapper

    from payback.integrations.gymnasium_rows import space_with_debt, with_debt

__all__ = ["ShapeReward", "Source"]

Source = Callable[[Any, Any, Any, dict[str, Any]], Any] | str
"""(obs, actions, next_obs, infos) → (B,) on batches with one row per possible agent, or the name of an info key.

For a callable all agents need one observation space and one action space. `infos` has the agents' own infos by name,
and `infos["valid"]`, (B,), which is False in the rows of agents that took no step: those rows hold zeros.
"""


class ShapeReward(Shaping, BaseParallelWrapper):
    """Add the shaped intrinsic reward to each agent's; the parameters are those of Gymnasium's `ShapeVectorReward`."""

    def __init__(
        self,
        env: ParallelEnv,
        bonus: Source,
        transform: RewardTransform,
        *,
        on_truncation: OnTruncation | None = None,
        observe_debt: bool = False,
        event: Source | None = None,
        learner_gamma: float | None = None,
        record: str | Path | None = None,
    ):
        if not isinstance(env, ParallelEnv) or not getattr(env, "possible_agents", None):
            raise TypeError(f"ShapeReward needs a parallel environment of PettingZoo with possible_agents, got {env!r}")
        super().__init__(env)
        self._rows = {agent: k for k, agent in enumerate(env.possible_agents)}
        spaces = [(env.observation_space(agent), env.action_space(agent)) for agent in self._rows]
        fits = all(pair == spaces[0] and None not in (pair[0].shape, pair[1].shape) for pair in spaces)
        if (callable(bonus) or callable(event)) and not fits:
            remedy = "compute the bonus in the environment, and name its info key"
            raise ValueError(f"the agents' observations or actions don't fit into one batch: {remedy}")
        messages.warn_unseen_debt(transform, None if observe_debt else on_truncation, "Pass observe_debt=True")
        bind_bonus(bonus, *spaces[0])
        ledger = make(transform, on_truncation, trusted=True)
        self.shaping_state = ledger.init(np.zeros(len(spaces)))
        self.monitor = Monitor(ledger, bonus=bonus, learner_gamma=learner_gamma, record=record)
        self._bonus, self._event, self._observe, self._spaces = bonus, event, observe_debt, spaces[0]
        self._shown = {a: space_with_debt(env.observation_space(a)) for a in self._rows} if observe_debt else {}
        self._before: dict[Any, Any] | None = None

    def observation_space(self, agent: Any) -> Any:
        """Return an agent's observation space, with the debt in it if it is observed."""
        return self._shown[agent] if self._observe else self.env.observation_space(agent)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """Reset the environment; the debts of agents in mid-episode are dropped."""
        obs, infos = self.env.reset(seed=seed, options=options)
        self.shaping_state = self.monitor.reset(self.shaping_state)
        self._before = obs
        return self._show(obs, self.owed), infos

    def step(self, actions: dict) -> tuple[dict, dict, dict, dict, dict]:
        """Step the environment; each agent's reward is r_t + F'_t."""
        if self._before is None:
            raise RuntimeError("ShapeReward: call reset before the first step")
        alive = set(self.env.agents)  # before the step: it removes those that end with it
        obs, rewards, terminations, truncations, infos = self.env.step(actions)
        acted = [agent for agent in rewards if agent in alive]
        rows = dict.fromkeys(acted, True), terminations, truncations
        valid, terminated, truncated = (self._flags({agent: row[agent] for agent in acted}) for row in rows)
        before, self._before = self._before, obs
        F, step = self._pay((before, actions, obs, infos, valid), terminated, truncated, valid)
        left = self._flags(dict.fromkeys(alive - set(self.env.agents), True)) & ~(terminated | truncated)
        if left.any():
            self.shaping_state = self.monitor.reset(self.shaping_state, left)
        for agent in acted:
            k = self._rows[agent]
            row = {"extrinsic": rewards[agent], "intrinsic": F[k].item(), "shaped": step.shaped[k].item()}
            infos[agent] = {**infos[agent], **row, "owed": step.owed[k].item(), "truncated": bool(truncations[agent])}
        paid = {agent: reward + step.shaped[self._rows[agent]].item() for agent, reward in rewards.items()}
        ended, cut = ({a: bool(x[self._rows[a]]) for a in rewards} for x in (step.terminated, step.truncated))
        return self._show(obs, step.owed), paid, ended, cut, infos

    def _flags(self, flags: dict[Any, Any]) -> np.ndarray:
        row = np.array([flags.get(agent, False) for agent in self._rows])
        return read_end("an agent's end", row, len(row))

    def _read(self, source: Source, row: tuple[Any, ...]) -> np.ndarray:
        """Return F, or the events, of all agents; 0 where an agent took no step."""
        before, actions, obs, infos, valid = row
        step, B = self.monitor.steps, len(self._rows)
        if isinstance(source, str):
            values = np.zeros(B)
            for agent, k in self._rows.items():
                if valid[k] and source not in infos[agent]:
                    raise KeyError(f"the info of agent {agent!r} has no {source!r} at step {step}")
                values[k] = infos[agent][source] if valid[k] else 0.0
        else:
            observations, of_actions = self._spaces
            parts = (observations, before), (of_actions, actions), (observations, obs)
            batches = (self._batch(space, values, valid) for space, values in parts)
            values = ask(source, B, step, *batches, {**infos, "valid": valid.copy()})
        return np.where(valid, read_intrinsic(values, B, step, valid), 0.0)

    def _batch(self, space: Any, values: dict[Any, Any], valid: np.ndarray) -> np.ndarray:
        batch = np.zeros((len(valid), *space.shape), space.dtype)
        for agent, k in self._rows.items():
            if valid[k]:
                batch[k] = values[agent]
        return batch

    def _show(self, obs: dict, owed: np.ndarray) -> dict:
        if not self._observe:
            return obs
        return {agent: with_debt(value, owed[self._rows[agent]]) for agent, value in obs.items()}

    def close(self) -> None:
        """Close the environment, and write what is left of the log."""
        self.monitor.close()
        self.env.close()
