"""What a type checker sees: `reward` and `done` swapped is an error for NumPy arrays, and right calls are none."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """\
import numpy as np
from numpy.typing import NDArray

import payback
from payback.ledger import make

rewards: NDArray[np.float64] = np.ones(3)
dones: NDArray[np.bool_] = np.zeros(3, dtype=np.bool_)
shaping = payback.grm(0.99, delay=10)
state = shaping.init(rewards)
state, shaped = shaping.update(state, rewards, dones)
state, shaped = shaping.update(state, rewards, dones, valid=~dones, settle=dones)
state, shaped = shaping.update(state, dones, rewards)  # swapped
state, shaped = shaping.update(state, rewards, dones, valid=rewards)  # rewards for flags
blocks = payback.shape_rollout(shaping, state, rewards[None], dones[None])
blocks = payback.shape_rollout(shaping, state, dones[None], rewards[None])  # swapped
estimator = payback.grm_adv(0.99, 10, 0.95, on_truncation="carry")
estimator = payback.grm_adv(0.99, 10, 0.95, on_truncation="drop")  # neither "settle" nor "carry"
own = payback.Match(shaping.init, shaping.update, gamma=0.99, owed=shaping.owed, drop=shaping.drop)
own = payback.Match(shaping.init, shaping.update, gamma=0.99)  # neither owed nor drop
ledger = make(shaping, "carry")
ledger = make(shaping, "drop")  # neither "settle" nor "carry"
shaping.init.no_such_attribute  # not Any
"""


def test_swapped_arguments_do_not_type_check(tmp_path: Path):
    pyright = Path(sys.executable).with_name("pyright")
    if not pyright.exists() and shutil.which("pyright") is None:
        pytest.skip("pyright is not installed")
    (tmp_path / "use.py").write_text(CODE)
    run = subprocess.run(
        [str(pyright), "--outputjson", "--pythonpath", sys.executable, "use.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    found = json.loads(run.stdout)["generalDiagnostics"]
    lines = {one["range"]["start"]["line"] for one in found if one["severity"] == "error"}
    wrong = {n for n, line in enumerate(CODE.splitlines()) if "  # " in line}
    assert lines == wrong
