"""Progress: the time left from the work done, few plain lines without a terminal."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from payback_lab.running.progress import HEARTBEAT, Display, seconds_left
from payback_lab.running.task import Event, Task
from payback_lab.runs import Run

ONE, TWO = (
    Task("m", (Run("fake", None, None, s, 0, None),), Path("runs"), "payback-lab run fake") for s in ("none", "im")
)
COSTS = {ONE.name: 30.0, TWO.name: 30.0}


@pytest.mark.parametrize(
    ("costs", "shares", "elapsed", "workers", "left"),
    [
        ({"a": 60.0}, {}, 0.0, 8, 60.0),  # one task, however many workers
        ({"a": 60.0, "b": 60.0}, {}, 0.0, 1, 120.0),
        ({"a": 60.0, "b": 60.0}, {"a": 0.5, "b": 0.5}, 120.0, 2, 60.0),  # slower than expected: 180 s of work in 180 s
        ({"a": 10.0, "b": 10.0, "c": 40.0}, {"a": 1.0, "b": 1.0}, 10.0, 2, 40.0),  # the last one runs alone
        ({"a": 60.0}, {"a": 1.0}, 10.0, 2, 0.0),
        ({}, {}, 0.0, 2, 0.0),
    ],
)
def test_the_time_left(costs, shares, elapsed, workers, left) -> None:
    assert seconds_left(costs, shares, elapsed, workers) == pytest.approx(left)


def test_what_a_checkpoint_held_is_no_work_of_this_command() -> None:
    """Rounding must not leave a trace of work, which would make the time left astronomical."""
    costs = {f"{k}": 107.3 for k in range(19)}
    for share in (0.1, 0.3, 0.7):
        before = {"0": share}
        left = seconds_left(costs, before, elapsed=40.0, workers=1, before=before)
        assert left == pytest.approx(107.3 * (19 - share) * 100 / 60)  # 60 s at full speed, then 40 s of nothing


def test_the_first_reports_do_not_jump() -> None:
    """A task that reports late, or one that compiles first, moves the estimate by minutes, not by hours."""
    costs = {f"{k}": 60.0 for k in range(30)}
    early = seconds_left(costs, {"0": 0.01}, elapsed=10.0, workers=2)
    late = seconds_left(costs, {"0": 0.5, "1": 0.5}, elapsed=35.0, workers=2)
    assert early == pytest.approx(15 * 60, rel=0.2)
    assert late == pytest.approx(15 * 60, rel=0.1)


def shown(events: list[tuple[float, Event]], terminal: bool = False) -> str:
    now = 0.0
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    with Display(COSTS, 1, console, clock=lambda: now) as display:
        for now, event in events:  # noqa: B007 - the clock reads it
            display.show(event)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_plain_lines_are_few_and_say_what_counts() -> None:
    printed = shown(
        [
            (0.0, Event(ONE, "started")),
            *((i / 100, Event(ONE, "progress", share=i / 2000)) for i in range(1000)),
            (15.0, Event(ONE, "retried", text="its process died (killed by SIGKILL)")),
            (15.0, Event(ONE, "started")),
            (20.0, Event(ONE, "waiting", text="fake/none/seed0")),
            (30.0, Event(ONE, "done")),
            (31.0, Event(TWO, "started")),
            (31.0, Event(TWO, "progress", share=0.0)),
            (31.0 + HEARTBEAT, Event(TWO, "progress", share=0.5)),
            (70.0, Event(TWO, "failed", text="boom")),
        ]
    )
    assert printed.splitlines() == [
        "fake/none/seed0: its process died (killed by SIGKILL); trying again",
        "fake/none/seed0: another process is making fake/none/seed0; waiting for it",
        "[1/2] fake/none/seed0 done in 15 s; 50% of all done, less than a minute left",
        "[1/2] running fake/im/seed0; 75% of all done, less than a minute left",
        "[2/2] fake/im/seed0 failed; the other tasks continue",
    ]


def test_what_a_checkpoint_held_was_not_done_in_this_time() -> None:
    printed = shown(
        [
            (0.0, Event(ONE, "started")),
            (1.0, Event(ONE, "progress", share=0.8)),
            (HEARTBEAT, Event(ONE, "progress", share=0.9)),
        ]
    )
    assert printed == "[0/2] running fake/none/seed0; 45% of all done, less than a minute left\n"


def test_a_terminal_gets_bars() -> None:
    printed = shown([(0.0, Event(ONE, "started")), (10.0, Event(ONE, "progress", share=0.5))], terminal=True)
    assert "━" in printed
    assert "25%" in printed
