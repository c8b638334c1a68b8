"""A tiny experiment for testing the machinery: its "training" is a random walk, and it can be told to misbehave.

FAKE_PACE: seconds a batch takes. FAKE_DIE: a file of marks; a batch kills its own process while one is left.
FAKE_FAIL: a scheme that raises. FAKE_LOG: a file that gets a line for every batch. FAKE_CORES: a file that gets the
cores that each batch may use. FAKE_TENTHS: a file that gets a line for every tenth of a batch; batches then write a
checkpoint after each tenth and resume from it. FAKE_HOLD: a number of tenths and a file; a batch that has done so many
waits until the file is there, or until it is killed.
"""

import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from payback_lab.atomic_write import write_file
from payback_lab.claims.claim import DecidedClaim
from payback_lab.methods import SCHEMES
from payback_lab.running.experiment import Experiment
from payback_lab.runs import Asked, Result, Run, checkpoint_of
from payback_lab.user_error import UserError


@dataclass(frozen=True)
class FakeConfig:
    """What a fake run depends on."""

    episodes: int = 400
    """How many episodes are trained."""
    drift: float = 0.25
    """How fast the return grows; not said in the paper."""


@dataclass(frozen=True, kw_only=True)
class FakeExperiment(Experiment):
    def refuse_scheme(self, scheme: str) -> None:
        if scheme not in SCHEMES:
            raise ValueError(f'There is no scheme "{scheme}": choose among {", ".join(SCHEMES)}.')

    def plan(self, asked: Asked) -> list[Run]:
        config = FakeConfig(episodes=asked.steps or FakeConfig.episodes)
        if asked.ablation:
            config = replace(config, **self.ablations[asked.ablation])
        chosen = range(asked.first_seed, asked.first_seed + (asked.seeds or self.seeds))
        schemes = asked.schemes or SCHEMES
        return [Run(self.name, asked.ablation, None, s, seed, config) for s in schemes for seed in chosen]

    def batches(self, runs: list[Run]) -> list[tuple[Run, ...]]:
        return [tuple(group) for _, group in groupby(runs, key=lambda run: run.scheme)]

    def execute(
        self, batch: tuple[Run, ...], progress: Callable[[float], None], out: Path | None = None
    ) -> dict[str, Result]:
        if "FAKE_LOG" in os.environ:
            with open(os.environ["FAKE_LOG"], "a") as log:
                log.write(f"{batch[0].scheme}\n")
        if "FAKE_CORES" in os.environ:
            with open(os.environ["FAKE_CORES"], "a") as log:
                log.write(f"{sorted(os.sched_getaffinity(0))}\n")
        for tenth in range(tenths_done(batch, out), 10):
            progress(tenth / 10)
            hold(tenth)
            time.sleep(float(os.environ.get("FAKE_PACE", "0")) / 10)
            finish_tenth(batch, out, tenth)
        marks = Path(os.environ["FAKE_DIE"]) if "FAKE_DIE" in os.environ else None
        if marks and marks.exists() and marks.read_text():
            marks.write_text(marks.read_text()[1:])
            os.kill(os.getpid(), signal.SIGKILL)
        if os.environ.get("FAKE_FAIL") == batch[0].scheme:
            raise ArithmeticError(f"{batch[0].scheme} <b>diverged</b>")
        return {run.id: fake_result(run) for run in batch}

    def cost(self, batch: tuple[Run, ...]) -> float:
        return 0.1 * len(batch)

    def claims(self, results: Mapping[str, Result]) -> list[DecidedClaim]:
        reached = [r.summary["greedy_return"] == 88 for i, r in results.items() if "/none/" in i]
        verdict = "holds" if reached and all(reached) else "undecided"
        return [DecidedClaim("sec:cw", "No IM is <optimal>.", "88", f"{sum(reached)} of {len(reached)}", verdict)]


def tenths_done(batch: tuple[Run, ...], out: Path | None) -> int:
    checkpoint = None if out is None else checkpoint_of(out, batch[0])
    if checkpoint is None or not checkpoint.exists():
        return 0
    if not checkpoint.read_text().isdecimal():
        raise UserError(f"The checkpoint {checkpoint} is damaged: delete it to begin this run again.")
    return int(checkpoint.read_text())


def hold(tenth: int) -> None:
    tenths, _, gate = os.environ.get("FAKE_HOLD", "").partition(" ")
    while gate and tenth >= int(tenths) and not Path(gate).exists():
        time.sleep(0.02)


def finish_tenth(batch: tuple[Run, ...], out: Path | None, tenth: int) -> None:
    if "FAKE_TENTHS" not in os.environ:
        return
    if out is not None:
        write_file(checkpoint_of(out, batch[0]), str(tenth + 1).encode())
    # After the checkpoint, which a slow disk delays: who reads this line may kill the process.
    with open(os.environ["FAKE_TENTHS"], "a") as log:
        log.write(f"{batch[0].scheme} {tenth}\n")


def fake_result(run: Run) -> Result:
    rng = np.random.default_rng([list(SCHEMES).index(run.scheme), run.seed])
    episodes, speed = run.config.episodes, run.config.drift * (1 + rng.random())
    level = 188 * (1 - np.exp(-speed * np.arange(episodes) / 20)) - 100
    returns = np.round(level + rng.normal(0, 8, episodes)).astype(np.float32)
    lengths = rng.integers(10, 50, episodes).astype(np.int32)
    q = rng.normal(size=(4, 12, 4)).astype(np.float32)
    greedy = 88 if run.scheme == "none" else int(80 + rng.integers(9))
    summary = {"greedy_return": greedy, "greedy_length": 101 - greedy, "optimal": greedy == 88, "reached": None}
    return Result({"return": returns, "length": lengths}, {"q": q}, summary)


EXPERIMENT = FakeExperiment(
    name="fake",
    title="A fake cliff",
    learner_version=3,
    config=FakeConfig,
    ablations={"slow": {"drift": 0.1}},
    seeds=10,
    points=250,
    adds_up=False,
    notes=("The numbers are a random walk.",),
    paper={"greedy_return": {"none": "88"}},
)
