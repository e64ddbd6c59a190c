"""The table of a finished sweep for a text or a paper: Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import polars

from ...core.formats import duration, markdown_table, markdown_text, one_line, regret_text
from ..summaries import ranked, without_regret
from .words import (
    columns_of,
    commands_of,
    heading,
    measure_of,
    places_of,
    rows_of,
    title_of,
    unit_of,
    what_is_tested,
    what_is_told,
    what_is_unknown,
)

__all__ = ["alike_text", "to_latex", "to_markdown"]

SIDES = ("---:", ":---", "---:", ":---", "---:", "---:", ":---")
PER_SESSION = "Reward and time are per session."

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
    without = without_regret(table)
    lines = [f"**{markdown_text(heading(config, without))}**", ""]
    for env, title, rows in _tables(table, timings, config):
        escaped = [[markdown_text(cell) for cell in row] for row in rows]
        headings = _headings(measure_of([env], [name for name in without if name == env]))
        lines += [markdown_text(title), "", *markdown_table([headings, *escaped], SIDES), ""]
    lines += [markdown_text(_note(timings, config, without)), ""]
    return "\n".join([*lines, *(f"    {one_line(command)}" for command in commands_of(config)), ""])


def _headings(measure: str) -> tuple[str, ...]:
    return ("", "agent", measure, "tied with", "reward", "time", "engine")


def _note(timings: polars.DataFrame, config: dict[str, Any], without: list[str]) -> str:
    notes = (PER_SESSION, what_is_unknown(without), what_is_tested(config), what_is_told(timings, config))
    return " ".join(filter(None, notes))


def to_latex(table: polars.DataFrame, timings: polars.DataFrame, config: dict[str, Any]) -> str:
    """The table of final regret as a LaTeX float, for a document with the package booktabs; what there is to note stands below.

    Args:
        table, timings, config: of a finished sweep, as `read_results` returns them.
    """
    without = without_regret(table)
    headings = _headings(measure_of(config["envs"], without))
    lines = [
        *(rf"% clickgym {config['clickgym']}: {one_line(command)}" for command in commands_of(config)),
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        rf"\caption{{{_latex(heading(config, without))}.}}",
        r"\label{tab:regret}\medskip",
        r"\centering\footnotesize\setlength{\tabcolsep}{4pt}",
        r"\begin{tabular}{rlrlrrl}",
        r"\toprule",
        f"{' & '.join(headings)} \\\\",
    ]
    for _, title, rows in _tables(table, timings, config):
        lines += [r"\midrule", rf"\multicolumn{{{len(headings)}}}{{l}}{{\textit{{{_latex(title)}}}}} \\"]
        lines += [f"{' & '.join(map(_latex, row))} \\\\" for row in rows]
    note = _latex(_note(timings, config, without))
    notes = rf"\par\medskip\begin{{minipage}}{{\linewidth}}\scriptsize {note}\end{{minipage}}"
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", notes, r"\end{table}", ""])


def alike_text(row: dict[str, Any]) -> str:
    """The places of the agents that chance may have put behind or before one.

    Args:
        row: of `ranked`.

    Example:
        >>> [alike_text({"runs": runs, "alike": places}) for runs, places in [(5, [2, 3]), (5, None), (1, None)]]
        ['2, 3', '–', 'cannot tell']
    """
    if row["runs"] == 1:
        return "cannot tell"
    return ", ".join(map(str, row["alike"])) if row["alike"] else "–"


def _tables(
    table: polars.DataFrame, timings: polars.DataFrame, config: dict[str, Any]
) -> Iterator[tuple[str, str, list[list[str]]]]:
    """The environment of each place, with a heading, and the cells of its table."""
    rows, without = ranked(table, timings, columns_of(config)), without_regret(table)
    for place in places_of(config):
        env = place[0]
        cells = [
            [
                str(row["place"]),
                row["agent"],
                regret_text(-row["regret"] if env in without else row["regret"], row["regret_ci95"]),
                alike_text(row),
                f"{row['reward']:.4f}",
                duration(row["ns_per_session"]),
                row["engine"],
            ]
            for row in rows_of(rows, place).iter_rows(named=True)
        ]
        amount = "total reward" if env in without else f"regret in {unit_of(env)}"
        yield env, f"{title_of(place)} ({amount})", cells


def _latex(text: str) -> str:
    return re.sub("-(?=-)", "-{}", one_line(text).translate(LATEX))
