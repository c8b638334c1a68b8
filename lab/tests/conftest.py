"""What all tests of the lab share: compiled JAX programs, the fake experiment, and the command line as a process."""

import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from payback_lab.running import local
from payback_lab.running.task import Event, perform
from payback_lab.user_error import UserError

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCES = os.pathsep.join(str(folder) for folder in (HERE, ROOT / "src", ROOT / "lab" / "src"))
"""PYTHONPATH of the processes that tests start: this checkout's code, whatever is installed."""

# Compiling takes longer than most of these tests: programs are kept from one session to the next, for this process and
# for those it starts. The limit of size also makes JAX lock the folder, because two test processes may share it. A
# process that is to be killed needs a folder of its own: killed while writing it would leave half a program.
COMPILED = {
    "JAX_COMPILATION_CACHE_DIR": str(ROOT / ".cache" / "jax"),
    "JAX_COMPILATION_CACHE_MAX_SIZE": str(1 << 30),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.2",
}
for name, value in COMPILED.items():
    os.environ.setdefault(name, value)
if "jax" in sys.modules:  # imported by tests that came before: it has read the environment already
    import jax

    jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
    jax.config.update("jax_compilation_cache_max_size", int(os.environ["JAX_COMPILATION_CACHE_MAX_SIZE"]))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch):
    """The fake experiment, under its name on the command line."""
    from payback_lab import experiments

    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", SOURCES)
    monkeypatch.setattr(experiments, "MODULES", {"fake": "fake_experiment"})
    return experiments.load("fake")


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make runs here, because a worker spends a second on its imports; running/test_local.py tests the workers."""

    def events(tasks, workers: int) -> Iterator[Event]:
        for task in tasks:
            yield Event(task, "started")
            try:
                perform(task, lambda share: None, lambda run: None)
            except UserError:
                raise
            except Exception:
                yield Event(task, "failed", text=traceback.format_exc())
            else:
                yield Event(task, "done")

    monkeypatch.setattr(local, "events", events)


@pytest.fixture
def compiles_fast():
    """Leave XLA's costly optimisations out, for tests that train so little that compiling is most of their time."""
    import jax

    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)


@pytest.fixture
def payback_process(tmp_path: Path) -> Callable[..., subprocess.Popen]:
    """Start `payback-lab` with the fake experiment as a process of its own."""

    def start(*arguments: str, **environment: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, str(HERE / "run_fake.py"), *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": SOURCES, "COLUMNS": "200", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return start
