"""The charts of one page, each a Vega-Lite specification and the data it names; the same as static figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from payback_lab.methods import is_raw, title
from payback_lab.report import tables
from payback_lab.report.charts import cliff
from payback_lab.report.charts.curves import DELAYS, FINALS, LABELS, LOGARITHMIC, LONGEST, curve_chart, delay_chart
from payback_lab.report.charts.style import Layered, colour, finished
from payback_lab.report.summary import Group, Summary

HEIGHT = 240
PADDING = {"left": 10, "top": 10, "bottom": 10, "right": 40}
"""Around a saved figure; more on the right, because the reader's font may be wider than the one measured."""


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


class Charts:
    """Collect the charts of a page; charts refer to specifications and data by name, so that each is stored once."""

    def __init__(self) -> None:
        self._charts: dict[str, dict[str, Any]] = {}
        self._specs: dict[str, dict[str, Any]] = {}
        self._data: dict[str, Any] = {}
        self._static: dict[str, dict[str, Any]] = {}
        self._maps: dict[str, list[tuple[str, str, int, int]]] = {}
        self._drawn: dict[str, str] = {}

    def content(self) -> dict[str, Any]:
        """Return what the page needs to draw them."""
        return {"charts": self._charts, "specs": self._specs, "data": self._data}

    def curve(
        self, summary: Summary, group: Group, schemes: list[str], column: str, beside: Group | None = None
    ) -> dict[str, Any]:
        """Add the learning curves of one column; `beside` are longer runs to compare with, as thin lines."""
        name = _id(group.name, column)
        columns = tables.curve_columns(group, column)
        label, line, longest = LABELS[column], summary.reference.get(column), tables.longest(columns, LONGEST)
        chart = partial(
            curve_chart, schemes, label, group.axis, logarithmic=column in LOGARITHMIC, longest=longest, reference=line
        )
        longer = tables.beside_rows(group, beside, column) if beside else []
        data = {"rows": tables.thinned(columns), "beside": longer}
        kind = _id(column, f"{longest:.0f}", *schemes)
        self._add(name, kind, finished(chart(), width="container", height=HEIGHT), data)
        static = finished(chart(legend=True), width=640, height=360)
        self._static[name] = static | {"datasets": {"rows": tables.curve_rows(columns), "beside": longer}}
        return {"id": name, "caption": label.capitalize(), "names": []}

    def add(self, experiment: str, drawing: Drawing) -> dict[str, Any]:
        """Add a chart that an experiment brings."""
        name = _id(experiment, drawing.name)
        self._add(name, name, finished(drawing.chart, width="container", height=drawing.height), dict(drawing.data))
        if not drawing.names:
            self._static[name] = finished(drawing.chart, width=520, height=320) | {"datasets": dict(drawing.data)}
        names = [{"title": title(s), "colour": colour(s), "dashed": is_raw(s)} for s in drawing.names]
        return {"id": name, "caption": drawing.caption, "names": names}

    def delay(self, group: Group, key: str) -> dict[str, Any]:
        """Add a figure against the delay of the repayment."""
        name = _id(group.name, key, "by-delay")
        rows = tables.delay_rows(group, key, DELAYS)
        chart = delay_chart(FINALS[key])
        self._add(name, _id(key, "by-delay"), finished(chart, width="container", height=HEIGHT), {"rows": rows})
        self._static[name] = finished(chart, width=560, height=320) | {"datasets": {"rows": rows}}
        return {"id": name, "caption": f"{FINALS[key].capitalize()}, against the delay", "names": []}

    def policy(self, group: Group, scheme: str) -> str:
        """Add one policy map; in the static figures the maps of a group share a sheet."""
        name = _id(group.name, "policy", scheme)
        policy = group.policies[scheme]
        rows, columns = policy.action.shape
        kind = f"policy-{columns}"
        if kind not in self._specs:
            height = 130 if columns <= cliff.NARROW else 96
            self._specs[kind] = finished(cliff.policy_chart(columns), width="container", height=height)
        self._add(name, kind, None, {"cells": tables.policy_cells(policy)})
        sheet = self._maps.setdefault(_id(group.name, "policies"), [])
        sheet.append((name, title(scheme), rows, columns))
        return name

    def grid(self, experiment: str, rows: int, columns: int) -> str:
        """Add the grid with its two paths."""
        name = _id(experiment, "grid")
        chart = cliff.grid_chart(rows, columns)
        height = 40 * rows if columns <= cliff.NARROW else 96
        self._add(name, name, finished(chart, width="container", height=height), {})
        self._static[name] = finished(chart, width=(44 if columns <= cliff.NARROW else 22) * columns, height=height)
        return name

    def drawing(self, name: str, svg: str) -> str:
        """Add a drawing that is SVG already; the page holds it unchanged."""
        self._drawn[_id(name)] = svg
        return svg

    def names(self) -> list[str]:
        """Return the names of the static figures."""
        return [*self._static, *self._maps, *self._drawn]

    def svg(self, name: str) -> str:
        """Draw one static figure."""
        if name in self._drawn:
            return self._drawn[name]
        spec = self._static[name] if name in self._static else self._sheet(self._maps[name])
        return vl_convert.vegalite_to_svg({**spec, "background": "white", "padding": PADDING, "autosize": "pad"})

    def save(self, folder: Path) -> list[Path]:
        """Write every figure as SVG and PNG."""
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for name in self.names():
            svg = self.svg(name)
            (folder / f"{name}.svg").write_text(svg)
            (folder / f"{name}.png").write_bytes(vl_convert.svg_to_png(svg, scale=2.0))
            written += [folder / f"{name}.svg", folder / f"{name}.png"]
        return written

    def _add(self, name: str, kind: str, spec: dict[str, Any] | None, data: dict[str, Any]) -> None:
        if spec is not None:
            self._specs.setdefault(kind, spec)
        self._charts[name] = {"spec": kind, "named": {key: f"{name}.{key}" for key in data}}
        self._data |= {f"{name}.{key}": value for key, value in data.items()}

    def _sheet(self, maps: list[tuple[str, str, int, int]]) -> dict[str, Any]:
        """Lay the maps of one group out on one figure."""
        charts = []
        for name, heading, rows, columns in maps:
            chart = cliff.policy_chart(columns, f"{name}.cells")
            side = 30 if columns <= cliff.NARROW else 22
            charts.append(chart.properties(title=heading, width=side * columns, height=30 * rows))
        datasets = {f"{name}.cells": self._data[f"{name}.cells"] for name, *_ in maps}
        across = 2 if maps[0][3] <= cliff.NARROW else 1
        sheet = alt.concat(*charts, columns=across).resolve_scale(color="independent")
        return finished(sheet) | {"datasets": datasets}


def _id(*parts: str) -> str:
    """Make a name that is valid in file names and HTML attributes."""
    return "".join(c if c.isalnum() or c in "-._" else "-" for c in "-".join(parts).replace("_", "-"))
