"""The page: one file, nothing loaded, nothing from files taken for markup."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from payback_lab.claims.claim import DecidedClaim
from payback_lab.prior_work.summary import Text
from payback_lab.report.page import json_in_html, page
from payback_lab.report.summary import Summary

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&"


@pytest.fixture(scope="module")
def plain(summary: Summary) -> str:
    return page([summary])[0]


def test_the_page_shows_what_was_asked_for(plain: str) -> None:
    for words in (
        "No IM is &lt;optimal&gt;.",
        "The numbers are a random walk.",
        "the shortest path (13 moves)",
        "not said in the paper",
        "payback-lab run fake",
        "0123abc",
        "drift = 0.1",
        "paper 88",
        "Mean over 3 seeds;",
    ):
        assert words in plain, words
    for chart in (
        "fake-return",
        "fake-length",
        "fake-picture",
        "fake-policy-grm-10",
        "fake-slow-return",
        "fake-grid",
    ):
        assert f'data-chart="{chart}"' in plain, chart


def test_nothing_is_loaded_from_elsewhere(plain: str) -> None:
    markup = re.sub(r"<script.*?</script>", "", plain, flags=re.S)
    assert "default-src 'none'" in markup
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!#)[^"']*""", markup)
    assert "@import" not in markup
    assert "url(" not in markup
    assert plain.count("<script") == 3  # the data, one copy of the drawing library, the page's own


def test_text_from_files_is_never_markup(summary: Summary, plain: str) -> None:
    evil_runs = [{**run, "scheme": EVIL, "word": EVIL, EVIL: 1.0} for run in summary.groups[0].runs[:2]]
    group = replace(
        summary.groups[0],
        name=f"fake{EVIL}",
        config={EVIL: EVIL},
        made={key: [EVIL] if isinstance(value, list) else value for key, value in summary.groups[0].made.items()}
        | {"packages": {EVIL: EVIL}, "first": EVIL, "last": EVIL},
        runs=evil_runs,
        curves={EVIL: {name: curve[:2] for name, curve in summary.groups[0].curves["none"].items()}},
        policies={EVIL: summary.groups[0].policies["none"]},
    )
    claim = DecidedClaim(EVIL, EVIL, EVIL, EVIL, EVIL, EVIL)  # pyright: ignore[reportArgumentType]
    text, _ = page(
        [
            Summary(
                EVIL, EVIL, (EVIL,), {EVIL: {EVIL: EVIL}}, {EVIL: EVIL}, {EVIL: (EVIL, 1.0)}, (claim,), (group, group)
            )
        ]
    )
    assert "alert(1)" in text  # it is there, as text
    assert text.count("<script") == plain.count("<script")
    assert text.count("</script") == plain.count("</script")
    assert "<img src=x" not in text
    assert not re.findall(r"=\"[^\"]*<script", text)


def test_json_cannot_end_its_element() -> None:
    value = {"</script>": ["<!--", "&", "\u2028", "ü", 1.5]}
    text = json_in_html(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == value


def test_a_run_with_nothing_to_draw_still_makes_a_page(summary: Summary) -> None:
    bare = replace(summary.groups[0], curves={}, policies={}, x=np.zeros(0))
    text, charts = page([replace(summary, groups=(bare,), claims=(), notes=())])
    assert "No claim can be decided" in text
    assert charts.content()["charts"] == {}


def test_the_table_of_prior_work_is_text(summary: Summary, plain: str) -> None:
    prior = Text(["method", "of time"], [["<b>raw</b>", "✗ seed 0"]], ["decided <i>here</i>"])
    text, _ = page([summary], prior=prior)
    assert "&lt;b&gt;raw&lt;/b&gt;" in text
    assert "decided &lt;i&gt;here&lt;/i&gt;" in text
    assert 'id="prior-work"' not in plain
