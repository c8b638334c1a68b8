"""The experiments by name; a module is imported when it is asked for, JAX only when one is executed."""

import importlib

from payback_lab.running.experiment import Experiment
from payback_lab.user_error import UserError

MODULES = {
    "cliff": "payback_lab.experiments.cliff.experiment",
    "long-cliff": "payback_lab.experiments.long_cliff",
    "doorkey": "payback_lab.experiments.doorkey.experiment",
    "reach": "payback_lab.experiments.reach",
    "delay": "payback_lab.experiments.delay.experiment",
    "center": "payback_lab.experiments.center",
    "center-cliff": "payback_lab.experiments.center_cliff",
    "curiosity": "payback_lab.experiments.curiosity.experiment",
    "arena": "payback_lab.experiments.arena.experiment",
    "safe-range": "payback_lab.experiments.studies.safe_range",
    "depth": "payback_lab.experiments.studies.depth",
    "learned": "payback_lab.experiments.studies.learned",
    "hosts": "payback_lab.experiments.hosts.experiment",
}


def load(name: str) -> Experiment:
    """Return the experiment of that name.

    >>> load("clif")
    Traceback (most recent call last):
    payback_lab.user_error.UserError: There is no experiment "clif": choose one of cliff, long-cliff, doorkey, ...
    """
    if name not in MODULES:
        raise UserError(f'There is no experiment "{name}": choose one of {", ".join(MODULES)}.')
    return importlib.import_module(MODULES[name]).EXPERIMENT
