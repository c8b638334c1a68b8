"""How the runs of doorkey, reach, delay and center are made: PPO with an LSTM, every run in a process of its own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from payback_lab.experiments.doorkey.config import DoorKeyConfig
from payback_lab.experiments.doorkey.figures import single_figures
from payback_lab.learners.ppo.config import LEARNER_VERSION
from payback_lab.running.experiment import Experiment
from payback_lab.running.plan import Result, Run, Scalar


@dataclass(frozen=True, kw_only=True)
class DoorKeyRuns(Experiment):
    """Describe an experiment on DoorKey but for which runs are planned."""

    config: type[DoorKeyConfig] = DoorKeyConfig
    learner_version: int = LEARNER_VERSION
    points: int = 300
    adds_up: bool = True

    def execute(
        self, batch: tuple[Run, ...], progress: Callable[[float], None], out: Path | None = None
    ) -> dict[str, Result]:
        """Train one run, from its checkpoint if there is one."""
        from payback_lab.experiments.doorkey.training import train

        (run,) = batch
        return {run.id: train(run, self.learner_version, progress, out)}

    def cost(self, batch: tuple[Run, ...]) -> float:
        """Estimate the seconds on one core: compiling, training, and watching the trained agent."""
        return sum(30 + run.config.total_steps / 38_000 for run in batch)

    def figures(self, result: Result, config: Mapping[str, Any]) -> dict[str, Scalar]:
        """Return the figures, those of the curve computed from it again."""
        return {**result.summary, **single_figures(result.columns, config["size"])}
