"""Numbers over seeds, worked by hand."""

import numpy as np
import pytest

from payback_lab.policy import NONE, Policy
from payback_lab.report import tables
from payback_lab.report.summary import Group, Summary


def group(**changes) -> Group:
    curve = np.array([[0.0, 10.0], [4.0, 10.0], [8.0, 10.0]])
    runs = [
        {"scheme": "none", "seed": s, "greedy_return": v, "reached": r, "never": None, "best": v == 88, "word": "x"}
        for s, (v, r) in enumerate([(88, 300), (80, None), (88, 340)])
    ]
    fields = {
        "name": "fake",
        "config": {"rate": 0.5},
        "made": {},
        "runs": runs,
        "axis": "episode",
        "x": np.array([1.5, 3.5]),
        "curves": {"none": {"return": curve}},
        "policies": {},
    }
    return Group(**(fields | changes))


SUMMARY = Summary("fake", "Fake", (), {"greedy_return": {"none": "88"}}, {"rate": "How fast."}, {}, (), (group(),))


def test_a_curve_over_seeds() -> None:
    columns = tables.curve_columns(group(), "return")
    parts = columns["series"]["none"]
    assert parts["mean"] == [4.0, 10.0]
    assert parts["sd"] == [4.0, 0.0]  # the sample's: √((16 + 0 + 16) / 2)
    assert parts["iqm"] == [4.0, 10.0]
    assert parts["low"][0] < 4.0 < parts["high"][0]
    assert parts["low"][1] == parts["high"][1] == 10.0
    first, second = tables.curve_rows(columns)
    assert (first["scheme"], first["x"], first["sd"]) == ("none", 1.5, 4.0)
    assert (second["x"], second["mean"]) == (3.5, 10.0)


def test_one_seed_has_no_spread() -> None:
    parts = tables.curve_columns(group(curves={"im": {"return": np.ones((1, 2))}}), "return")["series"]["im"]
    assert parts["sd"] == [0.0, 0.0]


def test_final_rows_leave_out_what_was_not_reached() -> None:
    rows = tables.final_rows(group(), "reached")
    assert [(row["seed"], row["value"], row["mean"]) for row in rows] == [(0, 300, 320.0), (2, 340, 320.0)]


def test_figures_over_seeds_in_words() -> None:
    keys = tables.figure_keys(group())
    assert keys == ["greedy_return", "reached", "never", "best"]
    greedy, reached, never, best = (tables.cell([run[key] for run in group().runs]) for key in keys)
    assert greedy.here == "85.3"
    assert greedy.interval.startswith("[80, ")
    assert reached.here == "320"
    assert reached.interval.endswith("in 2 of 3 seeds")
    assert never.here == "in no seed"
    assert best == tables.Cell("2 of 3")
    assert tables.paper_figures(SUMMARY, group(), "greedy_return") == {"none": "88"}
    assert tables.paper_figures(SUMMARY, group(), "reached") == {}


def test_policy_cells() -> None:
    action = np.array([[1, NONE, 2], [0, NONE, NONE]])
    cells = tables.policy_cells(Policy(action, np.full((2, 3), 0.5), np.arange(6.0).reshape(2, 3)))
    by_place = {(cell["row"], cell["column"]): cell for cell in cells}
    assert (
        by_place[0, 0] | {"action": "right", "angle": 90, "share": 0.5, "value": 0.0, "walked": True} == by_place[0, 0]
    )
    assert by_place[0, 2]["walked"] is False  # the walk stops at (0, 1), where nobody has a preference
    assert "angle" not in by_place[0, 1]
    assert by_place[1, 1] == {"row": 1, "column": 1.0, "kind": "cliff", "span": 1}
    assert by_place[1, 2]["kind"] == "goal"
    assert "value" not in by_place[1, 2]


def test_settings_name_what_an_ablation_changes() -> None:
    rows = tables.setting_rows(SUMMARY, group(name="fake+slow", config={"rate": 0.1, "widths": [32, 32]}))
    assert rows == [("rate", "0.1", "How fast.", True), ("widths", "32, 32", "", True)]
    assert tables.setting_rows(SUMMARY, group()) == [("rate", "0.5", "How fast.", False)]


@pytest.mark.parametrize(("value", "text"), [(1e-6, "1e-06"), (123456.0, "123,456"), (-3.14159, "-3.14")])
def test_numbers_are_short(value: float, text: str) -> None:
    assert tables.number(value) == text


def test_figures_against_the_delay_leave_out_what_has_none() -> None:
    runs = [*group().runs, {"scheme": "im", "seed": 0, "greedy_return": 1}]
    rows = tables.delay_rows(group(runs=runs), "greedy_return", {"none": 3.0})
    assert {row["scheme"] for row in rows} == {"none"}
    assert {(row["delay"], row["title"]) for row in rows} == {(3.0, "no IM")}
