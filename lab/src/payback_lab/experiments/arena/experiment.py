"""The arena: every way to tame a bonus that the paper names, and those that came after, in one PPO on MiniGrid.

A setting names task, α and γ, a scheme the method: `arena/DoorKey-11x11_a0.02_g0.995/eipo/seed0`.
"""

import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from payback_lab.claims.decide import Claims
from payback_lab.environments.minigrid.layouts import load_layouts, make_task, pool_path
from payback_lab.experiments.arena.claims import arena_claims
from payback_lab.experiments.arena.config import FADING, METHODS, SETTINGS, ArenaConfig, config_of
from payback_lab.experiments.arena.figures import single_figures
from payback_lab.experiments.arena.finished import Finished, finished_runs
from payback_lab.experiments.arena.setting import Setting, parse_setting
from payback_lab.experiments.arena.study import parts_of, planned_runs, said
from payback_lab.experiments.doorkey.sized import ONE_SEED_FIRST
from payback_lab.learners.arena.config import ARENA_VERSION
from payback_lab.methods import ADVANTAGE_SIDE, parse_advantage_side, parse_method
from payback_lab.running.experiment import Experiment, committed_figures
from payback_lab.runs import Asked, Result, Run, Scalar
from payback_lab.user_error import UserError

NOTES = (
    "Not in the paper. The tasks are the `minigrid` package's, its own layouts and time limits; the reward is 1 for "
    "success. The bonus is α over the number of visits to a place in this episode, or RND where a setting says so. A "
    "place is (x, y, carrying something), with the noisy TV also the colour it shows.",
    "One PPO with one trunk for all methods, and as many policies and critics as a method needs; the steps of all "
    "policies count. The docstrings in `lab/src/payback_lab/learners/arena/` define each method.",
    "PIES and phased-in repayment leave the raw bonus between a quarter and five eighths of training, ADOPES in "
    "its first half. ADOPS has the ε of its public notes, 1e-7: an action worse for the task is only just worse.",
    "A seed solves the task if there is a step from which on, to the end of training, at least 90 % of the last 100 "
    "episodes are solved. Final figures are over 1,000 episodes of the trained agent, acting as in training unless "
    "they say greedy; an episode that is not solved counts with the time limit. In EIPO and HEPO the policy for both "
    "rewards is the agent, and only its episodes count; the other one's figures are called second. EIPO's policies "
    "take turns within an episode, so its training figures are of both, counted where the agent ended an episode.",
    "Without options the command plans the study of docs/predictions.md. Each method's α, the third and fourth task "
    "and the two that get more seeds are computed from the committed runs by the rules there. D = 1 and D = 100, which "
    "are only swept, have the α of D = 10 and D = 30; the raw bonus and D = 30 are also run on the noisy TV's task "
    "without it, because a prediction compares the two.",
    ONE_SEED_FIRST,
)
SECONDS_PER_STEP = 1 / 20_000
"""On one core that is not shared."""


