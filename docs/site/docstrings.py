"""Docstrings as reStructuredText: what they have of Markdown, and their sources, turned before Sphinx reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

__all__ = ["readable", "without"]


def without(lines: Sequence[str], headings: Sequence[str]) -> list[str]:
    """A docstring without some of its sections, which have places of their own on a page.

    Example:
        >>> without(["One line.", "", "Idea:", "    It learns.", "", "Args:", "    n: how many."], ["Idea"])
        ['One line.', '', 'Args:', '    n: how many.']
    """
    kept, left_out = [], False
    for line in lines:
        if line and not line.startswith(" "):
            left_out = line.startswith(tuple(f"{heading}:" for heading in headings))
        kept += [] if left_out else [line]
    return kept


def readable(lines: Sequence[str]) -> list[str]:
    """A docstring whose tables are lists of rows, whose sources are items, and whose stars before a name are stars.

    Example:
        >>> readable(["Source:", "    A. Author. *Title.*", "        Journal 2020.", "", "End, **given."])
        ['Source:', '    - A. Author. *Title.* Journal 2020.', '', 'End, \\\\*\\\\*given.', '']
    """
    return [_plain(line) for line in _sources(_tables(_laws(lines)))]


def _plain(line: str) -> str:
    """Two stars before a name are stars, and a single letter with a full stop does not number a list."""
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
    rows: list[str] = []
    for line in [*lines, ""]:
        if line.lstrip().startswith("| ") or re.match(r"\s*\|[-:|]+\|$", line):
            rows.append(line)
            continue
        if rows:
            indent = rows[0][: len(rows[0]) - len(rows[0].lstrip())]
            yield from [f"{indent}.. list-table::", f"{indent}   :header-rows: 1", ""]
            for row in rows:
                cells = [cell.strip() for cell in row.strip().strip("|").split(" | ")]
                if not re.fullmatch(r"\s*\|[-:|]+\|", row):
                    for number, cell in enumerate(cells):
                        yield f"{indent}   {'  ' if number else '* '}- {_code(cell)}"
            yield ""
            rows = []
        yield line


def _code(cell: str) -> str:
    return re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", cell)


def _sources(lines: Iterator[str]) -> Iterator[str]:
    """Each source as an item, in one line."""
    within, item = False, ""
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if within and line.strip() and indent == 8:
            item += f" {line.strip()}"
            continue
        if item:
            yield item
            item = ""
        if within and line.strip() and indent == 4:
            item = f"    - {line.strip()}"
            continue
        within = line == "Source:" or (within and not line.strip())
        yield line
    if item:
        yield item
