"""The page of a decision: a sentence, a table, a picture and cautions; and the page of many
queries, a table.
"""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from os import PathLike
from pathlib import Path

from matplotlib.figure import Figure

from clickgym.core.checks import check_kind, check_path, entries
from clickgym.core.files import make_folder, write_whole
from clickgym.core.formats import finite

from .decide import Decision
from .decision_table import WORDS, Cell, View, view_of_queries, view_of_query
from .log import BLOCKS, REWARDS
from .names import csv_line

MARKS = {"●": ("o", "black"), "■": ("s", "#1f6fc5"), "▲": ("^", "#d95f02"), "◆": ("D", "#2a8a3e")}
"""The marks of lists in table and picture, with the marker of matplotlib and the colour."""

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{font: 16px/1.5 system-ui, sans-serif; max-width: {width}; margin: 1.5rem auto;
  padding: 0 1rem}}
h1 {{font-size: 1.1rem; margin: 0; color: #555}}
p.verdict {{font-size: 1.25rem; font-weight: 600; margin: .5rem 0 1rem; text-wrap: balance}}
.wide {{overflow-x: auto}}
table {{border-collapse: collapse; font-variant-numeric: tabular-nums}}
th, td {{text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #ddd;
  vertical-align: top}}
th, .label, .number {{white-space: nowrap}}
.number {{text-align: right}}
td.query, td.step {{font-weight: 600}}
.query, .step {{white-space: nowrap}}
.label {{display: inline-block; max-width: 100%; overflow-x: auto; vertical-align: bottom}}
td .label {{max-width: none}}
td:has(.mark) {{padding-left: 1.4rem}}
.mark {{display: inline-block; width: 1.4rem; margin-left: -1.4rem}}
.list {{min-width: 13rem}}
.verdict {{min-width: 8rem}}
svg {{display: block; width: 100%; max-width: 40rem; height: auto; margin: 1rem 0}}
ul {{padding-left: 1.2rem}}
footer {{color: #555; font-size: .85rem}}
@media (max-width: 40rem) {{
  tr:first-child {{display: none}}
  tr {{display: block; padding: .6rem 0; border-bottom: 1px solid #ddd}}
  td, td.number {{display: block; border: 0; padding: 0; text-align: left; white-space: normal}}
  td:empty {{display: none}}
  td[data-head]::before {{content: attr(data-head) ": "; color: #555}}
}}
</style>
{body}
<footer>clickgym {version}. What is compared was shown at the same times; the intervals of all
lists of a query hold at once.</footer>
</html>
"""


def write_decisions(decisions: Sequence[Decision], folder: str | PathLike[str]) -> list[Path]:
    """Write ``decisions.html`` and, with all numbers, ``decisions.json``.

    Args:
        decisions: of one query, whose page has a sentence, a table, a picture and cautions; or of
            several, whose page is a table.
        folder: is made if it is missing.

    Returns:
        The two files.

    Raises:
        TypeError, ValueError: there are no decisions, or something else is among them.
        FileError: the files cannot be written.
    """
    folder = check_path("folder", folder)
    decisions = entries("decisions", decisions, "a list of decisions")
    if not decisions:
        raise ValueError("decisions is empty; expected at least one")
    for place, decision in enumerate(decisions):
        check_kind(f"decisions[{place}]", decision, Decision, "a Decision, as decide returns it")
    make_folder(folder)
    if len(decisions) == 1:
        title, width, body = decisions[0].query or "All queries", "60rem", _query(decisions[0])
    else:
        title, width, body = "What to do next", "100rem", _queries(decisions)
    words = {"title": html.escape(title), "version": version("clickgym"), "width": width}
    page = PAGE.format(body="\n".join(body), **words)
    facts = [
        {"sentence": decision.sentence, "verdict": decision.verdict}
        | {"next_step": decision.next_step, "recommended": decision.recommended}
        | {"gain_a_day": decision.gain_a_day, "test_days": decision.test_days}
        | {"cautions": decision.cautions}
        | {"reason": decision.reason, **asdict(decision)}
        for decision in decisions
    ]
    files = [folder / "decisions.html", folder / "decisions.json"]
    write_whole(files[0], page)
    write_whole(files[1], json.dumps(finite(facts), indent=1, ensure_ascii=False) + "\n")
    return files


def _query(decision: Decision) -> list[str]:
    labels = {label for entry in decision.measured for label in entry.labels}
    labels |= set(decision.production)
    view = view_of_query(decision)
    return [
        f"<h1>{html.escape(view.title)}</h1>",
        f'<p class="verdict">{_unbroken(view.sentence, labels)}</p>',
        _table(view, [*MARKS][: len(decision.by_block)]),
        _picture(decision),
        _bullets(view.notes, labels),
    ]


def _queries(decisions: Sequence[Decision]) -> list[str]:
    view = view_of_queries(decisions)
    labels = {decision.query for decision in decisions if decision.query}
    sentence = f'<p class="verdict">{_unbroken(view.sentence, labels)}</p>'
    return [sentence, _table(view), _bullets(view.notes, set())]


def _table(view: View, marks: Sequence[str] = ()) -> str:
    """A table: names, lists, verdicts, and numbers, which are not broken. The first lists have the
    marks of their lines in the picture.
    """
    kinds = {head: head.split(" ")[-1] if head in WORDS else "number" for head in view.heads}
    lines = ["".join(f'<th class="{kinds[head]}">{head}</th>' for head in view.heads)]
    for number, row in enumerate(view.rows):
        mark = _mark(marks[number] if number < len(marks) else None)
        lines.append(
            "".join(
                f'<td class="{kinds[head]}" data-head="{head}">'
                f"{_cell(cell) if head else mark + _cell(cell)}</td>"
                for head, cell in zip(view.heads, row, strict=True)
            )
        )
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table>\n{body}\n</table></div>'


def _cell(cell: Cell) -> str:
    """A text, or the labels of a list, which are not broken."""
    if isinstance(cell, str):
        return html.escape(cell)
    quoted = [csv_line([label]) for label in cell]
    texts = [f"{label}," for label in quoted[:-1]] + quoted[-1:]
    return " ".join(f'<span class="label">{html.escape(text)}</span>' for text in texts)


def _bullets(sentences: Sequence[str], labels: set[str]) -> str:
    return "\n".join(
        ["<ul>", *(f"<li>{_unbroken(text, labels)}</li>" for text in sentences), "</ul>"]
    )


def _mark(mark: str | None) -> str:
    if mark is None:
        return ""
    return f'<span class="mark" style="color: {MARKS[mark][1]}">{mark}</span>'


def _unbroken(sentence: str, labels: set[str]) -> str:
    """A sentence in which labels of items are not broken."""
    escaped = sorted(map(html.escape, labels), key=len, reverse=True)
    pattern = "|".join(re.escape(label) for label in escaped if re.search(r"\W", label))
    words = html.escape(sentence)
    if not pattern:
        return words
    return re.sub(
        f"(?:&quot;)?(?:{pattern})(?:&quot;)?[,:.]?", r'<span class="label">\g<0></span>', words
    )


def _picture(decision: Decision) -> str:
    """What lists earned by block of time, with its dates, as SVG."""
    figure = Figure(figsize=(4.2, 2.6), layout="constrained")
    axes = figure.subplots()
    for means, (marker, colour) in zip(decision.by_block, MARKS.values(), strict=False):
        axes.plot(means, marker=marker, color=colour, markersize=3.5, linewidth=1)
    axes.set_ylabel(REWARDS[decision.reward], fontsize=8)
    ticks = range(0, BLOCKS, 4)
    names = [str(block + 1) for block in ticks]
    if decision.days is None:
        axes.set_xlabel("block of time (a twentieth of the sessions)", fontsize=8)
    else:
        length = len("2026-03-01") if decision.days > len(names) else None
        names = [decision.moments[block][:length].replace(" ", "\n") for block in ticks]
    axes.set_xticks(ticks, names)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
    picture = io.StringIO()
    figure.savefig(picture, format="svg", metadata={"Date": None, "Creator": None})
    svg = picture.getvalue()
    svg = svg[svg.index("<svg") :]
    return svg.replace("<svg", '<svg role="img" aria-label="rewards by block of time"', 1)
