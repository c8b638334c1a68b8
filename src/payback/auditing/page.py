"""An audit as a small self-contained page, with the ledger of one episode: loans, repayments, debt."""

from __future__ import annotations

import html

from payback.auditing.environment_ids import printable
from payback.auditing.examine import Columns
from payback.auditing.found import Audit
from payback.auditing.ledger import NARROW, WIDTH, ledger_svg
from payback.auditing.summary import cause_lines, summary

STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #667085; --paper: #ffffff; --line: #d0d5dd;
        --loan: #0072b2; --repay: #d55e00; --debt: #1d2430; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --paper: #12161d; --line: #344054;
        --loan: #56b4e9; --repay: #e69f00; --debt: #e6e9ef; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
       margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
.scroll { overflow-x: auto; } svg { max-width: 100%; height: auto; }
.narrow { display: none; }
@media (max-width: 600px) { .narrow { display: block; } .wide { display: none; }
  th:nth-child(n+3):nth-child(-n+4), td:nth-child(n+3):nth-child(-n+4) { display: none; } }
"""
HEADER = ("environment", "episode", "step", "steps", "leak", "relative", "looks like")


def page(audit: Audit, name: str, episode: Columns | None, title: str) -> str:
    """Return the audit as one HTML page without anything to load; `episode` is the one whose ledger is drawn."""
    breaks = audit.broken or audit.invalid_rows_paid
    verdict = "keeps the law" if audit.ok else "breaks the law" if breaks else "cannot be judged"
    facts = "".join(f"<li>{html.escape(fact)}</li>" for fact in summary(audit))
    causes = "".join(f"<li>{html.escape(line.strip())}</li>" for line in cause_lines(audit))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Audit of {html.escape(name)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{html.escape(name)} {verdict}</h1>"
        "<p>The law: in every finished episode Σ γ<sup>t</sup> F′<sub>t</sub> = 0, "
        f"each bonus is repaid with interest.</p><ul>{facts}</ul>"
        + (f"<h2>Causes</h2><ul>{causes}</ul>" if causes else "")
        + _table(audit)
        + (_ledger(episode, audit.gamma, title) if episode is not None else "")
        + "</body></html>\n"
    )


def _table(audit: Audit) -> str:
    if not audit.leaks:
        return ""
    rows = "".join(
        f"<tr><td>{html.escape(printable(leak.environment))}</td><td>{leak.episode if leak.episode >= 0 else '–'}</td>"
        f"<td>{leak.step}</td><td>{leak.length}</td><td>{leak.amount:.4g}</td><td>{leak.relative:.2%}</td>"
        f"<td>{html.escape(leak.cause.value)}</td></tr>"
        for leak in audit.leaks
    )
    head = "".join(f"<th>{title}</th>" for title in HEADER)
    return f'<h2>The worst leaks</h2><div class="scroll"><table><tr>{head}</tr>{rows}</table></div>'


def _ledger(episode: Columns, gamma: float, title: str) -> str:
    """Draw the episode twice, for a wide and a narrow screen; the style shows one of them."""
    paid, rewards, lent = episode
    wide, narrow = (ledger_svg(paid, rewards, gamma, title, lent=lent, width=width) for width in (WIDTH, NARROW))
    return f'<h2>The ledger of one episode</h2><div class="wide">{wide}</div><div class="narrow">{narrow}</div>'
