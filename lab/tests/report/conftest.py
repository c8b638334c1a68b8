"""Records of the fake experiment, written without running anything."""

import shutil
from pathlib import Path

import pytest

from payback_lab import records
from payback_lab.methods import SCHEMES
from payback_lab.report.summary import Summary, summarise
from payback_lab.runs import Asked

MADE = {
    "created": "2026-01-02T03:04:05+00:00",
    "command": "payback-lab run fake",
    "commit": "0123abc",
    "python": "3.11",
    "platform": "Linux",
    "packages": {"numpy": "2.4", "jax": None},
    "seconds": 1.5,
}


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records, written once; for reading only."""
    out = tmp_path_factory.mktemp("written")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        from fake_experiment import EXPERIMENT, fake_result

        for ablation in (None, "slow"):
            for run in EXPERIMENT.plan(Asked(SCHEMES, 3, (), 600, ablation)):
                records.write(out, run, fake_result(run), EXPERIMENT.learner_version, MADE)
    return out


@pytest.fixture(scope="session")
def found(written: Path) -> dict[str, records.Record]:
    """The records read back, by run id."""
    return {record.run.id: record for record in map(records.read, records.folders(written))}


@pytest.fixture(scope="session")
def summary(found: dict[str, records.Record]) -> Summary:
    """Their summary; tests change copies of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[1]))
        from fake_experiment import EXPERIMENT

        return summarise(EXPERIMENT, found)


@pytest.fixture
def runs(fake, written: Path, tmp_path: Path) -> Path:
    """A copy of the records that a test may change, with the fake experiment on the command line."""
    return Path(shutil.copytree(written, tmp_path / "runs"))
