"""Runs become a small summary, and the summary gives the same page as the runs."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from payback_lab import experiments, records
from payback_lab.claims.claim import DecidedClaim
from payback_lab.report import store
from payback_lab.report.charts.collection import Charts
from payback_lab.report.command import report
from payback_lab.report.page import page
from payback_lab.report.summary import Summary, thin
from payback_lab.runs import Asked
from payback_lab.user_error import UserError


def test_thinning_keeps_the_mean_and_bounds_the_points() -> None:
    curve = np.random.default_rng(0).normal(size=(3, 10_000))
    thinned = thin(curve, points=250)
    assert thinned.shape == (3, 250)
    np.testing.assert_allclose(thinned.mean(axis=1), curve.mean(axis=1))
    np.testing.assert_allclose(thinned[:, 0], curve[:, :40].mean(axis=1))
    short = np.arange(7.0)
    np.testing.assert_array_equal(thin(short, points=250), short)
    assert thin(np.arange(251.0), points=250).tolist()[-1] == 250.0  # the last block is a single episode


def test_a_summary_holds_the_groups_and_decides_on_full_curves(summary: Summary) -> None:
    assert [group.name for group in summary.groups] == ["fake", "fake+slow"]
    assert summary.fields["episodes"] == "How many episodes are trained."
    plain, slow = summary.groups
    assert len(plain.runs) == 24
    assert list(plain.curves) == list(dict.fromkeys(run["scheme"] for run in plain.runs))
    assert plain.curves["none"]["return"].shape == (3, 200)
    assert slow.config["drift"] == 0.1
    assert plain.made["commits"] == ["0123abc"]
    assert plain.made["seconds"] == 36.0
    assert summary.claims[0].here == "6 of 6"


@pytest.mark.slow
def test_a_summary_read_back_gives_the_same_page(summary: Summary, tmp_path: Path) -> None:
    store.save(tmp_path / "results", summary)
    (again,) = store.load(tmp_path / "results")
    assert page([again])[0] == page([summary])[0]
    size = sum(path.stat().st_size for path in (tmp_path / "results").rglob("*"))
    assert size < 200_000, size


@pytest.mark.slow
def test_report_from_runs_and_from_summaries(fake, runs: Path, tmp_path: Path) -> None:
    console, results = Console(quiet=True), tmp_path / "results"
    assert report(runs, results, True, console) == 0
    made = (runs / "report.html").read_text()
    figures = {path.name for path in (runs / "figures").iterdir()}
    assert {"fake-return.svg", "fake-return.png", "fake-policies.svg", "fake-grid.svg"} <= figures
    # Elsewhere, with nothing but the committed summaries:
    assert report(tmp_path / "empty", results, False, console) == 0
    assert (tmp_path / "empty/report.html").read_text() == made
    assert {path.name for path in (tmp_path / "empty/figures").iterdir()} == figures


def test_damaged_runs_are_named_and_left_out(fake, runs: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(Charts, "save", lambda *_: [])
    (runs / "fake/none/seed1/summary.json").write_text("{}")
    console = Console(record=True, quiet=False, width=200, file=(tmp_path / "log").open("w"))
    assert report(runs, tmp_path / "none", False, console) == 1
    console.file.close()
    assert "none/seed1 is damaged (summary.json is not what was written" in console.export_text()
    assert "2 to 3 seeds" in (runs / "report.html").read_text()


def test_runs_of_different_configs_are_not_averaged(fake, runs: Path) -> None:
    from fake_experiment import FakeConfig, fake_result

    run = replace(fake.plan(Asked(("none",), 1, (), 50))[0], seed=9, config=FakeConfig(episodes=50))
    records.write(runs, run, fake_result(run), fake.learner_version, {})
    with pytest.raises(UserError, match=r"seed0 and fake/none/seed9 were made with a different config"):
        report(runs, runs / "none", False, Console(quiet=True))


def test_a_folder_that_was_moved_is_refused(runs: Path) -> None:
    (runs / "fake/none/seed1").rename(runs / "fake/none/seed7")
    with pytest.raises(UserError, match=r"none/seed7 holds the run fake/none/seed1: move it there"):
        report(runs, runs / "none", False, Console(quiet=True))


def test_nothing_to_report_is_one_sentence(fake, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no runs in .* and no summaries in .*: start with"):
        report(tmp_path / "runs", tmp_path / "results", False, Console(quiet=True))


def test_summaries_are_not_made_from_summaries(fake, summary: Summary, tmp_path: Path) -> None:
    store.save(tmp_path / "results", summary)
    with pytest.raises(UserError, match="needs full runs"):
        report(tmp_path / "empty", tmp_path / "results", True, Console(quiet=True))


@pytest.mark.parametrize("name", ["summary.json", "curves.parquet", "policies.parquet"])
@pytest.mark.parametrize("text", ["", "{}", '{"groups": 3}'])
def test_a_broken_summary_is_named(summary: Summary, tmp_path: Path, name: str, text: str) -> None:
    store.save(tmp_path, summary)
    (tmp_path / "fake" / name).write_text(text)
    with pytest.raises(UserError, match=r"The summary in .*fake cannot be read"):
        store.load(tmp_path)


def test_summaries_name_no_machine(summary: Summary, tmp_path: Path) -> None:
    store.save(tmp_path / "results", summary)
    text = (tmp_path / "results/fake/summary.json").read_text()
    assert str(tmp_path) not in text
    assert json.loads(text)["groups"][0]["made"]["commands"] == ["payback-lab run fake"]


def test_an_unknown_experiment_in_the_records_is_one_sentence(fake, runs: Path, monkeypatch) -> None:
    monkeypatch.setattr(experiments, "MODULES", {"cliff": "payback_lab.experiments.cliff.experiment"})
    with pytest.raises(UserError, match='no experiment "fake"'):
        report(runs, runs / "none", False, Console(quiet=True))


def test_films_come_back_from_the_files(summary: Summary, tmp_path: Path) -> None:
    film = {"x": np.array([1, 2, 2]), "time": np.arange(3)}
    group = replace(summary.groups[0], films={"none": film, "im": {name: part[:2] for name, part in film.items()}})
    store.save(tmp_path / "results", replace(summary, groups=(group, *summary.groups[1:])))
    (back,) = store.load(tmp_path / "results")
    assert list(back.groups[0].films) == ["none", "im"]
    assert not back.groups[1].films
    np.testing.assert_array_equal(back.groups[0].films["none"]["x"], [1, 2, 2])
    np.testing.assert_array_equal(back.groups[0].films["im"]["time"], [0, 1])


def test_thinning_leaves_out_what_is_not_there() -> None:
    curve = np.array([np.nan, np.nan, np.nan, 4.0, 6.0, 8.0])
    np.testing.assert_array_equal(thin(curve, points=3), [np.nan, 4.0, 7.0])


def cut_short(full: Summary) -> Summary:
    group = full.groups[0]
    curves = {s: {c: curve[:, :50] for c, curve in own.items()} for s, own in group.curves.items()}
    return replace(full, groups=(replace(group, x=group.x[:50], curves=curves),))


@pytest.mark.slow
def test_runs_cut_short_are_drawn_beside_the_full_ones(summary: Summary) -> None:
    full, group = summary, summary.groups[0]
    _, charts = page([cut_short(full)], [full])
    beside = charts.content()["data"][f"{group.name}-return.beside"]
    assert beside
    assert max(row["x"] for row in beside) <= 3 * group.x[49]
    assert page([full], [full])[1].content()["data"][f"{group.name}-return.beside"] == []


@pytest.mark.slow
def test_runs_cut_short_leave_the_verdicts_to_the_full_ones(summary: Summary) -> None:
    full = replace(summary, claims=(DecidedClaim("", "Decided in full.", "", "", "holds"),))
    short = replace(cut_short(full), claims=(DecidedClaim("", "Open.", "", "", "undecided"),))
    for shown, committed, words, elsewhere in (
        (short, [full], "Decided in full.", True),
        (short, [], "Open.", False),
        (full, [replace(full, claims=short.claims)], "Decided in full.", False),
    ):
        text, _ = page([shown], committed)
        assert words in text
        assert ({"Open.", "Decided in full."} - {words}).pop() not in text
        assert ("The verdicts are those of the full" in text) is elsewhere
