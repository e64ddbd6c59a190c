"""Docstrings as reStructuredText: what they have of Markdown, and their sources, turned before
Sphinx reads them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

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
    """A docstring whose tables are lists of rows, whose sources are items, and whose stars before a
    name are stars.

    Example:
        >>> readable(["Source:", "    A. Author. *Title.*", "        Journal 2020.", "", "End, **given."])
        ['Source:', '    - A. Author. *Title.* Journal 2020.', '', 'End, \\\\*\\\\*given.', '']
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


def _sources(lines: Iterable[str]) -> list[str]:
    """Each source as an item, in one line."""

    def listed(found: re.Match[str]) -> str:
        entries = re.sub(r"\n {8}(?! )", " ", found[0])
        return re.sub(r"^ {4}(?=\S)", "    - ", entries, flags=re.MULTILINE)

    return re.sub(
        r"^Source:\n(?:(?: {4}.*)?\n)*", listed, "\n".join([*lines, ""]), flags=re.MULTILINE
    ).split("\n")[:-1]
