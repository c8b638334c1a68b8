"""The README's Python blocks run: the core's in order, as one program, and each adapter's with its host.

RLlib and rllte have environments of their own: their blocks are run there, by the adapters' tests.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
ADAPTERS = {
    # name: (what the reader has already, then what shows that the block did its work)
    "Gymnasium": (
        """
import gymnasium as gym, numpy as np, payback
def novelty(obs, action, next_obs, info): return np.abs(next_obs - obs).sum(axis=-1)
""",
        """
envs.reset(seed=0)
for _ in range(30):
    _, reward, *_, info = envs.step(envs.action_space.sample())
    assert np.allclose(reward, info["extrinsic"] + info["shaped"]) and info["shaped"].any()
""",
    ),
    "Stable-Baselines3": (
        """
import functools, numpy as np, payback, stable_baselines3
from stable_baselines3.common.env_util import make_vec_env
PPO = functools.partial(stable_baselines3.PPO, n_steps=16, batch_size=64, n_epochs=1)
def novelty(obs, action, next_obs, info): return np.abs(next_obs - obs).sum(axis=-1)
""",
        "assert env.ledger.steps == 16 and env.ledger.owed.any()",
    ),
    "TorchRL": (
        """
import payback, torch
from torchrl.envs import Compose, GymEnv, StepCounter, TransformedEnv
from torchrl.envs.transforms import RNDTransform
base, target, predictor = GymEnv("CartPole-v1"), torch.nn.Linear(4, 8), torch.nn.Linear(4, 8)
""",
        """
after = env.rollout(50)["next"]
assert after["shaped_reward"].any()
assert torch.allclose(after["reward"], after["extrinsic_reward"] + after["shaped_reward"])
""",
    ),
    "A CleanRL-style script": (
        "import payback, torch; num_envs, bonus, done = 4, torch.rand(4), torch.zeros(4, dtype=torch.bool)",
        "assert torch.equal(shaped, bonus) and (payback.owed(shaping, loans) > 0).all()",
    ),
}


def python_blocks(text: str) -> list[tuple[int, str]]:
    """Return each ```python block with the line it starts at."""
    return [
        (text[: found.start(1)].count("\n") + 1, found.group(1))
        for found in re.finditer(r"^```python[^\n]*\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    ]


def adapter_block(name: str) -> str:
    """Return the ```py block under the bold name of an adapter."""
    found = re.search(
        rf"^\*\*{re.escape(name)}\*\*.*?^```py\n(.*?)^```", README.read_text(), flags=re.MULTILINE | re.DOTALL
    )
    assert found, f"the README does not show {name}"
    return found.group(1)


def as_program(text: str) -> str:
    """Put the blocks at the lines where they stand, so that a traceback names the README's own line."""
    lines = [""] * (text.count("\n") + 1)
    for first, block in python_blocks(text):
        for k, line in enumerate(block.splitlines()):
            lines[first - 1 + k] = line
    return "\n".join(lines)


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "README.py"
    path.write_text(program)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    return subprocess.run(
        [sys.executable, str(path)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )


def test_the_blocks_run(tmp_path: Path):
    text = README.read_text()
    assert python_blocks(text), "the README shows no code"
    done = run(as_program(text), tmp_path)
    assert done.returncode == 0, done.stderr


def test_the_first_block_is_eight_lines_that_work_alone(tmp_path: Path):
    first = python_blocks(README.read_text())[0][1]
    assert len([line for line in first.splitlines() if line.strip()]) <= 8
    done = run(first, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_adapters_blocks_run(name: str, tmp_path: Path):
    before, after = ADAPTERS[name]
    block = adapter_block(name).replace("100_000", "16 * 8")
    done = run("\n".join((before, block, after)), tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_adapter_is_shown_in_six_lines():
    for name in (*ADAPTERS, "RLlib", "RLeXplore / rllte"):
        assert 0 < len([line for line in adapter_block(name).splitlines() if line.strip()]) <= 6, name


def test_a_broken_block_is_seen(tmp_path: Path):
    text = "# title\n\n```python\nx = 1\n```\n\nwords\n\n```python\nassert x == 2\n```\n\n```sh\nexit 1\n```\n"
    done = run(as_program(text), tmp_path)
    assert done.returncode != 0
    assert "line 10" in done.stderr
    assert run(as_program(text.replace("== 2", "== 1")), tmp_path).returncode == 0
