"""Progress of a list of tasks: bars on a terminal, a few plain lines elsewhere, always with the time left."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

from payback_lab.running.task import Event

HEARTBEAT = 30.0  # seconds between plain lines while nothing ends


def seconds_left(
    costs: Mapping[str, float],
    shares: Mapping[str, float],
    elapsed: float,
    workers: int,
    before: Mapping[str, float] | None = None,
) -> float:
    """Estimate the seconds left from the work done so far; before anything is done, from the costs alone.

    `before` has the shares that were found in checkpoints: they are done, but took none of `elapsed`.

    >>> seconds_left({"a": 60.0, "b": 60.0}, {}, elapsed=0.0, workers=2)
    60.0
    >>> seconds_left({"a": 60.0, "b": 60.0}, {"a": 1.0}, elapsed=30.0, workers=1)
    30.0
    >>> seconds_left({"a": 60.0, "b": 60.0}, {"a": 1.0}, elapsed=30.0, workers=1, before={"a": 0.5})
    60.0
    """
    left = {name: cost * (1.0 - shares.get(name, 0.0)) for name, cost in costs.items()}
    found = before or {}
    done = sum(costs[name] * (share - found.get(name, 0.0)) for name, share in shares.items())
    if not any(left.values()):
        return 0.0
    crew = max(1, min(workers, len(costs)))
    rate = done / elapsed if done > 0.0 and elapsed > 0.0 else float(crew)
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
        self._ended = 0
        self._begin = self._said = clock()
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
        name = event.task.name
        if event.kind in ("started", "retried"):
            self._shares[name] = 0.0
        elif event.kind == "progress":
            self._shares[name] = min(max(event.share, 0.0), 1.0)
            self._before.setdefault(name, self._shares[name])
        elif event.kind in ("done", "failed"):
            self._shares[name] = 1.0
            self._ended += 1
        self._move_bars(event)
        self._say(event)

    def _left(self) -> str:
        elapsed = self._clock() - self._begin
        left = seconds_left(self._costs, self._shares, elapsed, self._workers, self._before)
        return f"about {duration(left)} left"

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
        done = sum(self._costs[task] * share for task, share in self._shares.items())
        share = done / max(sum(self._costs.values()), 1e-9)
        self._progress.update(self._total, completed=share, left=self._left())

    def _say(self, event: Event) -> None:
        name, now = event.task.name, self._clock()
        count = f"[{self._ended}/{len(self._costs)}]"
        if event.kind == "done" and not self._console.is_terminal:
            self._line(f"{count} {name} done after {duration(now - self._begin)}, {self._left()}")
        elif event.kind == "failed":
            self._line(f"{count} {name} failed; the others go on")
        elif event.kind == "retried":
            self._line(f"{name}: {event.text}; trying again")
        elif event.kind == "waiting":
            self._line(f"{name}: another process is making {event.text}; waiting for it")
        elif not self._console.is_terminal and now - self._said >= HEARTBEAT:
            self._line(f"{count} working, {self._left()}")

    def _line(self, text: str) -> None:
        self._said = self._clock()
        say(self._console, text)
