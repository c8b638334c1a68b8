"""The experiments by name; a module is imported when it is asked for, JAX only when one is executed."""

import importlib

from payback.paper.experiments.plan import Experiment
from payback.paper.mistake import Mistake

MODULES = {
    "cliff": "payback.paper.experiments.cliff",
    "long-cliff": "payback.paper.experiments.long_cliff",
    "doorkey": "payback.paper.experiments.doorkey",
    "reach": "payback.paper.experiments.reach",
    "delay": "payback.paper.experiments.delay",
}


def load(name: str) -> Experiment:
    """Return the experiment of that name.

    >>> load("clif")
    Traceback (most recent call last):
    payback.paper.mistake.Mistake: There is no experiment "clif": choose one of cliff, long-cliff, doorkey, ...
    """
    if name not in MODULES:
        raise Mistake(f'There is no experiment "{name}": choose one of {", ".join(MODULES)}.')
    return importlib.import_module(MODULES[name]).EXPERIMENT
