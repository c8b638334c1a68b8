"""An audit as a small self-contained page, with the ledger of one episode: loans, repayments, debt."""

from __future__ import annotations

import html
import math

import numpy as np

from payback.auditing.episodes import Audit

WIDTH, HEIGHT, LEFT, TOP, PANEL = 760, 420, 64, 46, 150
STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #667085; --paper: #ffffff; --line: #d0d5dd;
        --loan: #0072b2; --repay: #d55e00; --debt: #1d2430; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --paper: #12161d; --line: #344054;
        --loan: #56b4e9; --repay: #e69f00; --debt: #e6e9ef; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
       margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.scroll { overflow-x: auto; } svg { max-width: 100%; height: auto; }
"""
INK = {"--ink": "#1d2430", "--soft": "#667085", "--paper": "#ffffff", "--line": "#d0d5dd", "--loan": "#0072b2",
       "--repay": "#d55e00", "--debt": "#1d2430"}  # fmt: skip


def ledger_svg(shaped: np.ndarray, rewards: np.ndarray | None, gamma: float, title: str, alone: bool = False) -> str:
    """Draw one episode: what is lent (F) and repaid (F' − F) at each step, and below it the debt.

        Σ_{n<t} γ^n F'_n                    the debt after t steps, valued at the start: 0 at the end if all is repaid

    Without F only what was paid can be drawn. `alone` makes a file of its own, with fixed colours.
    """
    x = np.asarray(shaped, dtype=np.float64)
    lent = np.maximum(x, 0) if rewards is None else np.asarray(rewards, dtype=np.float64)
    back = np.minimum(x, 0) if rewards is None else x - lent
    debt = np.concatenate(([0.0], np.cumsum(np.float64(gamma) ** np.arange(len(x)) * x)))
    names = ("paid out", "taken back") if rewards is None else ("lent: F", "repaid: F′ − F")
    above = _panel(TOP, lent, back)
    below = _line(TOP + PANEL + 70, debt)
    keys = "".join(
        f'<rect x="{LEFT + 190 * k}" y="26" width="12" height="12" fill="var({c})"/>'
        f'<text x="{LEFT + 190 * k + 18}" y="37" fill="var(--ink)">{name}</text>'
        for k, (name, c) in enumerate(zip(names, ("--loan", "--repay"), strict=True))
    )
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13"><title>{html.escape(title)}</title>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="var(--paper)"/>'
        f'<text x="{LEFT}" y="16" fill="var(--ink)" font-weight="600">{html.escape(title)}</text>'
        f"{keys}{above}{below}</svg>"
    )
    if alone:
        for name, colour in INK.items():
            text = text.replace(f"var({name})", colour)
    return text + "\n"


def page(audit: Audit, name: str, ledger: str) -> str:
    """Return the audit as one HTML page without anything to load."""
    verdict = "keeps the law" if audit.ok else "breaks the law"
    rows = "".join(
        f"<tr><td>{html.escape(str(leak.environment))}</td><td>{leak.episode}</td><td>{leak.step}</td>"
        f"<td>{leak.length}</td><td>{leak.amount:.4g}</td><td>{leak.relative:.2%}</td>"
        f"<td>{html.escape(leak.cause)}</td></tr>"
        for leak in audit.leaks
    )
    titles = ("environment", "episode", "step", "steps", "leak", "relative", "looks like")
    head = "".join(f"<th>{title}</th>" for title in titles)
    table = f'<h2>The worst leaks</h2><div class="scroll"><table><tr>{head}</tr>{rows}</table></div>' if rows else ""
    facts = "".join(f"<li>{html.escape(fact)}</li>" for fact in summary(audit))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Audit of {html.escape(name)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{html.escape(name)} {verdict}</h1>"
        "<p>The law: in every finished episode Σ γ<sup>t</sup> F′<sub>t</sub> = 0, "
        f"each bonus is repaid with interest.</p><ul>{facts}</ul>{table}<h2>The ledger of one episode</h2>{ledger}"
        "</body></html>\n"
    )


def summary(audit: Audit) -> list[str]:
    """Return what was found, one sentence each."""
    total = len(audit.episodes.leak)
    lines = [
        f"{audit.rows:,} rows, {total:,} finished episodes, γ = {audit.gamma:.6g}.",
        f"{total - min(audit.broken, total):,} episodes keep the law, {audit.broken:,} break it.",
    ]
    if audit.unfinished:
        lines.append(f"{audit.unfinished:,} environments end in mid-episode; those episodes are not judged.")
    return lines + [f"{note}." for note in audit.notes]


def _panel(top: float, lent: np.ndarray, back: np.ndarray) -> str:
    low, high = min(float(back.min()), float(lent.min()), 0.0), max(float(lent.max()), float(back.max()), 0.0)
    place, axis = _scale(top, PANEL, low, high)
    step = (WIDTH - LEFT - 20) / len(lent)
    bars = []
    for t in range(len(lent)):
        for value, shift, colour in ((lent[t], 0.08, "--loan"), (back[t], 0.5, "--repay")):
            if value:
                y, h = min(place(value), place(0)), max(abs(place(value) - place(0)), 0.5)
                bars.append(
                    f'<rect x="{LEFT + (t + shift) * step:.2f}" y="{y:.2f}" width="{max(0.4 * step, 0.4):.2f}" '
                    f'height="{h:.2f}" fill="var({colour})"/>'
                )
    return axis + "".join(bars)


def _line(top: float, debt: np.ndarray) -> str:
    place, axis = _scale(top, 100, min(0.0, float(debt.min())), max(0.0, float(debt.max())))
    step = (WIDTH - LEFT - 20) / (len(debt) - 1)
    left = 0.0 if abs(debt[-1]) <= 1e-9 * np.abs(debt).max() else debt[-1]
    points = " ".join(f"{LEFT + t * step:.2f},{place(d):.2f}" for t, d in enumerate(debt))
    ticks = "".join(
        f'<text x="{LEFT + t * step:.1f}" y="{top + 118}" fill="var(--soft)" text-anchor="middle">{t}</text>'
        for t in sorted({0, (len(debt) - 1) // 2, len(debt) - 1})
    )
    return (
        f'<text x="{LEFT}" y="{top - 10}" fill="var(--ink)">the debt, valued at the start: {left:.3g} at the end</text>'
        f'{axis}<polyline points="{points}" fill="none" stroke="var(--debt)" stroke-width="2"/>{ticks}'
        f'<text x="{WIDTH - 20}" y="{top + 134}" fill="var(--soft)" text-anchor="end">step</text>'
    )


def _scale(top: float, height: float, low: float, high: float):
    """Return where a value lies, and its axis: three labelled lines."""
    span = (high - low) or 1.0

    def place(value: float) -> float:
        return top + height * (high - value) / span

    digits = max(0, 2 - math.floor(math.log10(max(abs(low), abs(high), 1e-12)) + 1))
    axis = "".join(
        f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{place(v):.2f}" y2="{place(v):.2f}" stroke="var(--line)"/>'
        f'<text x="{LEFT - 8}" y="{place(v) + 4:.2f}" fill="var(--soft)" text-anchor="end">'
        f"{v:.{min(digits, 9)}f}</text>"
        for v in sorted({low, 0.0, high})
        if v == 0 or abs(place(v) - place(0)) > 14
    )
    return place, axis
