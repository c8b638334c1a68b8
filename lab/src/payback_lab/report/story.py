"""What an experiment brings to the first screen of the report: its question, three sentences, a picture, an end.

Everything is a function of the summary, so that later seeds flow in. A sentence whose figures are not there returns
None and is left out. A new experiment adds a file in `stories/` and its name to `stories.STORIES`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from payback_lab.report.charts.style import Layered
from payback_lab.report.dots import Panel
from payback_lab.report.summary import Summary

Told = Callable[[Summary], str | None]
"""A sentence, None if the summary does not hold its figures."""


@dataclass(frozen=True)
class Drawing:
    """Hold a chart that the page draws and that is saved as a figure."""

    name: str
    """Its name below the experiment's: "by-size" becomes `reach-by-size`."""
    caption: str
    """What it shows, in words."""
    chart: Layered
    """The chart, over the data that it names."""
    data: Mapping[str, Sequence[Mapping[str, Any]]]
    """Name → rows."""
    height: int = 240
    names: tuple[str, ...] = ()
    """The schemes that the page names above the chart, if it has no legend of its own; it is then no figure to save."""


@dataclass(frozen=True)
class Story:
    """Describe how an experiment is told."""

    question: str
    """What it asks, as one sentence."""
    sentences: tuple[Told, ...]
    """Three for the first screen."""
    conclusion: Told
    """What to conclude."""
    picture: Callable[[Summary], Drawing | Panel | None]
    """The picture on the first screen."""
    charts: Callable[[Summary], Sequence[Drawing]] = lambda summary: ()
    """Charts of the experiment as a whole, drawn before its curves."""
    shown: int = 3
    """Settings whose curves stand open."""
