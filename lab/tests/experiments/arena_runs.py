"""Made-up finished runs of the arena, as a committed summary holds them."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from payback_lab.experiments.arena.chosen import ALPHAS, CANDIDATES, SCREENED, TUNED, TUNING_SEED, cell_of
from payback_lab.experiments.arena.config import METHODS, config_of
from payback_lab.experiments.arena.fewest import FEWEST, LIMITS
from payback_lab.experiments.arena.setting import parse_setting
from payback_lab.runs import Run


def made(setting: str, method: str, seed: int = 0, *, share: float = 1.0, times: float = 2.0, **more: Any) -> dict:
    """Return a run that solves a share of the episodes, those in so many times the fewest steps."""
    parsed = parse_setting(setting)
    length, limit = times * FEWEST[parsed.task], parsed.max_steps or LIMITS[parsed.task]
    steps = config_of(parsed, None).total_steps
    return {
        "id": Run("arena", None, setting, method, seed, None).id,
        "scheme": method,
        "seed": seed,
        "trained_steps": steps,
        "solved_step": steps // 2 if share > 0.9 else None,
        "mean_training_solved": share,
        "final_training_solved": share,
        "final_training_length": share * length + (1 - share) * limit,
        "sampled_solved": share,
        "sampled_length": share * length + (1 - share) * limit,
        "sampled_solved_length": length if share else None,
        "final_multiplier": 0.5 if method in ("eipo", "hepo") else None,
        **more,
    }


def tuned(best: float = 0.02) -> list[dict]:
    """Return the runs that choose this α for every method."""
    runs = [
        made(cell_of(TUNED, alpha), method, TUNING_SEED, share=0.9 if alpha == best else 0.5)
        for alpha in ALPHAS
        for method in METHODS
        if method != "none"
    ]
    return [*runs, made(cell_of(TUNED), "none", TUNING_SEED)]


def screening(telling: str = "FourRooms") -> list[dict]:
    """Return the runs of the screening; one task tells methods apart more than all others."""
    return [
        made(cell_of(task), method, share=0.8, times=20.0 if task == telling else 1.2)
        for task in CANDIDATES
        for method in SCREENED
    ]


def write_summary(folder: Path, runs: Iterable[dict]) -> Path:
    """Write what `payback-lab run` reads of a committed summary."""
    (folder / "arena").mkdir(parents=True, exist_ok=True)
    groups = [{"name": "arena", "made": {"learner_version": 1}, "runs": list(runs)}]
    (folder / "arena/summary.json").write_text(json.dumps({"groups": groups}))
    return folder
