"""The lab's example runs: an agent learns DoorKey before one's eyes."""

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "doorkey_agent.py"


def test_doorkey_agent_shows_learning_and_an_episode(capsys):
    runpy.run_path(str(EXAMPLE))["main"](["--updates", "6"])
    said = capsys.readouterr().out
    assert said.count(" steps  ") == 6
    assert "steps an episode" in said  # by the sixth update an episode has ended
    assert said.count("########") >= 2
    assert said.count("G#") >= 1
