"""Print which planted faults `check_transform` catches, by which property, and that correct shapers pass.

    python benchmarks/check_faults.py [--effort normal] [NAME …]

NAME is a title or a fault. The faults are those of tests/check. Exit status 1 if a fault is missed at this effort, or a
correct shaper is refused. Seconds are of this process; they say little on a busy machine.
"""

import argparse
import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import payback

GAMMA = 0.97


def tables() -> dict[str, dict[str, Any]]:
    """Title → the faults planted under it."""
    where = {
        "repayment": ("repayment_faults", "REPAYMENT"),
        "environments": ("environment_faults", "ENVIRONMENTS"),
        "flags": ("flag_faults", "FLAGS"),
        "purity": ("purity_faults", "PURITY"),
        "rollouts": ("rollout_faults", "ROLLOUTS"),
        "the debt": ("debt_faults", "DEBTS"),
        "functions of one episode": ("faulty_functions", "FUNCTIONS"),
    }
    return {
        f"{title}: {mechanism}": faults
        for title, (module, table) in where.items()
        for mechanism, faults in getattr(import_module(f"check.{module}"), table).items()
    }


def right_shapers() -> dict[str, Any]:
    ours = {
        "grm, delay 10": payback.grm(GAMMA, 10),
        "pbim": payback.pbim(GAMMA),
        "match_evenly": payback.match_evenly(GAMMA, 7),
        "match_geometric": payback.match_geometric(GAMMA, 0.9),
        "match_when": payback.match_when(GAMMA),
    }
    return ours | import_module("check.right_shapers").RIGHT


def violated_property(shaper: Any, effort: Any) -> str | None:
    try:
        payback.check_transform(shaper, GAMMA, effort=effort)
    except payback.InvarianceError as broken:
        return broken.violated
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="titles or faults; all if left out")
    parser.add_argument("--effort", choices=("quick", "normal", "thorough"), default="normal")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    planted = caught = refused = 0
    for title, table in {**tables(), "correct shapers": right_shapers()}.items():
        rows = {n: s for n, s in table.items() if not asked.names or title in asked.names or n in asked.names}
        if rows:
            print(f"\n{title}, effort {asked.effort}")
        for name, shaper in rows.items():
            start = time.process_time()
            found = violated_property(shaper, asked.effort)
            right = title == "correct shapers"
            planted, caught = planted + (not right), caught + (found is not None and not right)
            refused += right and found is not None
            verdict = ("passes" if found is None else f"REFUSED: {found}") if right else found or "MISSED"
            print(f"  {name:52} {verdict:18} {time.process_time() - start:5.1f} s", flush=True)
    print(f"\n{caught} of {planted} planted faults caught, {refused} correct shapers refused (effort {asked.effort})")
    return 1 if refused or caught < planted else 0


if __name__ == "__main__":
    sys.exit(main())
