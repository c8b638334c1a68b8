"""An adapter whose host is not installed says in one sentence what to install."""

import subprocess
import sys

import pytest

HOSTS = {
    "gymnasium": ("gymnasium", "needs Gymnasium", "pip install 'payback[gymnasium]'"),
    "sb3": ("stable_baselines3", "needs Stable-Baselines3", "pip install 'payback[sb3]'"),
    "torchrl": ("torchrl", "needs TorchRL", "pip install 'payback[torchrl]'"),
    "rllib": ("ray", "needs RLlib", "pip install 'payback[rllib]'"),
    "gymnax": ("jax", "needs JAX", "pip install 'payback[gymnax]'"),
    "rsl_rl": ("rsl_rl", "needs rsl_rl", "pip install 'payback[rsl-rl]'"),
    "pettingzoo": ("pettingzoo", "needs PettingZoo", "pip install 'payback[pettingzoo]'"),
    "skrl": ("skrl", "needs skrl", "pip install 'payback[skrl]'"),
    "rllte": ("torch", "needs PyTorch, and rllte itself", "pip install --no-deps rllte-core"),
}


def test_sb3_is_named_where_nothing_is_installed():
    hidden = "for name in ('gymnasium', 'stable_baselines3', 'torch'): sys.modules[name] = None"
    code = f"import sys\n{hidden}\nimport payback.integrations.sb3"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "needs Stable-Baselines3" in run.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("adapter", HOSTS)
def test_a_missing_host_is_one_sentence(adapter: str):
    host, needs, install = HOSTS[adapter]
    code = f"import sys; sys.modules[{host!r}] = None; import payback.integrations.{adapter}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: this adapter ")
    assert needs in last
    assert install in last
