"""Which runs are in the committed summaries already, so that they need not be made again."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from payback_lab.running.experiment import Experiment
from payback_lab.running.plan import Run
from payback_lab.user_error import UserError


def committed_runs(summaries: Path, experiment: Experiment, runs: Sequence[Run]) -> set[str]:
    """Return the ids of these runs that are in the committed summary of an experiment that adds up over days.

    A run is the same if its id and its number of training steps are. A summary made by another learner is refused.
    """
    if not experiment.adds_up:
        return set()
    there = committed_figures(summaries, experiment)
    return {run.id for run in runs if (run.id, run.config.total_steps) in there}


def committed_figures(summaries: Path, experiment: Experiment) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the single figures of the committed runs, by id and steps of training; {} if there is no summary."""
    path = summaries / experiment.name / "summary.json"
    if not path.exists():
        return {}
    try:
        groups = json.loads(path.read_text())["groups"]
        versions = {group["made"]["learner_version"] for group in groups}
        there = {(run["id"], run["trained_steps"]): run for group in groups for run in group["runs"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"The summary {path} cannot be read ({error}): bring it back from git, or move it away."
        ) from error
    if versions - {experiment.learner_version}:
        raise UserError(
            f"The summary {path} was made by learner version {min(versions)}, not {experiment.learner_version}: "
            "move it away, or choose another --summaries."
        )
    return there
