"""Tables in Markdown, and their places in a page: what is written by hand and what is made stand side by side."""

from collections.abc import Iterable, Sequence

from payback_lab.user_error import UserError


def rows(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Write a table.

    >>> print(rows(("scheme", "N̄"), [("im", "268.2")]))
    | scheme | N̄ |
    | --- | --- |
    | im | 268.2 |
    """
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, ("---",) * len(header), *lines))


LONG = 25
"""Rows of the longest table that stands open."""


def folded(table: str, summary: str, longest: int = LONG) -> str:
    """Fold a table of more than 25 rows, or of more than `longest`, so that a reader can pass over it.

    >>> folded(rows(("n",), [("1",)]), "Every n") == rows(("n",), [("1",)])
    True
    >>> folded(rows(("n",), [("1",)] * 26), "Every n").splitlines()[0]
    '<details><summary>Every n</summary>'
    """
    if table.count("\n") - 1 <= longest:
        return table
    return f"<details><summary>{summary}</summary>\n\n{table}\n\n</details>"


def cell(text: str) -> str:
    """Keep text from ending a cell or a line."""
    return text.replace("|", "\\|").replace("\n", " ")


def placed(page: str, name: str, content: str) -> str:
    """Put something between the two marks that bear its name.

    >>> placed("<!-- t -->old<!-- end of t -->", "t", "new")
    '<!-- t -->\\n\\nnew\\n\\n<!-- end of t -->'
    """
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = page.partition(start)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise UserError(f"The page has no place for {name}: put {start} and {end} around it.")
    return f"{before}{start}\n\n{content}\n\n{end}{after}"
