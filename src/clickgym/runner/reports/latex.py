"""The final table in LaTeX, with the rules of the package booktabs."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from ...core.formats import one_line, regret_text
from .table import (
    OPTIONAL,
    about_knowledge,
    about_pairs,
    about_users,
    measure_of,
    measured,
    over_words,
)

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
    """The final table of some results: a row for each agent, lowest regret first. Its caption says
    what intervals are over, what p is, and what agents got beside clicks.

    Args:
        results: those of a sweep, or a selection.
        reference: as in `Results.table`.
    """
    table, lines = results.table(reference), []
    measure = measure_of(table)
    headings = {
        "median": "median",
        "worst": "worst",
        "difference": f"difference to {escaped(table['reference'][0])}",
        "p": "$p$",
    }
    headings = {name: words for name, words in headings.items() if table[name].count()}
    width = 2 + len(headings)
    for env, rows in groupby(table.iter_rows(named=True), lambda row: row["env"]):
        words = escaped(env)
        lines += [r"\midrule", rf"\multicolumn{{{width}}}{{l}}{{{words}}} \\"]
        for row in rows:
            texts = [regret_text(*measured(row, results.horizon))]
            texts += [OPTIONAL[name][1](row) for name in headings]
            cells = [escaped(row["agent"]), *map(_mathematics, texts)]
            lines.append(rf"{' & '.join(cells)} \\")
    better = {"regret": "lower", "total reward": "higher"}.get(
        measure, "lower regret or higher total reward"
    )
    caption = [
        f"{measure.capitalize()} after {results.horizon:,} sessions: {over_words(table)}; {better} "
        "is better.",
        *["Median and worst are of all runs."] * ("median" in headings),
        *about_pairs(table, ()),
        *about_users(results, table),
        *about_knowledge(results),
    ]
    words = escaped(" ".join(caption)).replace(" ±", r" $\pm$").replace(r" \%", r"\,\%")
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{words}}}",
            r"\label{tab:regret}",
            rf"\begin{{tabular}}{{l{'r' * (width - 1)}}} % \usepackage{{booktabs}}",
            r"\toprule",
            rf"{' & '.join(['agent', measure, *headings.values()])} \\",
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
