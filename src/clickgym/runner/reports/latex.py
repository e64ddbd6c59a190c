"""The final table in LaTeX, with the rules of the package booktabs."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from ...core.formats import one_line
from .table import in_words

if TYPE_CHECKING:
    from ..results import Results


def escaped(text: str) -> str:
    """A text as LaTeX prints it.

    Example:
        >>> print(escaped("mine_2 & 5%"))
        mine\\_2 \\& 5\\%
    """
    words = {"\\": "textbackslash", "~": "textasciitilde", "^": "textasciicircum"}
    words |= {"<": "textless", ">": "textgreater", "|": "textbar"}
    return re.sub(
        r"[\\~^<>|&%$#_{}]",
        lambda found: rf"\{words[found[0]]}{{}}" if found[0] in words else rf"\{found[0]}",
        one_line(text),
    )


def to_latex(results: Results, reference: str | None = None) -> str:
    """The final table of some results as it is printed, without the time: a row for each agent,
    lowest regret first. Its caption has the title and the notes.

    Args:
        results: those of a sweep, or a selection.
        reference: as in `Results.table`.
    """
    words = in_words(results, reference)
    columns = range(1, len(words.headings) - 2)
    lines = []
    for env, rows in groupby(words.rows, lambda row: row[0]):
        lines += [r"\midrule", rf"\multicolumn{{{len(columns)}}}{{l}}{{{escaped(env)}}} \\"]
        for row in rows:
            cells = [escaped(row[1]), *(_mathematics(row[column]) for column in columns[1:])]
            lines.append(rf"{' & '.join(cells)} \\")
    headings = [escaped(words.headings[column]).replace("±", r"$\pm$") for column in columns]
    caption = escaped(f"{words.title}. {' '.join(words.notes)}").replace("±", r"$\pm$")
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{caption}}}",
            r"\label{tab:regret}",
            rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}} % \usepackage{{booktabs}}",
            r"\toprule",
            rf"{' & '.join(headings)} \\",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _mathematics(text: str) -> str:
    """A number with its interval in the mode of mathematics."""
    number = text.replace(",", "{,}").replace("±", r"\pm")
    return "--" if text == "–" else f"${number}$"
