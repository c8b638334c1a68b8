"""PettingZoo: a wrapper that adds a shaped intrinsic reward to every agent of a parallel environment.

    env = ShapeReward(pursuit_v5.parallel_env(), bonus, payback.grm(0.99, delay=30))

Agents are the rows of one ledger, in the order of `possible_agents`: each borrows and repays by itself, and each one's
end is its own. An agent that has left is an invalid row, which is paid 0 and changes nothing. What it owed was settled
at its last step. All agents share F̄ and the bonus. Each agent's info gets

    extrinsic r_t,  intrinsic F_t,  shaped F'_t,  owed the debt at the next step,  truncated as the environment said
"""

# The host's types are generic or missing.
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
    """Add the shaped intrinsic reward to each agent's reward.

    The parameters and attributes are those of Gymnasium's `ShapeVectorReward`, with one row per possible agent.
    """

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
        if (callable(bonus) or callable(event)) and any(
            pair != spaces[0] or None in (pair[0].shape, pair[1].shape) for pair in spaces
        ):
            raise ValueError(
                "the agents' observations or actions don't fit into one batch, because their spaces differ or are no "
                "arrays: compute the bonus in the environment, and name its info key"
            )
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
        valid, terminated, truncated = (
            self._flags({agent: flags[agent] for agent in acted})
            for flags in (dict.fromkeys(acted, True), terminations, truncations)
        )
        before, self._before = self._before, obs
        transition = before, actions, obs, infos
        try:
            F, event = self._read(self._bonus, transition, valid), None
            if self._event is not None:
                event = self._read(self._event, transition, valid) != 0
            state, step = self.monitor.step(self.shaping_state, F, terminated, truncated, valid, event)
        except Exception:
            # A caller that goes on must not find the debts of these agents in the next episodes.
            self.shaping_state = self.monitor.reset(self.shaping_state, terminated | truncated)
            raise
        left = {agent: agent in alive and agent not in self.env.agents for agent in self._rows}
        left = self._flags(left) & ~(terminated | truncated)
        self.shaping_state = self.monitor.reset(state, left) if left.any() else state
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

    def _read(self, source: Source, transition: tuple[Any, ...], valid: np.ndarray) -> np.ndarray:
        """Return F, or the events, of all rows; 0 where an agent took no step."""
        before, actions, obs, infos = transition
        step, B, agents = self.monitor.steps, len(self._rows), [a for a, k in self._rows.items() if valid[k]]
        if isinstance(source, str):
            missing = [agent for agent in agents if source not in infos[agent]]
            if missing:
                raise KeyError(f"the info of agent {missing[0]!r} has no {source!r} at step {step}")
            values = np.array([infos[agent][source] if valid[k] else 0.0 for agent, k in self._rows.items()], float)
        else:
            spaces = self._spaces[0], self._spaces[1], self._spaces[0]
            rows = (self._batch(*pair, agents) for pair in zip(spaces, (before, actions, obs), strict=True))
            values = ask(source, B, step, *rows, {**infos, "valid": valid.copy()})
        return np.where(valid, read_intrinsic(values, B, step, valid), 0.0)

    def _batch(self, space: Any, values: dict[Any, Any], agents: list[Any]) -> np.ndarray:
        batch = np.zeros((len(self._rows), *space.shape), space.dtype)
        for agent in agents:
            batch[self._rows[agent]] = values[agent]
        return batch

    def _show(self, obs: dict, owed: np.ndarray) -> dict:
        if not self._observe:
            return obs
        return {agent: with_debt(value, owed[self._rows[agent]]) for agent, value in obs.items()}

    def close(self) -> None:
        """Close the environment, and write what is left of the log."""
        self.monitor.close()
        self.env.close()
