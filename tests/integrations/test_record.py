"""`record="log"`: what an adapter paid is written to a folder that `payback audit log` reads without options."""

import os
import signal
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

pytest.importorskip("pyarrow", reason="pip install payback[audit]")
import payback
from payback import audit_file
from payback.auditing.read import parts_of
from payback.cli import main
from payback.integrations.gymnasium import ShapeReward, ShapeVectorReward
from payback.ledger import make
from payback.monitor import Monitor

from .corridor import Corridor
from .own_match import forgets_the_end

GAMMA, B = 0.9, 3
pytestmark = [
    pytest.mark.filterwarnings("ignore:a truncated episode", "ignore:environment . was reset in mid-episode"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


def judged(folder, least):
    """The command passes the log, and judges at least so many episodes."""
    assert main(["audit", str(folder)]) == 0
    found = audit_file(folder)
    assert found.ok
    assert found.gamma == GAMMA
    assert len(found.episodes.leak) >= least
    return found


@pytest.mark.parametrize("on_truncation", ["settle", "carry"])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_gymnasium_vector(walk, mode, on_truncation, tmp_path):
    envs = SyncVectorEnv([walk] * B, autoreset_mode=mode)
    envs = ShapeVectorReward(
        envs, "novelty", payback.grm(GAMMA, 3), on_truncation=on_truncation, record=tmp_path / "log"
    )
    envs.reset(seed=0)
    ended = 0
    for t in range(300):
        _, _, terminated, truncated, _ = envs.step(np.zeros(B, int))
        ended += int(np.sum(terminated))
        if mode is AutoresetMode.DISABLED and (terminated | truncated).any():
            envs.reset(options={"reset_mask": terminated | truncated})
        if t % 100 == 50:
            envs.reset(seed=t)  # in mid-episode: what was open is not judged
    assert not (tmp_path / "log" / "part-000000.parquet").exists()
    envs.close()
    found = judged(tmp_path / "log", least=50)
    assert len(found.episodes.leak) == ended


def test_gymnasium_single_with_a_time_limit_outside(tmp_path):
    env = ShapeReward(Corridor(9), "bonus", payback.match_at_end(GAMMA), record=tmp_path / "log")
    limited = gym.wrappers.TimeLimit(env, 4)
    for episode in range(6):
        (limited if episode % 2 else env).reset()
        for _ in range(4 if episode % 2 else 9):
            (limited if episode % 2 else env).step(1)
    limited.close()
    found = judged(tmp_path / "log", least=3)
    assert found.episodes.length.tolist() == [9, 9, 9]


def test_what_a_centred_bonus_lends_is_recorded(walk, tmp_path):
    import pyarrow.parquet

    env = ShapeReward(walk(), "novelty", payback.grm(GAMMA, 2), record=tmp_path / "log")
    env.reset(seed=0)
    rewards = [env.step(0)[4]["intrinsic"] for _ in range(2)]
    env.close()
    table = pyarrow.parquet.read_table(tmp_path / "log" / "part-000000.parquet")
    np.testing.assert_allclose(table["lent"].to_numpy(), [rewards[0], rewards[1] - rewards[0]])


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_what_a_longer_chain_lends_is_recorded(library, tmp_path):
    """A bonus that is scaled before the match: without the column, the audit would compare the payments with F."""
    import pyarrow.parquet

    xp = pytest.importorskip(library)
    shaping = payback.chain(payback.scale(2.0), payback.center(), payback.match_after(GAMMA, 1))
    monitor = Monitor(make(shaping), learner_gamma=GAMMA, record=tmp_path / "log")
    state, no = monitor.ledger.init(xp.zeros(1)), xp.asarray([False])
    for F, live in ((1.0, True), (3.0, True), (9.0, False), (4.0, True)):
        state, _ = monitor.step(state, xp.asarray([F]), no, no, valid=xp.asarray([live]))
    monitor.close()
    table = pyarrow.parquet.read_table(tmp_path / "log" / "part-000000.parquet")
    np.testing.assert_allclose(table["lent"].to_numpy(), [2.0, 6.0 - 2.0, 8.0 - 4.0])


def recorded(match, folder, steps, worker=0):
    """Record episodes of four steps in which every bonus is 1."""
    monitor = Monitor(make(match), learner_gamma=GAMMA, record=folder, worker=worker)
    state, no = monitor.ledger.init(np.zeros(B)), np.zeros(B, bool)
    for t in range(steps):
        state, _ = monitor.step(state, np.ones(B), np.full(B, t % 4 == 3), no)
    monitor.close()


@pytest.mark.filterwarnings("ignore:.*did not cancel")
def test_a_wrong_match_is_found_by_the_audit(tmp_path, capsys):
    recorded(forgets_the_end(payback.match_after(GAMMA, 1)), tmp_path / "log", 20)
    assert main(["audit", str(tmp_path / "log")]) == 1
    assert "last reward kept" in capsys.readouterr().out


UNCLOSED = """
import numpy as np, payback, sys
from payback.ledger import make
from payback.monitor import Monitor
B, steps = map(int, sys.argv[2:])
monitor = Monitor(make(payback.match_after(.9, 1)), learner_gamma=.9, record=sys.argv[1])
state, no = monitor.ledger.init(np.zeros(B)), np.zeros(B, bool)
for t in range(steps):
    state, _ = monitor.step(state, np.ones(B), np.full(B, t % 4 == 3), no)
    print(t + 1, flush=True)
"""


def test_a_log_that_is_never_closed_is_written_when_python_ends(tmp_path):
    command = [sys.executable, "-c", UNCLOSED, str(tmp_path / "log"), "2", "40"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert judged(tmp_path / "log", least=20).rows == 80


def test_after_kill_9_all_but_the_last_part_is_there(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", UNCLOSED, str(tmp_path / "log"), "1024", "10000"], stdout=subprocess.PIPE, text=True
    )
    steps = 0
    while steps < 200:
        steps = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert judged(tmp_path / "log", least=1024).rows >= 1024 * 200 - (1 << 16)


def test_workers_write_beside_each_other(tmp_path):
    for worker in (1, 2, 1):  # the first one goes on in a second process
        recorded(payback.match_after(GAMMA, 2), tmp_path / "log", 21, worker)
    assert len(judged(tmp_path / "log", least=45).episodes.leak) == 45
    assert [part.parent.name for part in parts_of(tmp_path / "log")] == ["worker-1", "worker-1", "worker-2"]
