"""Docstrings as reStructuredText: what they have of Markdown, and their sources, turned before
Sphinx reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby


def readable(lines: Sequence[str]) -> list[str]:
    """A docstring whose tables are lists of rows, whose sources are paragraphs, and whose stars
    before a name are stars.

    Example:
        >>> readable(["Source:", "    A. Author, *Title*,", "        2020.", "", "End, **given."])
        ['Source:', '    A. Author, *Title*,', '    2020.', '', 'End, \\\\*\\\\*given.', '']
    """
    return [_plain(line) for line in _sources(_tables(_laws(lines)))]


def _plain(line: str) -> str:
    """Two stars before a name are stars, and a single letter with a full stop does not number a
    list.
    """
    line = re.sub(r"(?<![\\`*])\*\*(?=\w+(?!\w*\*))", r"\\*\\*", line)
    return re.sub(r"(: )([A-Za-z])\.", r"\1\2\\.", line)


def _laws(lines: Sequence[str]) -> Iterator[str]:
    """Formulas as those of Sphinx, and the moves of a user as a list."""
    for line in lines:
        if formula := re.fullmatch(r"( +)\$\$(.+)\$\$", line):
            yield from ["", f"{formula[1]}.. math:: {formula[2]}", ""]
        elif re.fullmatch(r" +\S.* → .+: .+", line):
            yield f"        - {line.strip()}"
        else:
            yield line


def _tables(lines: Iterable[str]) -> Iterator[str]:
    """Tables of Markdown as those of Sphinx."""
    for is_table, group in groupby(
        [*lines, ""], lambda line: re.match(r"\s*\| |\s*\|[-:|]+\|$", line) is not None
    ):
        if not is_table:
            yield from group
            continue
        rows = list(group)
        indent = rows[0][: len(rows[0]) - len(rows[0].lstrip())]
        yield from [f"{indent}.. list-table::", f"{indent}   :header-rows: 1", ""]
        for row in (row for row in rows if not re.fullmatch(r"\s*\|[-:|]+\|", row)):
            for number, cell in enumerate(row.strip().strip("|").split(" | ")):
                code = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", cell.strip())
                yield f"{indent}   {'  ' if number else '* '}- {code}"
        yield ""


def _sources(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a source are one paragraph, beside its heading or below it."""
    indent = None
    for line in lines:
        if line.startswith("Source:"):
            indent = "    " if line == "Source:" else ""
            yield line
        elif indent is not None and line.startswith("    "):
            yield indent + line.lstrip()
        else:
            indent = None
            yield line
