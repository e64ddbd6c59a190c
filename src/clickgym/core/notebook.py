"""Tables for notebooks: the HTML that objects of the package return from ``_repr_html_``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

MOST_ROWS = 20
"""A table shows at most so many; a line below them counts the rest."""


def html_table(
    title: str, rows: Iterable[Sequence[object]], header: Sequence[str] = (), *, most: int | None = MOST_ROWS
) -> str:
    """A table as notebooks show it; all text is escaped.

    Args:
        title: the line above; "" for none.
        rows: what stands in the cells: numbers with four digits, the rest as text.
        header: of the columns; none where the first column says what the second is.
        most: how many rows are shown; None shows all.

    Example:
        >>> html_table("a < b", [("x", 1 / 3)])
        '<div>a &lt; b</div><table><tbody><tr><th style="text-align:left">x</th><td>0.3333</td></tr></tbody></table>'
    """
    rows = list(rows)
    visible = rows[:most]
    head = "".join(f'<th style="text-align:left">{escape(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(_cell(value, first=not column) for column, value in enumerate(row)) + "</tr>" for row in visible
    )
    rest = f"<div>and {len(rows) - len(visible):,} more</div>" if len(visible) < len(rows) else ""
    head = f"<thead><tr>{head}</tr></thead>" if head else ""
    title = f"<div>{escape(title)}</div>" if title else ""
    return f"{title}<table>{head}<tbody>{body}</tbody></table>{rest}" if rows else title


def _cell(value: object, *, first: bool) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    tag, style = ("th" if first else "td"), ("" if isinstance(value, float | int) else ' style="text-align:left"')
    return f"<{tag}{style}>{escape(text)}</{tag}>"
