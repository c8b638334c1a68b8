"""An audit as a self-contained HTML page, with a drawing of one episode: loans, repayments, debt."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from payback.auditing.audit import Audit
from payback.auditing.diagnose import ExcerptRows, rows_of
from payback.auditing.rows import Log, printable
from payback.core.arrays import plain

INK = {"--ink": "#1d2430", "--soft": "#667085", "--paper": "#ffffff", "--line": "#d0d5dd", "--loan": "#0072b2",
       "--repay": "#d55e00", "--debt": "#1d2430"}  # fmt: skip
STYLE = f"""
:root {{ color-scheme: light dark; {" ".join(f"{name}: {colour};" for name, colour in INK.items())} }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6e9ef; --soft: #98a2b3; --paper: #12161d; --line: #344054;
        --loan: #56b4e9; --repay: #e69f00; --debt: #e6e9ef; }} }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
       margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.6rem; }} h2 {{ font-size: 1.2rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }}
.scroll {{ overflow-x: auto; }} svg {{ max-width: 100%; height: auto; }}
.narrow {{ display: none; }}
@media (max-width: 600px) {{ .narrow {{ display: block; }} .wide {{ display: none; }}
  th:nth-child(n+3):nth-child(-n+4), td:nth-child(n+3):nth-child(-n+4) {{ display: none; }} }}
