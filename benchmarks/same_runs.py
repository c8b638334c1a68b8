"""Are short runs of the lab the same to the bit at another commit? Make them there and here, and compare every number.

    python benchmarks/same_runs.py 81664e1         some ten minutes on one core

Three DoorKey runs of 200 updates, a short arena run and a cell of the cliff, in a temporary worktree of the commit and
in this tree. Everything recorded is compared (learning curve, arrays, figures), except how and how fast a run was made.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from payback_lab.records import read

ROOT = Path(__file__).parents[1]
UPDATE = 16 * 128
"""Steps of one update: 16 environments, 128 steps each."""
RUNS = {
    "doorkey": ["--schemes", "im", "pbim", "grm-10", "--settings", "a0.02-g0.995", "--steps", str(200 * UPDATE)],
    "arena": ["--schemes", "grm-10", "--settings", "DoorKey-8x8_a0.02_g0.995", "--steps", str(8 * UPDATE)],
    "cliff": ["--schemes", "grm-1", "--steps", "200"],
}


def make_runs(tree: Path, out: Path) -> None:
    """Make the runs with the code of a tree."""
    paths = {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree / 'lab' / 'src'}"}
    for experiment, options in RUNS.items():
        command = [sys.executable, "-m", "payback_lab.cli", "run", experiment, *options]
        command += ["--seeds", "1", "--workers", "1", "--again", "--out", str(out)]
        subprocess.run(command, cwd=tree, env=os.environ | paths, check=True)


def numbers(folder: Path) -> dict[str, np.ndarray]:
    """Return every number of a run's record by name."""
    result = read(folder).result
    groups = {"columns": result.columns, "arrays": result.arrays, "summary": result.summary}
    return {f"{group}.{name}": np.asarray(x) for group, found in groups.items() for name, x in found.items()}


def differences(before: Path, after: Path) -> list[str]:
    """Return a line for each number that is not the same to the bit."""
    folders = sorted({path.parent.relative_to(out) for out in (before, after) for path in out.rglob("manifest.json")})
    lines = []
    for folder in folders:
        old, new = (numbers(out / folder) for out in (before, after))
        both = old.keys() & new.keys()
        differ = sorted((old.keys() ^ new.keys()) | {name for name in both if not same(old[name], new[name])})
        lines += [f"{folder}: {name}" for name in differ]
        print(f"{folder}: {len(new)} columns and figures, {len(differ)} differ")
    return lines


def same(x: np.ndarray, y: np.ndarray) -> bool:
    """Return whether two arrays are equal to the bit, NaN included."""
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def main() -> int:
    """Make the runs at both commits; exit with 1 where something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the commit to compare with")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        other, before, after = (Path(folder) / name for name in ("tree", "before", "after"))
        subprocess.run(["git", "worktree", "add", "--detach", "--quiet", other, asked.commit], cwd=ROOT, check=True)
        try:
            make_runs(other, before)
            make_runs(ROOT, after)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", other], cwd=ROOT, check=True)
        found = differences(before, after)
    print(*found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
