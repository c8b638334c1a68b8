"""`payback check FILE:NAME`, as a user types it."""

from pathlib import Path

import pytest

from payback.cli import main

SHAPERS = """
import numpy as np
import payback

good = payback.grm(0.9, delay=2)
number = 3


def settles_at_the_end(rewards):
    weight = 0.9 ** np.arange(-(len(rewards) - 1), 0.0)
    return np.append(rewards[:-1], -(weight @ rewards[:-1]))


def keeps_everything(rewards):
    return rewards


class StepWise:
    def step(self, reward, done):
        return 0.0 if done else reward


step_wise = StepWise()
nothing = payback.grm(0.9, delay=0)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shaping.py"
    path.write_text(SHAPERS)
    return path


def check(target: object, *options: str) -> int:
    return main(["check", str(target), "--effort", "quick", *options])


def test_a_good_transform_passes_at_its_own_gamma(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(f"{file}:good") == 0
    shown = capsys.readouterr().out
    assert "is policy-invariant at γ = 0.9" in shown
    assert "streams of" in shown  # how much was tried


def test_a_delay_of_0_is_reported_to_pay_nothing(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(f"{file}:nothing") == 0
    assert "no effect" in capsys.readouterr().out


def test_a_good_function_needs_gamma(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(f"{file}:settles_at_the_end", "--gamma", "0.9") == 0
    assert check(f"{file}:settles_at_the_end") == 2
    assert "--gamma 0.99" in capsys.readouterr().err


def test_broken_code_is_shown_with_its_counter_example(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(f"{file}:keeps_everything", "--gamma", "0.9") == 1
    shown = capsys.readouterr().out
    assert "not policy-invariant" in shown
    assert "rewards of environment 0: 1■" in shown


def test_another_gamma_than_the_transforms_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(f"{file}:good", "--gamma", "0.99") == 1
    assert "wrong gamma" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("no_colon.py", "write FILE:NAME"),
        ("missing.py:good", "there is no file missing.py"),
        ("{file}:absent", "has no absent: it has good, settles_at_the_end, keeps_everything"),
        ("{file}:StepWise", "got the class StepWise"),
        ("{file}:step_wise", "got StepWise: write a function"),
        ("{file}:number", "got int"),
    ],
)
def test_what_cannot_be_checked_gets_one_sentence(
    file: Path, capsys: pytest.CaptureFixture[str], target: str, sentence: str
) -> None:
    assert check(target.format(file=file), "--gamma", "0.9") == 2
    shown = capsys.readouterr().err
    assert sentence in shown
    assert shown.count("\n") == 1


@pytest.mark.parametrize("code", ["1 / 0", "import no_such_module", "raise SystemExit(3)", "def f(:"])
def test_a_file_that_raises_gets_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(code)
    assert check(f"{path}:f", "--gamma", "0.9") == 2
    assert "when it is run" in capsys.readouterr().err


def test_an_unknown_effort_is_refused(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["check", f"{file}:good", "--effort", "eternal"])
    assert "thorough" in capsys.readouterr().err
