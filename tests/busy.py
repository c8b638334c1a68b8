"""Run `make test` beside eight busy processes, as often as asked: python tests/busy.py 3."""

import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

BUSY = 8


def burn() -> None:
    """Keep a core busy until killed."""
    while True:
        sum(range(100_000))


def main(times: int) -> int:
    """Return 1 if any of the runs failed."""
    busy = [multiprocessing.Process(target=burn, daemon=True) for _ in range(BUSY)]
    for process in busy:
        process.start()
    failed = False
    for k in range(times):
        start = time.monotonic()
        status = subprocess.run(["make", "test"], cwd=Path(__file__).parents[1]).returncode
        failed = failed or status != 0
        minutes = (time.monotonic() - start) / 60
        print(
            f"make test, {k + 1} of {times}, beside {BUSY} busy processes: status {status}, {minutes:.1f} min",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
