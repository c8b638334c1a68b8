"""The command line with the fake experiment in it, as a process of its own: `python run_fake.py run fake …`."""

import sys

from payback import cli
from payback.paper import experiments

if __name__ == "__main__":
    experiments.MODULES.clear()
    experiments.MODULES["fake"] = "fake_experiment"
    sys.exit(cli.main())
