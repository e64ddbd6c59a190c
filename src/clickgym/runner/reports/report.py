"""Files of a report: tables, figure and page beside the results of a sweep. The page is one file in
HTML, without scripts, that loads nothing.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import polars

from ...core.files import parquet, reading, write_whole
from ..config import Config
from .figures import figure_bytes, save_figure
from .table import in_words, instance_of_each

if TYPE_CHECKING:
    from ..results import Results

CONFIG, TABLE, SUMMARY = "config.json", "results.parquet", "summary.csv"
FIGURE, PAGE = "regret", "report.html"


def update_files(out: Path, results: Results) -> None:
    """Write the files of all finished runs of a folder, unless they are there."""
    if not _are_written(out, results):
        write_whole(out / CONFIG, json.dumps(results.config, indent=1) + "\n")
        write_files(out, results)


def _are_written(out: Path, results: Results) -> bool:
    with suppress(OSError, ValueError), reading(out / TABLE, "is damaged", "it is written anew"):
        files = (CONFIG, SUMMARY, f"{FIGURE}.png", f"{FIGURE}.svg")
        are_there = all((out / name).is_file() for name in files)
        return are_there and polars.read_parquet(out / TABLE).equals(results.rows)
    return False


def write_files(
    out: Path, results: Results, *, html: bool = False, reference: str | None = None
) -> list[str]:
    """Write the tables and the figure of some results into a folder, which must exist.

    Args:
        out: the folder.
        results: those of a sweep, or a selection.
        html: write ``report.html``, too.
        reference: as in `Results.table`.

    Returns:
        The names of the files.
    """
    write_whole(out / SUMMARY, results.table(reference).write_csv())
    config = results.configuration
    figures = save_figure(results.plot(), out / FIGURE, config.origin if config else None)
    if html:
        write_whole(out / PAGE, to_html(results, reference))
    # The last, so that a stopped process writes all again.
    write_whole(out / TABLE, parquet(results.rows))
    return [*(file.name for file in figures), SUMMARY, TABLE, *[PAGE] * html]


# ---------------------------------------------------------------------------------------- the page


STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1f24; background: #ffffff; }
h1 { font-size: 1.5rem; }
h2 { font-size: 1.2rem; }
img { max-width: 100%; }
@media (max-width: 46rem) { img { max-width: none; width: 56rem; } }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f5f7f9; padding: 0.75rem; }
div { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0.75rem 0; }
td:nth-child(n+3) { white-space: nowrap; }
th, td { padding: 0.25rem 0.5rem; border-bottom: 1px solid #d5dbe1; text-align: left; }
summary { cursor: pointer; color: #0a58a6; }
"""


def to_html(results: Results, reference: str | None = None) -> str:
    """The page of the results in a folder; `reference` as in `Results.table`."""
    words, config = in_words(results, reference), results.configuration
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{escape(words.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(words.title)}</h1>
{_figure(results, "Cumulative regret; the last values are in the table")}
{_table(words.headings, words.rows)}
{"".join(f"<p>{escape(note)}</p>" for note in words.notes)}
{_instances(results)}
{"" if config is None else _repetition(config)}</body>
</html>
"""


def _figure(results: Results, alt: str, *, by_instance: bool = False) -> str:
    figure = b64encode(figure_bytes(results.plot(by_instance=by_instance), "svg")).decode()
    return f'<div><img src="data:image/svg+xml;base64,{figure}" alt="{alt}"></div>'


def _instances(results: Results) -> str:
    """A panel for each instance, where the first figure has the mean of several."""
    if instance_of_each(results):
        return ""
    figure = _figure(results, "Cumulative regret on each instance", by_instance=True)
    return f"<h2>Each instance</h2>\n{figure}"


def _repetition(config: Config) -> str:
    """How to repeat a sweep, as the end of a page."""
    return f"""<h2>To repeat it</h2>
<p>clickgym {escape(config.setting.clickgym)} makes the same numbers (regret to twelve
digits, and to the last bit on processors of one kind) with</p>
<pre>{escape(config.command)}</pre>
<details><summary>The whole configuration</summary>
<pre>{escape(json.dumps(config.to_json(), indent=1, ensure_ascii=False))}</pre></details>
"""


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in headings)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    return "<div><table>" + "\n".join(lines) + "</table></div>"
