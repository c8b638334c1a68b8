"""Print which planted faults `check_transform` catches, by which law, and what it cannot see.

python tests/check/caught.py [NAME …]      from the repository's root; exit status 1 if a fault is missed
"""

import sys
import time
import warnings
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import payback


def main(wanted: list[str]) -> int:
    warnings.simplefilter("ignore")
    names = ("faults", "rare_faults", "conditional_faults", "further_faults", "faulty_functions")
    faults, rare, conditional, further, functions = (import_module(f"check.{name}") for name in names)
    tables = {
        "faults found in shaping code": faults.FAULTS,
        "rare faults": rare.RARE,
        "under one condition, listed": conditional.LISTED,
        "under one condition, further": further.FURTHER,
        "functions of one episode": faults.BLACK_BOXES | functions.BLACK_BOXES,
    }
    missed = 0
    for title, table in tables.items():
        rows = {name: shaper for name, shaper in table.items() if not wanted or title in wanted or name in wanted}
        if not rows:
            continue
        print(f"\n{title}")
        for name, shaper in rows.items():
            start = time.process_time()
            law = caught_by(shaper, faults.GAMMA)
            missed += law is None
            print(f"  {name:50} {law or 'MISSED':14} {time.process_time() - start:5.1f} s", flush=True)
    print(f"\n{missed} missed" if missed else "\nall caught")
    return 1 if missed else 0


def caught_by(shaper: object, gamma: float) -> str | None:
    try:
        payback.check_transform(shaper, gamma)  # pyright: ignore
    except payback.LawBroken as broken:
        return broken.law
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