"""
WIDTH, NARROW, HEIGHT, LEFT, TOP, PANEL = 760, 380, 420, 64, 46, 150  # pixels; a narrow drawing is for phones

Bars = tuple[np.ndarray, str, str, float]  # a value per step, its name, its colour, and where in the step it stands


def refuse_to_overwrite(log: Path, page: Path) -> None:
    """Raise if the page would be written over the log, or over any other log."""
    same = page.exists() and log.exists() and page.samefile(log)
    if same or page.suffix.lower() not in (".html", ".htm") or page.is_dir():
        raise ValueError(f"--page {page} is not written, so that no log is overwritten: give a name that ends in .html")


def page(audit: Audit, log: Log) -> str:
    """Return the audit as one HTML page that loads nothing; it draws the worst episode, or one of middle length."""
    name = html.escape(printable(Path(log.name).name, 120))
    leaking = audit.broken or audit.invalid_rows_paid
    verdict = "shaped rewards cancel" if audit.ok else "shaped rewards leak" if leaking else "cannot be judged"
    causes = f"<h2>Causes</h2>{_list(audit.cause_lines())}" if audit.causes else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Audit of {name}</title><style>{STYLE}</style></head><body><h1>{name}: {verdict}</h1>"
        "<p>Shaping preserves the optimal policy if the shaped rewards of every finished episode cancel: "
        "Σ γ<sup>t</sup> F′<sub>t</sub> = 0, each bonus is repaid with interest.</p>"
        f"{_list(audit.facts())}{causes}{_table(audit)}{_episode(audit, log)}</body></html>\n"
    )


def _list(lines: list[str]) -> str:
    return f"<ul>{''.join(f'<li>{html.escape(line)}</li>' for line in lines)}</ul>"


def _table(audit: Audit) -> str:
    if not audit.leaks:
        return ""
    header, *rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in audit.table())
    lines = "".join(f"<tr>{line}</tr>" for line in [header.replace("td>", "th>"), *rows])
    return f'<h2>The worst leaks</h2><div class="scroll"><table>{lines}</table></div>'


def _episode(audit: Audit, log: Log) -> str:
    """Draw one episode twice, for a wide and a narrow screen; the style shows one of them."""
    # An episode of one or two steps shows little.
    worst = max((leak for leak in audit.leaks if leak.episode >= 0), key=lambda leak: leak.length > 3, default=None)
    lengths = audit.episodes.length
    if worst is not None:
        where = (worst.environment, worst.first, worst.length)
        title = f"Environment {printable(worst.environment)}, episode {worst.episode}: leaks {worst.amount:.4g}"
    elif len(lengths):
        k = int(np.argsort(lengths, kind="stable")[len(lengths) // 2])
        where = (plain(audit.episodes.environment[k]), int(audit.episodes.first[k]), int(lengths[k]))
        title = f"Environment {printable(where[0])}, an episode of middle length"
    else:
        return ""
    (rows,) = rows_of(log, [where])
    wide, narrow = (episode_svg(rows, audit.gamma, title, width=width) for width in (WIDTH, NARROW))
    return f'<h2>One episode</h2><div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def episode_svg(rows: ExcerptRows, gamma: float, title: str, *, alone: bool = False, width: int = WIDTH) -> str:
    """Draw one episode: what is lent and repaid at each step, and below it the debt.

        Σ_{n<t} γ^n F'_n                    the debt after t steps, valued at the start: 0 at the end if all is repaid

    What is lent is G = F − F̄ if the bonus is centred, else F; what is repaid is F' − G. If the log does not have G, F̄
    is read off the first step, which is paid F − F̄ because nothing is owed. Without F only what was paid can be drawn.
    `alone` makes a file of its own, with fixed colours.
    """
    x = rows.shaped
    bars = _bars(x, rows.rewards, rows.lent)
    debt = np.concatenate(([0.0], np.cumsum(np.float64(gamma) ** np.arange(len(x)) * x)))
    spacing = min(190, (width - LEFT) // len(bars))
    keys = "".join(
        f'<rect x="{LEFT + spacing * k}" y="26" width="12" height="12" fill="var({colour})"/>'
        f'<text x="{LEFT + spacing * k + 18}" y="37" fill="var(--ink)">{name}</text>'
        for k, (_, name, colour, _) in enumerate(bars)
    )
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13"><title>{html.escape(title)}</title>'
        f'<rect width="{width}" height="{HEIGHT}" fill="var(--paper)"/>'
        f'<text x="{LEFT if width == WIDTH else 4}" y="16" fill="var(--ink)" font-weight="600">'
        f"{html.escape(title)}</text>"
        f"{keys}{_panel(TOP, bars, width)}{_line(TOP + PANEL + 70, debt, width)}</svg>"
    )
    for name, colour in INK.items() if alone else ():
        text = text.replace(f"var({name})", colour)
    return text + "\n"


def _bars(x: np.ndarray, rewards: np.ndarray | None, lent: np.ndarray | None) -> list[Bars]:
    if rewards is None and lent is None:
        paid, back = np.maximum(x, 0), np.minimum(x, 0)
        return [(paid, "paid out", "--loan", 0.08), (back, "taken back", "--repay", 0.5)]
    F = rewards if rewards is not None else np.asarray(lent)
    G = F - _mean(x, F) if lent is None else lent
    if np.array_equal(F, G):
        return [(F, "lent: F", "--loan", 0.08), (x - F, "repaid: F′ − F", "--repay", 0.5)]
    return [(F, "F", "--line", 0.29), (G, "lent: F − F̄", "--loan", 0.08), (x - G, "repaid", "--repay", 0.5)]


def _mean(x: np.ndarray, F: np.ndarray) -> float:
    """Return F̄ as the first step shows it, 0 if it shows none: a mean lies among the values of F."""
    mean = float(F[0] - x[0])
    within = float(F.min()) <= mean <= float(F.max())
    return mean if len(F) > 1 and within and abs(mean) > 1e-6 * float(np.abs(F).max()) else 0.0


def _panel(top: float, bars: list[Bars], width: int) -> str:
    place, axis = _scale(top, PANEL, np.concatenate([bar[0] for bar in bars]), width)
    step, drawn = (width - LEFT - 20) / len(bars[0][0]), list[str]()
    for t in range(len(bars[0][0])):
        for values, _, colour, shift in bars:
            if value := values[t]:
                y, h = min(place(value), place(0)), max(abs(place(value) - place(0)), 0.5)
                drawn.append(
                    f'<rect x="{LEFT + (t + shift) * step:.2f}" y="{y:.2f}" width="{max(0.4 * step, 0.4):.2f}" '
                    f'height="{h:.2f}" fill="var({colour})"/>'
                )
    return axis + "".join(drawn)


def _line(top: float, debt: np.ndarray, width: int) -> str:
    place, axis = _scale(top, 100, debt, width)
    step = (width - LEFT - 20) / (len(debt) - 1)
    left = 0.0 if abs(debt[-1]) <= 1e-9 * np.abs(debt).max() else debt[-1]
    points = " ".join(f"{LEFT + t * step:.2f},{place(d):.2f}" for t, d in enumerate(debt))
    ticks = "".join(
        f'<text x="{LEFT + t * step:.1f}" y="{top + 118}" fill="var(--soft)" text-anchor="middle">{t}</text>'
        for t in sorted({0, (len(debt) - 1) // 2, len(debt) - 1})
    )
    return (
        f'<text x="{LEFT}" y="{top - 10}" fill="var(--ink)">the debt, valued at the start: {left:.3g} at the end</text>'
        f'{axis}<polyline points="{points}" fill="none" stroke="var(--debt)" stroke-width="2"/>{ticks}'
        f'<text x="{width - 20}" y="{top + 134}" fill="var(--soft)" text-anchor="end">step</text>'
    )


def _scale(top: float, height: float, values: np.ndarray, width: int) -> tuple[Callable[[float], float], str]:
    """Return a value's position, and its axis: three labelled lines."""
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return top + height * (high - value) / span

    digits = max(0, 2 - math.floor(math.log10(max(abs(low), abs(high), 1e-12)) + 1))
    axis = "".join(
        f'<line x1="{LEFT}" x2="{width - 20}" y1="{place(v):.2f}" y2="{place(v):.2f}" stroke="var(--line)"/>'
        f'<text x="{LEFT - 8}" y="{place(v) + 4:.2f}" fill="var(--soft)" text-anchor="end">'
        f"{v:.{min(digits, 9)}f}</text>"
        for v in sorted({low, 0.0, high})
        if v == 0 or abs(place(v) - place(0)) > 14
    )
    return place, axis
