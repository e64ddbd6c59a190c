"""Functions that format numbers, times, regret with its interval, and Markdown tables as text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence


def regret_text(mean: float, half_width: float | None) -> str:
    """Format a mean and the half-width of its interval as text, with as many digits as the width
    justifies.

    Example:
        >>> regret_text(1234.567, 45.6), regret_text(3.14159, 0.021), regret_text(17.25, None)
        ('1,235 ± 46', '3.142 ± 0.021', '17.2')
        >>> regret_text(24043.4, 0.0), regret_text(-0.4, 0.0), regret_text(3.14159, 0.0021)
        ('24,043 ± 0', '-0.4 ± 0.0', '3.142 ± 0.002')
        >>> regret_text(0.0891, 0.00042)
        '0.0891 ± 0.0004'
    """
    if half_width is None:
        return f"{mean:z,.1f}"
    digits = int(half_width == 0 and 0.05 <= abs(mean) < 10)
    while half_width and half_width * 10**digits < 10 and digits < 3:
        digits += 1
    if 1e-6 < half_width < 1e-3:  # one digit, because less is a rounding error
        digits = math.ceil(-math.log10(half_width))
    return f"{mean:z,.{digits}f} ± {half_width:,.{digits}f}"


def duration_text(nanoseconds: float) -> str:
    """Format a time per session, given in nanoseconds, as text.

    Example:
        >>> duration_text(87.4), duration_text(71_300)
        ('87 ns', '71.3 µs')
    """
    return f"{nanoseconds:.0f} ns" if nanoseconds < 1000 else f"{nanoseconds / 1000:,.1f} µs"


def counted(number: int | str, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1.

    Example:
        >>> counted(1, "session"), counted(5000, "session"), counted("0 to 1", "time")
        ('1 session', '5,000 sessions', '0 to 1 times')
    """
    number = number if isinstance(number, str) else f"{number:,}"
    return f"{number} {noun}" if number == "1" else f"{number} {noun}s"


def one_line(text: str) -> str:
    """Return a text on one line, with single spaces between its words.

    Example:
        >>> one_line("two\\nlines")
        'two lines'
    """
    return " ".join(text.split())


def shorten(text: str, width: int = 60) -> str:
    """Shorten a text to at most ``width`` characters, by replacing its middle with an ellipsis.

    Example:
        >>> shorten("PBMRank-v0:attraction=[0.5,0.4,0.3],reward=any_click", 30)
        'PBMRank-v0:attr…ward=any_click'
    """
    if len(text) <= width:
        return text
    return f"{text[: width // 2]}…{text[len(text) - (width - 1) // 2 :]}"


def markdown_text(text: str) -> str:
    """Escape a text for Markdown, on one line, so that nothing in the text is read as HTML, a
    table, a list or a link.

    Example:
        >>> print(markdown_text("a|b <c>"), markdown_text("- d"), markdown_text("1. e"))
        a\\|b \\<c\\> \\- d 1\\. e
    """
    escaped = re.sub(r"([\\`*_\[\]<>|~&#$@]|:(?=//)|(?<=www)\.)", r"\\\1", one_line(text))
    return re.sub(r"^(\d*)(?=[-+.)](?:\s|$)|--)", r"\1\\", escaped)


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table.

    Args:
        rows: the rows of cells, the header first. The cells must already be escaped, for example by
            `markdown_text`.

    Example:
        >>> markdown_table([["agent", "regret"], ["Random", "17"]])
        ['| agent | regret |', '| --- | --- |', '| Random | 17 |']
    """
    return [f"| {' | '.join(line)} |" for line in (rows[0], ["---"] * len(rows[0]), *rows[1:])]
