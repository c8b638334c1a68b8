"""(f) The core works with NumPy and array-api-compat and nothing else of anyone's."""

import os
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLEAN = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")}

WITHOUT_THE_REST = """
import sys

class Wall:
    "Nothing but Python's own library, NumPy, array-api-compat and payback gets in."
    allowed = {"numpy", "array_api_compat", "payback", "sitecustomize", "usercustomize", *sys.stdlib_module_names}

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] not in self.allowed:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Wall())
"""

EVERYTHING = """
import tempfile, warnings
import numpy as np
import payback

warnings.simplefilter("ignore", payback.InterestWarning)
rng = np.random.default_rng(0)
rewards, dones = rng.normal(size=(40, 3)), rng.random((40, 3)) < 0.1
dones[-1] = True
own = payback.RewardTransform(lambda example: (), lambda s, r, done, valid=None, settle=None: (s, np.abs(r)))
matches = [
    payback.match_at_end(0.9), payback.match_after(0.9, 3), payback.match_evenly(0.9, 4),
    payback.match_geometric(0.9, 0.5), payback.match_when(0.9), payback.pbim(0.9), payback.grm(0.9, 3),
    payback.chain(own, payback.clip(-1, 1), payback.center(9), payback.match_after(0.9, 2), payback.scale(2)),
]
for transform in matches:
    state = transform.init(rewards[0])
    with tempfile.TemporaryDirectory() as folder:
        payback.save_state(folder + "/state", state)
        state = payback.load_state(folder + "/state")
    after, whole = payback.shape_rollout(transform, state, rewards, dones)
    for t in range(40):
        state, row = transform.update(state, rewards[t], dones[t])
        assert np.allclose(row, whole[t])
    assert np.allclose(payback.owed(transform, after), 0)
    payback.drop(transform, after, np.ones(3, dtype=bool))
end = lambda t, i, N: float(t == N - 1)
shaped = payback.theory.match_episode([1.0, 2.0, 3.0], end, 0.9)
assert abs(0.9 ** np.arange(3) @ shaped) < 1e-12
potential = payback.theory.potential_of([1.0, 3.0, 9.0], end, 0.5)
assert list(payback.theory.reward_of(potential, end, 0.5)) == [1.0, 3.0, 0.0]
payback.theory.check_matching(end)
mean = payback.center()
common = mean.init(rewards[0])
worker, _ = mean.update(common, rewards[0], dones[0])
assert int(payback.merge_centers(common, worker).count) == 3
assert not {"torch", "jax", "gymnasium", "hypothesis"} & set(__import__("sys").modules)
print("all done")
"""


def test_it_works_behind_a_wall():
    """With every other module of this environment out of reach."""
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_REST + EVERYTHING], capture_output=True, text=True, env=dict(os.environ)
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "all done\n"


def call(*command: str) -> str:
    run = subprocess.run(command, capture_output=True, text=True, env=CLEAN)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def readme_lines() -> str:
    """The README's loop of one's own, which needs NumPy alone."""
    return (ROOT / "README.md").read_text().split("## In your own loop")[1].split("```python\n")[1].split("```")[0]


@pytest.mark.slow
def test_the_wheel_works_in_a_fresh_environment(tmp_path: Path):
    """Built, installed with what it asks for and nothing else, and put to work. One test: the environment is dear."""
    call(sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(ROOT))
    (wheel,) = tmp_path.glob("payback-*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    call(python, "-m", "pip", "install", "--quiet", str(wheel))
    installed = {re.split("==| @", line)[0].lower() for line in call(python, "-m", "pip", "freeze").splitlines()}
    assert installed == {"payback", "numpy", "array-api-compat"}
    assert call(python, "-I", "-c", EVERYTHING) == "all done\n"
    call(python, "-I", "-c", readme_lines())
    typed = "import payback, pathlib; print((pathlib.Path(payback.__file__).parent / 'py.typed').exists())"
    assert call(python, "-I", "-c", typed) == "True\n"
