"""Names in a line of CSV: as lists are printed, and as options take them."""

from __future__ import annotations

import re
from collections.abc import Iterable

NEEDS_QUOTES = re.compile(r'[\s,"]|^$')
FIELD = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^,]*?))\s*(?:,|$)')


def csv_line(names: Iterable[str]) -> str:
    """Names in a line that `csv_fields` reads back; those with blanks, commas or quotes are quoted.

    Example:
        >>> csv_line(["a", "red shoes", "1,5", '5" pipe'])
        'a, "red shoes", "1,5", "5"" pipe"'
    """
    return ", ".join(
        '"' + name.replace('"', '""') + '"' if NEEDS_QUOTES.search(name) else name for name in names
    )


def csv_fields(line: str) -> list[str]:
    """The names in a line of CSV, without the blanks around them; quoted blanks stay.

    Example:
        >>> csv_fields('a,red shoes , "1,5"," b"')
        ['a', 'red shoes', '1,5', ' b']
    """
    return [
        plain if quoted is None else quoted.replace('""', '"')
        for quoted, plain in (field.groups() for field in FIELD.finditer(line + ","))
    ][:-1]
