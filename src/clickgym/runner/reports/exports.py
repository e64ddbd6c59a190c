"""Tables of a finished sweep for a text or a paper: Markdown and LaTeX."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import polars

from ...core.formats import markdown_text, one_line
from ...core.templates import templates
from .. import words
from ..summaries import ranked, without_regret

TEX: dict[str, Any] = {
    "block_start_string": "<%",
    "block_end_string": "%>",
    "variable_start_string": "<<",
    "variable_end_string": ">>",
}
"""Marks of templates in LaTeX, where braces have a meaning of their own."""

# In the way of a macro's argument, of a ligature, or of OT1, the encoding that a plain document has.
LATEX = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "`": r"\textasciigrave{}", "'": r"\textquotesingle{}"}
    | {'"': r"\textquotesingle\textquotesingle{}", "±": r"$\pm$", "µ": r"$\mu$", "–": r"\textendash{}"}
)


def to_markdown(table: polars.DataFrame, timings: polars.DataFrame, config: dict[str, Any]) -> str:
    """The table of final regret in Markdown, as GitHub reads it.

    Args:
        table, timings, config: of a finished sweep, as `read_results` returns them.
    """
    return _rendered("table.md", table, timings, config)


def to_latex(table: polars.DataFrame, timings: polars.DataFrame, config: dict[str, Any]) -> str:
    """The table of final regret as a LaTeX float, for a document with the package booktabs; notes are below the table.

    Args:
        table, timings, config: of a finished sweep, as `read_results` returns them.
    """
    return _rendered("table.tex", table, timings, config, **TEX) + "\n"


def _rendered(name: str, table: polars.DataFrame, timings: polars.DataFrame, config: dict[str, Any], **marks: Any) -> str:
    without = without_regret(table)
    notes = (words.what_is_unknown(without), words.what_is_tested(config), words.what_is_told(timings, config))
    pages = templates(Path(__file__).parent).overlay(**marks)
    pages.filters |= {"latex": latex_text, "markdown": markdown_text, "one_line": one_line}
    return pages.get_template(name).render(
        config=config,
        words=words,
        without=without,
        cells=partial(_cells, without=without),
        rows=ranked(table, timings, words.columns_of(config)),
        note=" ".join(filter(None, ("Reward and time are per session.", *notes))),
    )


def alike_text(row: dict[str, Any]) -> str:
    """The places of the agents whose results do not differ significantly from this one's.

    Args:
        row: of `ranked`.

    Example:
        >>> [alike_text({"runs": runs, "alike": places}) for runs, places in [(5, [2, 3]), (5, None), (1, None)]]
        ['2, 3', '–', 'cannot tell']
    """
    if row["runs"] == 1:
        return "cannot tell"
    return ", ".join(map(str, row["alike"])) if row["alike"] else "–"


def _cells(row: dict[str, Any], without: list[str]) -> tuple[str, ...]:
    total, *others = words.cells_of(row, without)
    return (str(row["place"]), row["agent"], total, alike_text(row), *others)


def latex_text(text: str) -> str:
    """A text with the special characters of LaTeX escaped, in one line."""
    return re.sub("-(?=-)", "-{}", one_line(text).translate(LATEX))
