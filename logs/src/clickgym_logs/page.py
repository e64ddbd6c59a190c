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

import numpy as np
from matplotlib.figure import Figure

from clickgym.core.checks import check_path
from clickgym.core.files import make_folder, write_whole
from clickgym.core.formats import finite

from .decide import UNITS, Decision
from .measured import Measured
from .names import csv_line

MOST_ROWS = 6
"""Lists of the table of a query; ``decisions.json`` has all."""
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 1.5rem auto;
  padding: 0 1rem}}
h1 {{font-size: 1.1rem; margin: 0; color: #555}}
.verdict {{font-size: 1.25rem; font-weight: 600; margin: .5rem 0 1rem}}
.wide {{overflow-x: auto}}
table {{border-collapse: collapse; font-variant-numeric: tabular-nums}}
th, td {{text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid #ddd;
  vertical-align: top}}
th, .label, .number {{white-space: nowrap}}
.label {{display: inline-block; max-width: 100%; overflow-x: auto; vertical-align: bottom}}
td .label {{max-width: none}}
.list {{min-width: 9rem}}
svg {{display: block; width: 100%; max-width: 40rem; height: auto; margin: 1rem 0}}
ul {{padding-left: 1.2rem}}
footer {{color: #555; font-size: .85rem}}
</style>
{body}
<footer>clickgym {version}. Lists are compared within blocks of time; the intervals of all lists of
a query hold at once.</footer>
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
    """
    folder = check_path("folder", folder)
    make_folder(folder)
    body = _query(decisions[0]) if len(decisions) == 1 else _table_of_queries(decisions)
    title = decisions[0].query if len(decisions) == 1 else f"{len(decisions)} queries"
    page = PAGE.format(title=html.escape(title), body=body, version=version("clickgym"))
    facts = [
        {"sentence": decision.sentence, "verdict": decision.verdict}
        | {"recommended": decision.recommended, "cautions": decision.cautions}
        | asdict(decision)
        for decision in decisions
    ]
    files = [folder / "decisions.html", folder / "decisions.json"]
    write_whole(files[0], page)
    write_whole(files[1], json.dumps(finite(facts), indent=1, ensure_ascii=False) + "\n")
    return files


def figures(decision: Decision, entry: Measured) -> list[str]:
    """The verdict on a measured list, its gain, the interval and the p-value, as texts."""
    if entry.reason:
        return [f"cannot tell: {entry.reason}", "", "", ""]
    low, high = entry.interval
    verdict = "better" if entry.is_better(decision.level) else "not proved better"
    if withheld := entry.withheld(decision.level):
        verdict += f": {withheld}"
    gain = f"{entry.difference:+.4f} of {entry.base:.4f}"
    return [verdict, gain, f"{low:+.4f} to {high:+.4f}", f"{entry.p_value:.2g}"]


def not_shown(decision: Decision) -> str:
    """How many measured lists the table leaves out; empty for none."""
    more = len(decision.measured) - MOST_ROWS
    if more <= 0:
        return ""
    return f"{more:,} more lists are in decisions.json, which clickgym decide --out writes."


def proposal_sentence(decision: Decision) -> str:
    """What a click model proposes; empty where it proposes nothing."""
    proposal = decision.proposal
    if proposal is None:
        return ""
    return (
        f"The click model {proposal.model} expects {proposal.gain:+.4f} of "
        f"{csv_line(proposal.labels)}. This is a proposal, no promise: an A/B test of "
        f"{proposal.sessions:,} sessions would settle it."
    )


def _query(decision: Decision) -> str:
    sessions = f"{decision.n_production:,}"
    today = _list(decision.production), "in production", sessions, "", "", ""
    rows: list[tuple[str, ...]] = [today]
    for entry in decision.measured[:MOST_ROWS]:
        words = [html.escape(text) for text in figures(decision, entry)]
        rows.append((_list(entry.labels), words[0], f"{entry.sessions:,}", *words[1:]))
    heads = ("list", "verdict", "sessions", "gain", "interval", "p")
    notes = [text for text in (not_shown(decision), proposal_sentence(decision)) if text]
    labels = {label for entry in decision.measured for label in entry.labels}
    labels |= {*decision.production, *(decision.proposal.labels if decision.proposal else ())}
    return "\n".join(
        [
            f"<h1>{html.escape(decision.query)}: {decision.n_sessions:,} sessions</h1>",
            f'<p class="verdict">{_unbroken(decision.sentence, labels)}</p>',
            _table(heads, rows),
            _picture(decision),
            "<ul>",
            *(f"<li>{_unbroken(text, labels)}</li>" for text in (*notes, *decision.cautions)),
            "</ul>",
        ]
    )


def _table_of_queries(decisions: Sequence[Decision]) -> str:
    rows = []
    for decision in decisions:
        verdict = ": ".join(filter(None, (decision.verdict, decision.reason)))
        gain = f"{decision.best.difference:+.4f}" if decision.best else ""
        numbers = f"{decision.n_sessions:,}", gain
        shown = _list(decision.recommended or decision.production)
        rows.append((shown, html.escape(verdict), *numbers, html.escape(decision.query)))
    heads = ("list to show, or in production", "verdict", "sessions", "gain", "query")
    better = sum(decision.verdict == "better" for decision in decisions)
    sentence = f"{better} of {len(decisions)} queries have a list that is proved better."
    return f'<p class="verdict">{sentence}</p>\n{_table(heads, rows)}'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table: lists, verdicts, and what is not broken."""
    lines = ["".join(f"<th>{head}</th>" for head in heads)]
    for shown, *cells in rows:
        others = "".join(f'<td class="number">{cell}</td>' for cell in cells[1:])
        lines.append(f'<td class="list">{shown}</td><td>{cells[0]}</td>{others}')
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f'<div class="wide"><table>\n{body}\n</table></div>'


def _list(labels: Sequence[str]) -> str:
    quoted = [csv_line([label]) for label in labels]
    texts = [*(f"{label}," for label in quoted[:-1]), quoted[-1]]
    return " ".join(f'<span class="label">{html.escape(text)}</span>' for text in texts)


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
    """What lists earned by block of time, as SVG."""
    figure = Figure(figsize=(4.2, 2.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(decision.by_block[0], "o-", color="black", markersize=3, label="in production")
    for number, means in enumerate(decision.by_block[1:], 1):
        axes.plot(means, "o-", markersize=3, linewidth=1, label=f"list {number}")
    axes.set_xlabel("block of time (a twentieth of the sessions)", fontsize=8)
    axes.set_ylabel(UNITS[decision.reward], fontsize=8)
    axes.set_xticks(np.arange(0, 20, 3), [str(block + 1) for block in range(0, 20, 3)])
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(fontsize=8, frameon=False, ncols=4, loc="outside upper left")
    picture = io.StringIO()
    figure.savefig(picture, format="svg", metadata={"Date": None, "Creator": None})
    svg = picture.getvalue()
    svg = svg[svg.index("<svg") :]
    return svg.replace("<svg", '<svg role="img" aria-label="rewards by block of time"', 1)
