"""The command line with the fake experiment in it, as a process of its own: `python run_fake.py run fake …`."""

import signal
import sys

from payback_lab import cli, experiments

if __name__ == "__main__":
    # As at a terminal: what a shell starts in the background ignores Ctrl-C, and so does all that it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    experiments.MODULES.clear()
    experiments.MODULES["fake"] = "fake_experiment"
    sys.exit(cli.main())
