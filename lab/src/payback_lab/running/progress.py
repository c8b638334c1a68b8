"""Progress of a list of tasks: bars on a terminal, a few plain lines elsewhere, with the time left of the whole."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

from payback_lab.running.task import Event

HEARTBEAT = 30.0  # seconds between plain lines while nothing ends
TRUST = 60.0
"""Seconds for which the estimated speed counts as if it had been measured, so that the first reports do not jump."""


def seconds_left(
    costs: Mapping[str, float],
    shares: Mapping[str, float],
    elapsed: float,
    workers: int,
    before: Mapping[str, float] | None = None,
) -> float:
    """Estimate the seconds left from the work done so far; before anything is done, from the costs alone.

    The speed is that of the work done together with `TRUST` seconds at the speed that the costs are estimated for.
    `before` has the shares that were found in checkpoints: they are done, but took none of `elapsed`.

    >>> seconds_left({"a": 60.0, "b": 60.0}, {}, elapsed=0.0, workers=2)
    60.0
    >>> round(seconds_left({"a": 6000.0, "b": 6000.0}, {"a": 1.0}, elapsed=3000.0, workers=1))
    3030
    >>> round(seconds_left({"a": 6000.0, "b": 6000.0}, {"a": 1.0}, elapsed=3000.0, workers=1, before={"a": 0.5}))
    6000
    """
    left = {name: cost * (1.0 - shares.get(name, 0.0)) for name, cost in costs.items()}
    found = before or {}
    done = sum(costs[name] * (share - found.get(name, 0.0)) for name, share in shares.items())
    if not any(left.values()):
        return 0.0
    crew = max(1, min(workers, len(costs)))
    rate = (done + crew * TRUST) / (elapsed + TRUST)
    # A task cannot be split, so that the longest one left is a lower bound however many workers there are.
    return max(sum(left.values()) / rate, max(left.values()) * crew / rate)


def duration(seconds: float) -> str:
    """Format a duration.

    >>> [duration(s) for s in (3.2, 75, 600, 5400)]
    ['3 s', '1 min 15 s', '10 min', '1 h 30 min']
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole < 600 and whole % 60 else "")
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def roughly(seconds: float) -> str:
    """Format an estimate of the time left, no finer than it can be.

    >>> [roughly(s) for s in (0.0, 42, 394, 5500)]
    ['nothing', 'less than a minute', 'about 7 min', 'about 1 h 30 min']
    """
    if seconds <= 0:
        return "nothing"
    if seconds < 60:
        return "less than a minute"
    minutes = round(seconds / 60)
    return f"about {duration(60 * (minutes if minutes < 60 else 10 * round(minutes / 10)))}"


def say(console: Console, text: str) -> None:
    """Print a line as it is: nothing in it is markup, and it is not broken."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


class Display:
    """Show the progress of one command's tasks; used as a context manager that is given every event."""

    def __init__(
        self,
        costs: Mapping[str, float],
        workers: int,
        console: Console,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._costs, self._workers, self._console, self._clock = costs, workers, console, clock
        self._shares: dict[str, float] = {}
        self._before: dict[str, float] = {}
        self._running: dict[str, float] = {}
        self._ended = 0
        self._begin = self._printed = clock()
        self._bars: dict[str, TaskID] = {}
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[left]}"),
        )
        self._progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self._total = self._progress.add_task("all", total=1.0, left="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        for bar in self._bars.values():
            self._progress.remove_task(bar)
        self._progress.stop()

    def show(self, event: Event) -> None:
        """Update the display with one event."""
        name, now = event.task.name, self._clock()
        began = self._running.get(name, now)
        if event.kind in ("started", "retried"):
            self._shares[name], self._running[name] = 0.0, now
        elif event.kind == "progress":
            self._shares[name] = min(max(event.share, 0.0), 1.0)
            self._before.setdefault(name, self._shares[name])
        elif event.kind in ("done", "failed"):
            self._shares[name] = 1.0
            self._running.pop(name, None)
            self._ended += 1
        self._move_bars(event)
        self._print(event, now - began)

    def _share(self) -> float:
        done = sum(self._costs[task] * share for task, share in self._shares.items())
        return done / max(sum(self._costs.values()), 1e-9)

    def _left(self) -> str:
        elapsed = self._clock() - self._begin
        left = roughly(seconds_left(self._costs, self._shares, elapsed, self._workers, self._before))
        return f"{left} left"

    def _move_bars(self, event: Event) -> None:
        name = event.task.name
        if event.kind in ("done", "failed"):
            bar = self._bars.pop(name, None)
            if bar is not None:
                self._progress.remove_task(bar)
        else:
            if name not in self._bars:
                self._bars[name] = self._progress.add_task(name, total=1.0, left="")
            self._progress.update(self._bars[name], completed=self._shares[name])
        tasks = f"all, {self._ended} of {len(self._costs)} tasks done"
        self._progress.update(self._total, description=tasks, completed=self._share(), left=self._left())

    def _print(self, event: Event, seconds: float) -> None:
        name = event.task.name
        count, whole = f"[{self._ended}/{len(self._costs)}]", f"{self._share():.0%} of all done, {self._left()}"
        if event.kind == "done" and not self._console.is_terminal:
            self._line(f"{count} {name} done in {duration(seconds)}; {whole}")
        elif event.kind == "failed":
            self._line(f"{count} {name} failed; the other tasks continue")
        elif event.kind == "retried":
            self._line(f"{name}: {event.text}; trying again")
        elif event.kind == "waiting":
            self._line(f"{name}: another process is making {event.text}; waiting for it")
        elif not self._console.is_terminal and self._clock() - self._printed >= HEARTBEAT:
            self._line(f"{count} running {', '.join(self._running)}; {whole}")

    def _line(self, text: str) -> None:
        self._printed = self._clock()
        say(self._console, text)
