"""Formats of numbers, times, regret with its interval, tables in Markdown, and values in JSON."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that nobody sees and that a terminal obeys, or that turn the direction of what
follows; and halves of characters, which cannot be written.
"""


def regret_text(mean: float, half_width: float | None) -> str:
    """A mean and half of its interval, both with the digits that the interval makes worth reading.

    Example:
        >>> regret_text(1234.567, 45.6), regret_text(3.14159, 0.021), regret_text(17.25, None)
        ('1,235 ± 46', '3.142 ± 0.021', '17.2')
        >>> regret_text(24043.4, 0.0), regret_text(0.4, 0.0)
        ('24,043 ± 0', '0.4 ± 0.0')
    """
    if half_width is None:
        return f"{mean:z,.1f}"
    digits = int(half_width == 0 and 0.05 <= mean < 10)
    while half_width and half_width * 10**digits < 10 and digits < 3:
        digits += 1
    return f"{mean:z,.{digits}f} ± {half_width:,.{digits}f}"


def duration(nanoseconds: float) -> str:
    """A time per session.

    Example:
        >>> duration(87.4), duration(71_300)
        ('87 ns', '71.3 µs')
    """
    return f"{nanoseconds:.0f} ns" if nanoseconds < 1000 else f"{nanoseconds / 1000:,.1f} µs"


def visible(text: str, keep: str = "") -> str:
    """The text as a terminal may be sent it: control characters, and those that turn the direction
    of text, are escaped.

    Args:
        text: what may hold names from a user's files.
        keep: characters that stay, such as the line ends of the package's own words.

    Example:
        >>> print(visible("red \\x1b[31m shoes\\u202e"))
        red \\x1b[31m shoes\\u202e
    """
    return HIDDEN.sub(
        lambda one: one[0] if one[0] in keep else one[0].encode("unicode_escape").decode(), text
    )


def one_line(text: str) -> str:
    """The text as `visible` shows it, without line ends, with single spaces.

    Example:
        >>> one_line("two\\nlines")
        'two lines'
    """
    return " ".join(visible(text, keep="\t\n\v\f\r").split())


def folded(parts: Sequence[str], width: int, *, between: str = "  ", indent: int = 2) -> list[str]:
    """The parts in lines of at most a width, none of them broken: one that is longer has a line of
    its own.

    Args:
        parts: words or fields.
        width: of the terminal.
        between: what stands between two of them.
        indent: of all lines but the first.

    Example:
        >>> folded(["PBMRank-v0", "regret 525 ± 57", "0.1 s"], 30)
        ['PBMRank-v0  regret 525 ± 57', '  0.1 s']
    """
    lines = [parts[0]] if parts else []
    for part in parts[1:]:
        if len(lines[-1]) + len(between) + len(part) <= width:
            lines[-1] += between + part
        else:
            lines.append(" " * indent + part)
    return lines


def finite(value: Any) -> Any:
    """A value as JSON can hold it: what is no finite number becomes None.

    Example:
        >>> finite({"score": float("-inf"), "interval": (0.5, float("nan"))})
        {'score': None, 'interval': [0.5, None]}
    """
    if isinstance(value, Mapping):
        return {str(key): finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def to_csv(frame: Any) -> str:
    """A table of polars in CSV, for people: what a spreadsheet would compute begins with an
    apostrophe, which it hides.

    Args:
        frame: the table; its texts are written as `visible` shows them.

    Example:
        >>> import polars
        >>> to_csv(polars.DataFrame({"query": ["=1+1", "-5", "shoes"]})).splitlines()
        ['query', "'=1+1", '-5', 'shoes']
    """
    texts = [name for name, kind in frame.schema.items() if str(kind) == "String"]
    return str(
        frame.with_columns(
            frame[name].map_elements(_cell, frame.schema[name]) for name in texts
        ).write_csv()
    )


def _cell(text: str) -> str:
    text = visible(text)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def markdown_text(text: str) -> str:
    """What Markdown shows as this text, in one line: no HTML, no table, no list, no link.

    Example:
        >>> print(markdown_text("a|b <c>"), markdown_text("- d"), markdown_text("1. e"))
        a\\|b \\<c\\> \\- d 1\\. e
    """
    escaped = re.sub(r"([\\`*_\[\]<>|~&#$@]|:(?=//)|(?<=www)\.)", r"\\\1", one_line(text))
    return re.sub(r"^(\d*)(?=[-+.)](?:\s|$)|--)", r"\1\\", escaped)


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown.

    Args:
        rows: the first is the header; what Markdown would read as its own must be escaped, as by
            `markdown_text`.

    Example:
        >>> markdown_table([["agent", "regret"], ["Random", "17"]])
        ['| agent | regret |', '| --- | --- |', '| Random | 17 |']
    """
    return [f"| {' | '.join(line)} |" for line in (rows[0], ["---"] * len(rows[0]), *rows[1:])]