@dataclass(frozen=True, kw_only=True)
class ArenaExperiment(Experiment):
    """Describe the experiment; see `experiment.Experiment`."""

    config: type[ArenaConfig] = ArenaConfig
    finished: Finished = field(default_factory=dict)
    """The runs that are committed, on which it depends what is planned."""

    def informed(self, summaries: Path) -> "ArenaExperiment":
        """Return the experiment with the runs that are committed."""
        return replace(self, finished=finished_runs(committed_figures(summaries, self).values()))

    @property
    def later(self) -> str:
        """Say which parts of the study are planned now, and when the others will be."""
        return said(parts_of(self.finished))

    def schemes(self, ablation: str | None) -> tuple[str, ...]:
        """Return the methods."""
        return METHODS

    def refuse_scheme(self, scheme: str) -> None:
        """Refuse a name that is no method of the arena."""
        parse_method(scheme)

    def plan(self, asked: Asked) -> list[Run]:
        """List the study, as far as the committed runs decide what it consists of; what is named is run as named.

        Then seed 0 of every method at every setting comes first, then seed 1, and so on.
        """
        if asked == Asked():
            return [self._run(run.setting, run.method, run.seed) for run in planned_runs(parts_of(self.finished))]
        asked.refuse_part_of("update", self.config().samples)
        settings = [parse_setting(setting) for setting in asked.settings or self.settings]
        named = [(setting.name, method) for setting in settings for method in _methods(setting, asked.schemes)]
        cells = dict.fromkeys(named, self.seeds)
        return [self._run(*cell, seed, asked.steps) for seed, cell in asked.seed_by_seed(cells)]

    def _run(self, setting: str, scheme: str, seed: int, steps: int | None = None) -> Run:
        return Run(self.name, None, setting, scheme, seed, config_of(parse_setting(setting), steps))

    def prepare(self, runs: Sequence[Run]) -> None:
        """Refuse what cannot be run: no `minigrid`, layouts of another version of it, interest beyond float32."""
        if importlib.util.find_spec("minigrid") is None:
            raise UserError("arena needs minigrid, which draws the layouts and is not installed: pip install minigrid.")
        for task in dict.fromkeys(run.config.task for run in runs):
            if pool_path(task).exists():  # otherwise the version there is will draw them
                load_layouts(task)
        for run in runs:
            _refuse_overflow(run)

    def execute(
        self, batch: tuple[Run, ...], progress: Callable[[float], None], out: Path | None = None
    ) -> dict[str, Result]:
        """Train one run, from its checkpoint if there is one."""
        from payback_lab.experiments.arena.training import train

        (run,) = batch
        return {run.id: train(run, self.learner_version, progress, out)}

    def claimed_of(self, results: Mapping[str, Result]) -> Claims | None:
        """Return what was predicted, of the cells that the results choose."""
        return arena_claims(results)

    def cost(self, batch: tuple[Run, ...]) -> float:
        """Estimate the seconds on one core: compiling, training, and watching the trained agent."""
        return sum(60 + run.config.total_steps * SECONDS_PER_STEP for run in batch)

    def figures(self, result: Result, config: Mapping[str, Any]) -> dict[str, Scalar]:
        """Return the figures, those of the curve computed from it again."""
        return {**result.summary, **single_figures(result.columns)}


def _methods(setting: Setting, asked: Sequence[str]) -> Sequence[str]:
    """Return the methods to run at a setting; one without ζ is refused where ζ is given, because nothing would read it.

    >>> _methods(parse_setting("Empty-5x5_a0.02_z0.2-0.5"), ())
    ('pies', 'phased', 'adopes')
    """
    for method in asked:
        refuse_method(setting, method)
    return asked or (METHODS if setting.schedule is None else FADING)


def refuse_method(setting: Setting, method: str) -> None:
    """Refuse a method that cannot be run at a setting."""
    if setting.schedule is not None and method not in FADING:
        raise UserError(
            f"{method} has no ζ, which the setting {setting.name} gives: leave _z and what follows out of the "
            f"setting, or choose among {', '.join(FADING)}."
        )
    if method.startswith(ADVANTAGE_SIDE):
        form = parse_advantage_side(method)
        if form.critic and form.lam * setting.gamma >= 1:
            raise UserError(
                f"{method} at {setting.name} has a second critic with discount γλ_I = 1, whose values have no bound: "
                f"take λ_I or γ below 1{', or -lone' if form.delay else ''}."
            )


def _refuse_overflow(run: Run) -> None:
    """Refuse PBIM where the interest γ⁻ᵗ of a loan over a whole episode is more than float32 holds."""
    config: ArenaConfig = run.config
    if parse_method(run.scheme).kind != "pbim":
        return
    limit = make_task(config.task, config.payment, config.max_steps).max_steps
    if -limit * math.log(config.gamma) > math.log(np.finfo(np.float32).max):
        raise UserError(
            f"{run.scheme} cannot be run in {run.setting}: over {limit:,} steps the interest at γ = {config.gamma:g} "
            "is more than float32 holds; take a shorter time limit, a larger γ, or grm-D."
        )


EXPERIMENT = ArenaExperiment(
    name="arena",
    title="Every way to tame a bonus, side by side",
    settings=SETTINGS,
    notes=NOTES,
    learner_version=ARENA_VERSION,
    points=75,
    adds_up=True,
)
