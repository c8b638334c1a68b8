import io
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from payback.mdp import Shaping, compare, solve
from payback_lab.prior_work.problems import (
    absorbing,
    advised_chain,
    free_end,
    loop,
    one_end,
    optimal_sets,
    optimal_values,
)
from payback_lab.prior_work.summary import FILE, NOTES, Decided, as_markdown, as_rows, as_text, load, run, save
from payback_lab.prior_work.table import GAMMA, SETTINGS, prior_table

ROOT = Path(__file__).parents[3]
EXPECTED = {
    "raw bonus": "✗✗✗✗✗✗",
    "Ng 1999": "✓○✗✗✓✓",
    "Wiewiora 2003, look-ahead": "✓○○–––",
    "Wiewiora 2003, look-back": "○○○–––",
    "Devlin 2012": "✓○✗✓✓✓",
    "Harutyunyan 2015 (DPBA)": "✗✗✗✗✗✗",
    "Eck 2016": "✓○✗✗✓✓",
    "Grześ 2017": "✓✓✗✗✓✓",
    "Goyal 2019": "–○––○○",
    "Behboudian 2022 (PIES), ξ = ½": "✗✗✗✗✗✗",
    "Behboudian 2022 (PIES), ξ = 0": "✓✓✓✓✓✓",
    "PBIM 2024": "✓✓✓✓✓✓",
    "GRM 2024, D = 1": "✓✓✓✓✓✓",
    "GRM 2024, D = 2": "✓✓✓✓✓✓",
    "ADOPS 2025": "✓✓✓✓✓–",
    "ADOPES 2025, c = ½": "○○○○○–",
    "Chen 2022 (EIPO), α = ½": "○○○○○○",
}


@pytest.fixture(scope="module")
def table():
    return prior_table(problems=15)


def test_every_cell(table) -> None:
    found = {name: "".join(cells[s].verdict for s in SETTINGS) for name, cells in table.items()}
    assert found == EXPECTED


def test_crosses_name_their_problem(table) -> None:
    for name, cells in table.items():
        for cell in cells.values():
            if cell.verdict in "✗○":
                assert cell.problem, name
                assert cell.where
            if cell.verdict == "○":
                assert cell.condition


def test_the_named_problems_break_raw_bonuses() -> None:
    moving = Shaping(lambda h, e: 1.0 * (h[-1] in loop().transitions))
    assert not compare(loop(), GAMMA, moving).preserved
    assert not compare(advised_chain(), GAMMA, Shaping(lambda h, e: 1.0 * (h[-2] == "back"))).preserved


def test_problems_are_the_same_for_the_same_seed() -> None:
    for make in (free_end, one_end):
        assert make(3).transitions == make(3).transitions
        assert make(3).transitions != make(4).transitions
        solve(make(3), 0.9)


def test_value_iteration_meets_the_bellman_equation() -> None:
    P, R = absorbing(5)
    Q = optimal_values(P, R, 0.9)
    np.testing.assert_allclose(Q, (P * (R + 0.9 * Q.max(axis=1))).sum(axis=2), atol=1e-12)
    assert optimal_sets(Q).any(axis=1).all()


def test_markdown_and_text(table) -> None:
    header, body = as_rows(table)
    assert len(body) == len(EXPECTED)
    assert all(len(row) == len(header) for row in body)
    assert as_markdown(table).count("\n") == len(body) + 1


def test_the_command(capsys) -> None:
    out = io.StringIO()
    assert run(2, True, Console(file=out, width=300)) == 0
    assert "| PBIM 2024 | ✓ |" in out.getvalue()
    assert "deciding" in capsys.readouterr().err
    assert run(1, False, Console(file=out, width=200)) == 0
    with pytest.raises(ValueError, match="at least 1"):
        run(0, False, Console(file=out))


def test_the_table_comes_back_from_its_file(table, tmp_path) -> None:
    decided = Decided(table, 15, {"command": "payback-lab prior-work", "commit": "0ab1c2d"})
    path = save(tmp_path / "new", decided)
    assert path == tmp_path / "new" / FILE
    assert load(tmp_path / "new") == decided
    header, body, notes = as_text(decided)
    assert (header, body) == as_rows(table)
    assert notes[:-1] == list(NOTES)
    assert "15 random problems" in notes[-1]
    assert "0ab1c2d" in notes[-1]
    assert [p.name for p in path.parent.iterdir()] == ["table.json"]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"problems": 3, "made": {"command": "", "commit": ""}, "table": {"a": {}}}']
)
def test_a_damaged_file_gets_a_sentence(text, tmp_path) -> None:
    assert load(tmp_path) is None
    (tmp_path / FILE).parent.mkdir()
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ValueError, match=r"table.json cannot be read .* --save-summaries"):
        load(tmp_path)


def test_the_command_saves_the_table(tmp_path, capsys) -> None:
    assert run(1, True, Console(file=io.StringIO()), tmp_path) == 0
    assert "table.json" in capsys.readouterr().err
    stored = json.loads((tmp_path / FILE).read_text())
    assert stored["problems"] == 1
    assert stored["made"]["command"] == "payback-lab prior-work --problems 1 --save-summaries"
    assert "commit" in stored["made"]


def test_the_committed_table_is_the_pages_and_todays() -> None:
    decided = load(ROOT / "lab" / "results")
    assert decided is not None
    assert decided.problems == 200
    assert as_markdown(decided.table) in (ROOT / "docs/results/prior-work.md").read_text(encoding="utf-8")
    found = {name: "".join(cells[s].verdict for s in SETTINGS) for name, cells in decided.table.items()}
    assert found == EXPECTED
