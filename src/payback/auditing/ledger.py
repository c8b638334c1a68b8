"""The ledger of one episode as a drawing: what was lent and repaid at each step, and the debt."""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

WIDTH, NARROW, HEIGHT, LEFT, TOP, PANEL = 760, 380, 420, 64, 46, 150
"""Measures in pixels; a narrow drawing is for phones."""
INK = {"--ink": "#1d2430", "--soft": "#667085", "--paper": "#ffffff", "--line": "#d0d5dd", "--loan": "#0072b2",
       "--repay": "#d55e00", "--debt": "#1d2430"}  # fmt: skip


class Bars(NamedTuple):
    """One value per step, its name in the key, its colour, and where in the step's width it stands."""

    values: np.ndarray
    name: str
    colour: str
    shift: float


def ledger_svg(
    shaped: np.ndarray,
    rewards: np.ndarray | None,
    gamma: float,
    title: str,
    alone: bool = False,
    *,
    lent: np.ndarray | None = None,
    width: int = WIDTH,
) -> str:
    """Draw one episode: what is lent and repaid at each step, and below it the debt.

        Σ_{n<t} γ^n F'_n                    the debt after t steps, valued at the start: 0 at the end if all is repaid

    What is lent is G = F − F̄ if the bonus is centred, else F; what is repaid is F' − G. `lent` is G where the log has
    it; otherwise F̄ is read off the first step, which is paid F − F̄ because nothing is owed. Without F only what was
    paid can be drawn. `alone` makes a file of its own, with fixed colours.
    """
    x = np.asarray(shaped, dtype=np.float64)
    bars = _bars(x, rewards, lent)
    debt = np.concatenate(([0.0], np.cumsum(np.float64(gamma) ** np.arange(len(x)) * x)))
    apart = min(190, (width - LEFT) // len(bars))
    keys = "".join(
        f'<rect x="{LEFT + apart * k}" y="26" width="12" height="12" fill="var({bar.colour})"/>'
        f'<text x="{LEFT + apart * k + 18}" y="37" fill="var(--ink)">{bar.name}</text>'
        for k, bar in enumerate(bars)
    )
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13"><title>{html.escape(title)}</title>'
        f'<rect width="{width}" height="{HEIGHT}" fill="var(--paper)"/>'
        f'<text x="{LEFT if width == WIDTH else 4}" y="16" fill="var(--ink)" font-weight="600">'
        f"{html.escape(title)}</text>"
        f"{keys}{_panel(TOP, bars, width)}{_line(TOP + PANEL + 70, debt, width)}</svg>"
    )
    if alone:
        for name, colour in INK.items():
            text = text.replace(f"var({name})", colour)
    return text + "\n"


def _bars(x: np.ndarray, rewards: np.ndarray | None, lent: np.ndarray | None) -> list[Bars]:
    if rewards is None and lent is None:
        return [
            Bars(np.maximum(x, 0), "paid out", "--loan", 0.08),
            Bars(np.minimum(x, 0), "taken back", "--repay", 0.5),
        ]
    F = np.asarray(rewards if rewards is not None else lent, dtype=np.float64)
    G = F - _mean(x, F) if lent is None else np.asarray(lent, dtype=np.float64)
    if np.array_equal(F, G):
        return [Bars(F, "lent: F", "--loan", 0.08), Bars(x - F, "repaid: F′ − F", "--repay", 0.5)]
    return [
        Bars(F, "F", "--line", 0.29),
        Bars(G, "lent: F − F̄", "--loan", 0.08),
        Bars(x - G, "repaid", "--repay", 0.5),
    ]


def _mean(x: np.ndarray, F: np.ndarray) -> float:
    """Return F̄ as the first step shows it, 0 where it shows none: a mean lies among the values of F."""
    mean = float(F[0] - x[0])
    within = float(F.min()) <= mean <= float(F.max())
    return mean if len(F) > 1 and within and abs(mean) > 1e-6 * float(np.abs(F).max()) else 0.0


def _panel(top: float, bars: list[Bars], width: int) -> str:
    low = min(0.0, *(float(bar.values.min()) for bar in bars))
    high = max(0.0, *(float(bar.values.max()) for bar in bars))
    place, axis = _scale(top, PANEL, low, high, width)
    step = (width - LEFT - 20) / len(bars[0].values)
    drawn: list[str] = []
    for t in range(len(bars[0].values)):
        for bar in bars:
            value = bar.values[t]
            if value:
                y, h = min(place(value), place(0)), max(abs(place(value) - place(0)), 0.5)
                drawn.append(
                    f'<rect x="{LEFT + (t + bar.shift) * step:.2f}" y="{y:.2f}" width="{max(0.4 * step, 0.4):.2f}" '
                    f'height="{h:.2f}" fill="var({bar.colour})"/>'
                )
    return axis + "".join(drawn)


def _line(top: float, debt: np.ndarray, width: int) -> str:
    place, axis = _scale(top, 100, min(0.0, float(debt.min())), max(0.0, float(debt.max())), width)
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


def _scale(top: float, height: float, low: float, high: float, width: int) -> tuple[Callable[[float], float], str]:
    """Return where a value lies, and its axis: three labelled lines."""
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
