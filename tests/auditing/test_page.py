import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import payback
from payback.auditing.command import run
from payback.auditing.ledger import ledger_svg
from payback.auditing.log_file import Columns

from .test_audit import GAMMA, log
from .test_log_file import flat, write


def test_the_command_and_its_page(tmp_path, capsys) -> None:
    F, shaped, dones = log()
    path, out = tmp_path / "log.parquet", tmp_path / "audit.html"
    write(path, flat(shaped, dones, F))
    assert run(path, GAMMA, Columns(), out, 1e-5) == 0
    assert "0 break it" in capsys.readouterr().out
    assert "keeps the law" in out.read_text()
    write(path, flat(np.where(dones, F, shaped), dones, F))
    assert run(path, GAMMA, Columns(), out, 1e-5) == 1
    page = out.read_text()
    assert "breaks the law" in page
    assert "unpaid end" in page
    assert "unpaid end" in capsys.readouterr().out
    assert "<svg" in page
    assert "src=" not in page
    assert "href=" not in page


def test_the_debt_returns_to_zero_in_the_drawing() -> None:
    F = np.array([1.0, 0.5, 2.0, 1.0])
    shaped = payback.match_episode(F, lambda t, i, N: float(t == N - 1), 0.9)
    drawn = ledger_svg(shaped, F, 0.9, "a <title>")
    ET.fromstring(drawn)
    points = drawn.split('points="')[1].split('"')[0].split()
    assert points[0].split(",")[1] == points[-1].split(",")[1]
    leaky = ledger_svg(F, None, 0.9, "raw").split('points="')[1].split('"')[0].split()
    assert leaky[0].split(",")[1] != leaky[-1].split(",")[1]


def test_the_picture_in_the_docs_is_what_the_code_draws() -> None:
    F = np.array([1, 0.5, 1, 0.33, 1, 0.5, 0.25, 1, 1, 0.5, 0.33, 1.0])
    shaped = payback.match_episode(F, lambda t, i, N: float(t == min(i + 3, N - 1)), 0.9)
    title = "A bonus as a loan: GRM with D = 3, γ = 0.9, an episode of 12 steps"
    picture = Path(__file__).parents[2] / "docs" / "ledger.svg"
    assert picture.read_text() == ledger_svg(shaped, F, 0.9, title, alone=True)


def test_one_step_and_long_episodes_can_be_drawn() -> None:
    for n in (1, 2, 3000):
        ET.fromstring(ledger_svg(np.ones(n), None, 0.99, "x"))
    with pytest.raises(ValueError, match="zero-size"):
        ledger_svg(np.zeros(0), None, 0.9, "x")


def test_a_centred_bonus_does_not_look_repaid_before_it_is_lent() -> None:
    """Of F = 3, 1, 2, 2 with F̄ = 2, the lent part F − F̄ is drawn apart: nothing is repaid at the first step."""
    F = np.array([3.0, 1.0, 2.0, 2.5])
    lent = F - 2
    shaped = payback.match_episode(lent, lambda t, i, N: float(t == min(i + 2, N - 1)), 0.9)
    for drawn in (ledger_svg(shaped, F, 0.9, "x"), ledger_svg(shaped, F, 0.9, "x", lent=lent)):
        assert "lent: F − F̄" in drawn
        assert repaid(drawn) == repaid(ledger_svg(shaped, lent, 0.9, "x"))
    assert "lent: F − F̄" not in ledger_svg(shaped, lent, 0.9, "x")


def repaid(drawn: str) -> int:
    """How many repayments are drawn, the key aside."""
    return drawn.count('fill="var(--repay)"') - 1


def test_narrow_screens_get_a_drawing_of_their_own(tmp_path) -> None:
    F, shaped, dones = log()
    write(tmp_path / "log.npz", flat(shaped, dones, F))
    run(tmp_path / "log.npz", GAMMA, Columns(), tmp_path / "page.html", 1e-5)
    page = (tmp_path / "page.html").read_text()
    assert 'viewBox="0 0 380' in page
    assert 'viewBox="0 0 760' in page
    assert "width=device-width" in page
