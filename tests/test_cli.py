"""The command line of a bare install: NumPy and array-api-compat, no pyarrow, no rich."""

import os
import subprocess
import sys

import numpy as np
import pytest

import payback
from payback.cli import main

BARE = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"pyarrow", "rich", "pandas", "torch", "jax", "gymnasium", "stable_baselines3"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from payback.cli import main
sys.exit(main(sys.argv[1:]))
"""


def bare(*arguments: str, width: int = 100) -> subprocess.CompletedProcess[str]:
    """Run the command as if nothing but NumPy and array-api-compat were installed."""
    command = [sys.executable, "-c", BARE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": str(width)})


@pytest.fixture
def lawful(tmp_path):
    match = payback.match_after(0.9, 2)
    rewards, dones = np.ones((12, 2)), np.zeros((12, 2), dtype=bool)
    dones[[5, 11]] = True
    return rewards, payback.shape_rollout(match, match.init(rewards[0]), rewards, dones)[1], dones


def test_help_and_version() -> None:
    shown = bare("--help")
    assert shown.returncode == 0
    assert "audit" in shown.stdout
    assert "check" in shown.stdout
    assert bare("--version").stdout.strip() == f"payback {payback.__version__}"
    assert bare().stdout == shown.stdout
    assert "--on-truncation" in bare("audit", "--help").stdout


def test_audit_of_csv_and_npz(tmp_path, lawful) -> None:
    rewards, shaped, dones = lawful
    np.savez(tmp_path / "log.npz", shaped=shaped, done=dones, reward=rewards)
    lines = [f"{b},{shaped[t, b]!r},{dones[t, b]}" for t in range(12) for b in range(2)]
    (tmp_path / "log.csv").write_text(
        "env,shaped,done\n" + "\n".join(lines).replace("np.float64(", "").replace(")", "")
    )
    for name in ("log.npz", "log.csv"):
        result = bare("audit", str(tmp_path / name), "--gamma", "0.9")
        assert (result.returncode, result.stderr) == (0, "")
        assert "cancel in 4 episodes and leak in 0" in result.stdout
    np.savez(tmp_path / "raw.npz", shaped=rewards, done=dones, reward=rewards)
    result = bare("audit", str(tmp_path / "raw.npz"), "--gamma", "0.9", "--page", str(tmp_path / "page.html"), width=50)
    assert result.returncode == 1
    assert "4 × never repaid" in result.stdout
    assert all(len(line) <= 70 for line in result.stdout.splitlines() if "page" not in line)
    assert "never repaid" in (tmp_path / "page.html").read_text()


def test_a_parquet_log_names_the_extra(tmp_path) -> None:
    (tmp_path / "log.parquet").write_bytes(b"PAR1")
    result = bare("audit", str(tmp_path / "log.parquet"))
    assert result.returncode == 2
    assert result.stderr == "payback: Parquet logs need pyarrow: pip install 'payback[audit]'\n"
    assert result.stdout == ""


def test_mistakes_are_one_sentence(tmp_path, capsys) -> None:
    assert main(["audit", str(tmp_path / "none.csv")]) == 2
    assert capsys.readouterr().err == f"payback: there is no log {tmp_path / 'none.csv'}\n"
    (tmp_path / "log.csv").write_text("a,b\n1,2\n")
    assert main(["audit", str(tmp_path / "log.csv")]) == 2
    assert "name the right one with --shaped" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["audit"])
