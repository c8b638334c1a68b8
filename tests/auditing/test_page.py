import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from payback import theory
from payback.auditing.diagnose import ExcerptRows
from payback.auditing.page import episode_svg
from payback.cli import main

from .test_audit import GAMMA, log
from .test_log_file import flat, write


def audit(log, page) -> int:
    return main(["audit", str(log), "--gamma", str(GAMMA), "--page", str(page)])


def draw(shaped, F, gamma, title, *, lent=None, **options) -> str:
    return episode_svg(ExcerptRows(shaped, F, lent), gamma, title, **options)


def test_the_command_and_its_page(tmp_path, capsys) -> None:
    F, shaped, dones = log()
    path, out = tmp_path / "log.parquet", tmp_path / "audit.html"
    write(path, flat(shaped, dones, F))
    assert audit(path, out) == 0
    assert "leak in 0" in capsys.readouterr().out
    assert "shaped rewards cancel" in out.read_text()
    write(path, flat(np.where(dones, F, shaped), dones, F))
    assert audit(path, out) == 1
    page = out.read_text()
    assert "shaped rewards leak" in page
    assert "unpaid end" in page
    said = capsys.readouterr().out
    assert "× unpaid end: " in said
    assert said.index("× unpaid end: ") < said.index("The worst leaks:")
    assert "<svg" in page
    assert "src=" not in page
    assert "href=" not in page


def test_the_debt_returns_to_zero_in_the_drawing() -> None:
    F = np.array([1.0, 0.5, 2.0, 1.0])
    shaped = theory.match_episode(F, lambda t, i, N: float(t == N - 1), 0.9)
    drawn = draw(shaped, F, 0.9, "a <title>")
    ET.fromstring(drawn)
    points = drawn.split('points="')[1].split('"')[0].split()
    assert points[0].split(",")[1] == points[-1].split(",")[1]
    leaky = draw(F, None, 0.9, "raw").split('points="')[1].split('"')[0].split()
    assert leaky[0].split(",")[1] != leaky[-1].split(",")[1]


def test_the_picture_in_the_docs_is_what_the_code_draws() -> None:
    F = np.array([1, 0.5, 1, 0.33, 1, 0.5, 0.25, 1, 1, 0.5, 0.33, 1.0])
    shaped = theory.match_episode(F, lambda t, i, N: float(t == min(i + 3, N - 1)), 0.9)
    title = "GRM (repaid bonus), D = 3, γ = 0.9, an episode of 12 steps"
    picture = Path(__file__).parents[2] / "docs" / "ledger.svg"
    assert picture.read_text() == draw(shaped, F, 0.9, title, alone=True)


def test_one_step_and_long_episodes_can_be_drawn() -> None:
    for n in (1, 2, 3000):
        ET.fromstring(draw(np.ones(n), None, 0.99, "x"))
    with pytest.raises(ValueError, match="zero-size"):
        draw(np.zeros(0), None, 0.9, "x")


def test_a_centred_bonus_does_not_look_repaid_before_it_is_lent() -> None:
    """Of F = 3, 1, 2, 2 with F̄ = 2, the lent part F − F̄ is drawn apart: nothing is repaid at the first step."""
    F = np.array([3.0, 1.0, 2.0, 2.5])
    lent = F - 2
    shaped = theory.match_episode(lent, lambda t, i, N: float(t == min(i + 2, N - 1)), 0.9)
    for drawn in (draw(shaped, F, 0.9, "x"), draw(shaped, F, 0.9, "x", lent=lent)):
        assert "lent: F − F̄" in drawn
        assert repaid(drawn) == repaid(draw(shaped, lent, 0.9, "x"))
    assert "lent: F − F̄" not in draw(shaped, lent, 0.9, "x")


def repaid(drawn: str) -> int:
    """How many repayments are drawn, the key aside."""
    return drawn.count('fill="var(--repay)"') - 1


def test_narrow_screens_get_a_drawing_of_their_own(tmp_path) -> None:
    F, shaped, dones = log()
    write(tmp_path / "log.npz", flat(shaped, dones, F))
    audit(tmp_path / "log.npz", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert 'viewBox="0 0 380' in page
    assert 'viewBox="0 0 760' in page
    assert "width=device-width" in page


OVERFLOWING = """
() => {
  const outside = (e) => {
    const box = e.getBoundingClientRect();
    if (!box.width || e.closest(".scroll")) return false;
    return box.right > innerWidth + 1 || box.left < -1;
  };
  return [...document.querySelectorAll("body *")].filter(outside).map((e) => e.outerHTML.slice(0, 120));
}
"""


@pytest.mark.parametrize("broken", [True, False])
def test_the_page_on_a_phone(broken, tmp_path, open_page) -> None:
    """At 390 pixels nothing reaches out of the screen, one drawing is shown, and its text is large enough to read."""
    F, shaped, dones = log()
    table = flat(np.where(dones, F, shaped) if broken else shaped, dones, F)
    table["env"] = np.array(["an-environment-with-a-long-name-" + "x" * 60, "b", "c", "d", "e"])[table["env"]]
    write(tmp_path / "log.npz", table)
    audit(tmp_path / "log.npz", tmp_path / "page.html")
    page = open_page((tmp_path / "page.html").as_uri(), width=390, height=844, device_scale_factor=2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(OVERFLOWING) == []
    assert page.locator("svg:visible").count() == 1
    heights = page.evaluate(
        "() => [...document.querySelectorAll('.narrow svg text')].map((e) => e.getBoundingClientRect().height)"
    )
    assert min(heights) >= 11
    assert (len(page.asked), page.said) == (1, [])
