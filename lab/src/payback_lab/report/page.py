"""The page report.html: one file that opens without a network."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
import vl_convert
from markupsafe import Markup

from payback_lab.methods import in_order, is_raw, title
from payback_lab.prior_work.summary import Text
from payback_lab.report.charts.collection import Charts
from payback_lab.report.charts.style import colour
from payback_lab.report.section import section
from payback_lab.report.summary import Summary

HERE = Path(__file__).parent


def page(
    summaries: Sequence[Summary], committed: Sequence[Summary] = (), prior: Text | None = None
) -> tuple[str, Charts]:
    """Compose the page; return it with the charts it holds, for the static figures.

    `committed` are full results: where what is shown was cut short, they are drawn beside it and decide the claims.
    `prior` is the table of prior work.
    """
    charts = Charts()
    full = {summary.experiment: summary for summary in committed}
    experiments = [section(summary, charts, full.get(summary.experiment), len(summaries)) for summary in summaries]
    present = {run["scheme"] for summary in summaries for group in summary.groups for run in group.runs}
    # Autoescape, because text from records, summaries or experiments must never become markup.
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((HERE / "page.html").read_text())
    # Vega, Vega-Lite and vega-embed as one script; the stub of `javascript_bundle` forgets its default.
    library = vl_convert.javascript_bundle()  # pyright: ignore[reportCallIssue]
    text = template.render(
        experiments=experiments,
        prior=prior,
        schemes=[
            {"id": s, "title": title(s), "colour": colour(s), "dashed": is_raw(s)} for s in in_order(sorted(present))
        ],
        style=Markup((HERE / "page.css").read_text()),
        script=Markup((HERE / "page.js").read_text()),
        bundle=Markup(library.replace("</script", "<\\/script")),
        charts_json=Markup(json_in_html(charts.content())),
    )
    return text, charts


def json_in_html(value: Any) -> str:
    """Write JSON for a script element; no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028")
