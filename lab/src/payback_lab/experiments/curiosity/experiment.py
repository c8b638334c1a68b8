"""Curiosity with Stable-Baselines3: MiniGrid DoorKey 6×6, PPO, and every bonus of the library, raw and repaid.

What a user of the library would write first: three lines, the library's defaults, 300,000 steps.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from payback_lab.running.experiment import Experiment
from payback_lab.runs import Asked, Result, Run
from payback_lab.user_error import UserError

SCHEMES = ("none", "im", "pbim", "grm-10", "grm-30")
"""How RND is paid: not at all, as it is, and repaid at the end, after 10 or after 30 steps."""
BONUSES = (
    "rnd",
    "episodic-count",
    "count",
    "simhash",
    "icm",
    "ride",
    "noveld",
    "e3b",
    "disagreement",
    "recency",
)
"""The bonuses of `payback.bonuses` and `payback.bonuses.torch`, each with its defaults; RND is the first result."""
PAIRED = ("im", "grm-30")
"""How every other bonus is paid."""
MANY, FEW = 8, 3
"""Seeds of each scheme of RND, and of each other bonus."""


@dataclass(frozen=True)
class SB3PPO:
    """Hold the numbers of Stable-Baselines3's PPO, and what it is trained with."""

    bonus: str = "rnd"
    """Which bonus, with the library's defaults."""
    total_steps: int = 300_032
    """Steps of all environments together: a whole number of rollouts."""
    environments: int = 8
    """Environments side by side (RL Zoo's entry for MiniGrid DoorKey)."""
    rollout: int = 128
    """Steps of each environment per rollout (RL Zoo and rl-starter-files)."""
    epochs: int = 10
    """Passes over a rollout (RL Zoo)."""
    batch_size: int = 256
    """Transitions per gradient step (rl-starter-files)."""
    learning_rate: float = 1e-3
    """Adam's rate (rl-starter-files)."""
    entropy_weight: float = 0.01
    """Weight of the entropy in PPO's loss (rl-starter-files)."""
    gamma: float = 0.99
    """Discount of the learner and of the repayment's interest (both)."""
    gae_lambda: float = 0.95
    """λ of the advantage estimate (both)."""
    clip_range: float = 0.2
    """PPO's clipping (both)."""

    @property
    def samples(self) -> int:
        """Return the transitions of one rollout."""
        return self.environments * self.rollout


@dataclass(frozen=True)
class CuriosityConfig(SB3PPO):
    """Hold every choice of a run but its scheme and seed."""

    size: int = 6
    """Side of the DoorKey grid, outer walls included; its limit is 10·size² steps."""


def refuse_unknown_bonus(setting: str) -> None:
    """Refuse the name of a bonus that is not there.

    >>> refuse_unknown_bonus("rnd")
    """
    if setting not in BONUSES:
        raise UserError(f'There is no setting "{setting}": it names a bonus, one of {", ".join(BONUSES)}.')


@contextmanager
def needing_sb3(experiment: str) -> Iterator[None]:
    """Turn an import that fails into one sentence that names the package."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise UserError(
            f"{experiment} needs {error.name}, which is not installed: pip install 'payback-lab[sb3]'."
        ) from error


NOTES = (
    "Not in the paper. The grid is the `minigrid` package's DoorKey 6×6 with its limit of 360 steps; the agent sees "
    "7×7 cells of three small numbers each, as one vector of 147. The reward is MiniGrid's, 1 − 0.9·steps/360 at the "
    "goal.",
    "The learner is Stable-Baselines3's PPO with its MLP policy. Its numbers are those of rl-starter-files, by "
    "MiniGrid's authors (rollouts of 128, minibatches of 256, rate 0.001, entropy 0.01), and of the RL Zoo's entry for "
    "DoorKey that follows it (8 environments, 10 epochs). The Zoo's normalisation of rewards is left out, because it "
    "would break the repayment; that of observations, because the numbers are small. Nothing was tuned on outcomes.",
    "Every bonus has the library's defaults. The committed runs have those of version 0.1.0, before bonuses had one "
    "size: α = 0.02 for EpisodicCount, as today, 0.05 for RND, ICM, NovelD, Disagreement, 0.1 for Count, SimHash and "
    "RIDE, 1 for E3B, 0.001 for Recency. Runs made now have today's defaults. Counts take the agent's view as the "
    "place. No bonus is one of zeros, run once, with RND. A truncated episode counts as ended under every scheme.",
    "A seed solves the task if there is a step from which on, to the end of training, at least 90 of the last 100 "
    "episodes reach the goal; the first such step is when. A seed that does not counts with all steps of its training. "
    "The final length is the mean of 100 episodes of the trained agent, acting as in training, on layouts that all "
    "runs share; an episode that does not reach the goal counts with its 360 steps.",
    "Intervals are 95 %: of a share Clopper and Pearson's, of a mean the percentile bootstrap over seeds.",
    "Each seed of every cell is trained before the next seed, so an unfinished study is balanced. Runs whose summary "
    "is committed are skipped.",
)
SECONDS_PER_STEP = 1 / 2500
"""On one core, with MiniGrid's own speed."""


@dataclass(frozen=True, kw_only=True)
class CuriosityExperiment(Experiment):
    """Describe the experiment; see `experiment.Experiment`."""

    config: type[CuriosityConfig] = CuriosityConfig

    def schemes(self, ablation: str | None) -> tuple[str, ...]:
        """Return the schemes of RND."""
        return SCHEMES

    def plan(self, asked: Asked) -> list[Run]:
        """List seed 0 of every cell, then seed 1, and so on; a setting names the bonus."""
        for setting in asked.settings:
            refuse_unknown_bonus(setting)
        asked.refuse_part_of("rollout", self.config().samples)
        cells = {
            (bonus, scheme): MANY if bonus == "rnd" else FEW
            for bonus in asked.settings or self.settings
            for scheme in asked.schemes or (SCHEMES if bonus == "rnd" else PAIRED)
            if scheme != "none" or bonus == "rnd"
        }
        return [
            Run(self.name, None, bonus, scheme, seed, self._config(bonus, asked.steps))
            for seed, (bonus, scheme) in asked.seed_by_seed(cells)
        ]

    def _config(self, bonus: str, steps: int | None) -> CuriosityConfig:
        config = self.config(bonus=bonus)
        return config if steps is None else replace(config, total_steps=steps)

    def execute(
        self, batch: tuple[Run, ...], progress: Callable[[float], None], out: Path | None = None
    ) -> dict[str, Result]:
        """Train one run; two minutes are not worth a checkpoint."""
        with needing_sb3(self.name):
            from payback_lab.experiments.curiosity.training import train
        (run,) = batch
        return {run.id: train(run, progress)}

    def cost(self, batch: tuple[Run, ...]) -> float:
        """Estimate the seconds on one core."""
        return sum(10 + run.config.total_steps * SECONDS_PER_STEP for run in batch)


EXPERIMENT = CuriosityExperiment(
    name="curiosity",
    title="Curiosity with Stable-Baselines3",
    settings=BONUSES,
    seeds=FEW,
    notes=NOTES,
    learner_version=1,
    points=300,
    adds_up=True,
)
