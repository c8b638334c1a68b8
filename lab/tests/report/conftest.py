"""A records folder of the fake experiment, all schemes and one ablation, written without running anything."""

from pathlib import Path

import pytest

from payback_lab import records
from payback_lab.methods import SCHEMES

MADE = {
    "created": "2026-01-02T03:04:05+00:00",
    "command": "payback-lab run fake",
    "commit": "0123abc",
    "python": "3.11",
    "platform": "Linux",
    "packages": {"numpy": "2.4", "jax": None},
    "seconds": 1.5,
}


def fill(fake, out: Path, schemes: tuple[str, ...] = SCHEMES, seeds: int = 3, steps: int = 600) -> None:
    from fake_experiment import fake_result

    for ablation in (None, "slow"):
        for run in fake.plan(schemes, seeds, (), steps, ablation):
            records.write(out, run, fake_result(run), fake.learner_version, MADE)


@pytest.fixture
def runs(fake, tmp_path: Path) -> Path:
    fill(fake, tmp_path / "runs")
    return tmp_path / "runs"
