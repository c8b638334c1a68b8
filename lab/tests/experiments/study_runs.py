"""Made-up finished runs of the studies, as committed summaries hold them; what each method reaches is given."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from payback_lab.experiments import load
from payback_lab.experiments.arena.fewest import FEWEST
from payback_lab.experiments.arena.setting import Setting, parse_setting
from payback_lab.experiments.studies.study import Cell

Outcome = Callable[[Setting, str, int], tuple[float, float]]
"""(setting, method, seed) → the final agent's share, and the best share in training."""


def run_of(name: str, cell: Cell, seed: int, outcome: Outcome) -> dict:
    setting = parse_setting(cell.setting)
    share, best = outcome(setting, cell.method, seed)
    return {
        "id": f"{name}/{cell.setting}/{cell.method}/seed{seed}",
        "scheme": cell.method,
        "seed": seed,
        "trained_steps": cell.steps,
        "sampled_solved": share,
        "sampled_solved_length": 2.5 * FEWEST.get(setting.task, 40.0) if share else None,
        "mean_training_solved": best / 2,
        "best_training_solved": best,
    }


def write_runs(folder: Path, name: str, runs: Iterable[dict]) -> None:
    made = {"learner_version": load(name).learner_version}
    (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / name / "summary.json").write_text(json.dumps({"groups": [{"made": made, "runs": list(runs)}]}))


def write_study(folder: Path, name: str, outcome: Outcome, seeds: int = 3, every: int = 1) -> int:
    """Write the runs of a study's cells that are decided, `every` second or third of them; return how many."""
    study = load(name).informed(folder)
    runs = [
        run_of(name, cell, cell.first_seed + n, outcome) for cell in study.cells for n in range(min(seeds, cell.seeds))
    ][::every]
    write_runs(folder, name, runs)
    return len(runs)


SAFE = {
    "none": (),
    "im": (0.00125, 0.005),
    "pies": (0.005, 0.02),
    "phased": (0.005, 0.02, 0.08),
    "grm-10": (0.08,),
    "grm-30": (0.02,),
}
"""Where a method solves the tasks of the safe range; the advantage side from 0.005 to 0.08, taken back everywhere."""


def of_alpha(setting: Setting, method: str, seed: int) -> tuple[float, float]:
    usual = (0.00125, 0.005, 0.02, 0.08, 0.32) if method.endswith("-back") else (0.005, 0.02, 0.08)
    if setting.alpha in SAFE.get(method, usual):
        return 0.97 + seed / 100, 1.0
    if method == "two-critics-0.99-back" and setting.alpha == 0.32:
        return 0.0, 0.95
    return 0.1 + seed / 50, 0.3


DEEP = ("KeyCorridorS6R3", "MultiRoom-N12-S10", "ObstructedMaze-2Dlh")


def of_task(setting: Setting, method: str, seed: int) -> tuple[float, float]:
    forms = method.startswith(("grm-adv", "two-critics"))
    if setting.task in DEEP or (not forms and "16x16" in setting.task):
        return 0.01 * seed, 0.1
    if method == "grm-adv-300-0.99-back" and setting.task == "KeyCorridorS5R3":
        return 0.02, 0.98
    return (1.0, 1.0) if forms or setting.task == "MultiRoom-N6" else (0.6, 0.8)


def of_bonus(setting: Setting, method: str, seed: int) -> tuple[float, float]:
    good = {"im": ("views",), "grm-30": ("views", "rnd-views", "noveld", "e3b")}.get(
        method, ("views", "rnd-views", "noveld", "e3b", "icm")
    )
    if setting.bonus in good and not (method == "im" and "NoisyTV" in setting.task):
        return 0.98, 1.0
    return 0.2, 0.4
