"""Train one run of the arena and evaluate the trained agent."""

from collections.abc import Callable
from pathlib import Path

import jax
import numpy as np

from payback_lab.environments.minigrid.layouts import load_layouts, make_task
from payback_lab.experiments.arena.config import ArenaConfig
from payback_lab.experiments.arena.figures import single_figures
from payback_lab.experiments.resumable import keep_compiled, train_to_end
from payback_lab.learners.arena.bonus import BONUSES
from payback_lab.learners.arena.environment import minigrid_environment
from payback_lab.learners.arena.heads import Heads, unflatten
from payback_lab.learners.arena.named import method_of
from payback_lab.learners.arena.play import evaluate
from payback_lab.learners.arena.train import Record, Train, make_train
from payback_lab.learners.ppo.rollout import Environment
from payback_lab.runs import Result, Run, Scalar

EVALUATION = 1000
"""Episodes of each final evaluation."""
WATCHING = 1_000_003
"""Key of the evaluation, the same for every run and no run's own."""


def train(run: Run, learner_version: int, progress: Callable[[float], None], out: Path | None) -> Result:
    """Train a run to its end, from its checkpoint below `out` if there is one."""
    config: ArenaConfig = run.config
    keep_compiled(out)
    task = make_task(config.task, config.payment, config.max_steps)
    environment = minigrid_environment(task, load_layouts(config.task))
    method = method_of(run.scheme, config)
    trainer = make_train(config, method, environment, BONUSES[config.bonus](environment, config.alpha))
    state, columns = train_to_end(trainer, Record._fields, run, learner_version, progress, out)
    watched = _watched(environment, method.heads, state, task.max_steps)
    return _result(state, columns, watched)


def _watched(environment: Environment, heads: Heads, state: Train, limit: int) -> dict[str, Scalar]:
    """Evaluate the agent: sampled and greedy; of a method with two policies also the second one."""
    p, key = unflatten(heads, state.learner.parameters), jax.random.key(WATCHING)
    modes = {"sampled": (False, 0), "greedy": (True, 0), "second": (False, 1)}
    found: dict[str, Scalar] = {}
    for name, (greedy, policy) in modes.items():
        if policy >= heads.policies:
            score = (None, None, None)
        else:
            score = evaluate(environment, heads, p, key, episodes=EVALUATION, steps=limit, greedy=greedy, policy=policy)
        found |= {f"{name}_length": score[0], f"{name}_solved": score[1], f"{name}_solved_length": score[2]}
    return found


def _result(state: Train, columns: dict[str, np.ndarray], watched: dict[str, Scalar]) -> Result:
    """Keep the curve, the trained parameters and the single figures."""
    figures: dict[str, Scalar] = {**single_figures(columns), **watched}
    # The report draws columns of the name `return`; a named tuple cannot have such a field.
    columns = {"return" if name == "reward" else name: column for name, column in columns.items()}
    return Result(columns, {"parameters": np.asarray(state.learner.parameters)}, figures)
