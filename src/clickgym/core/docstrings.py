"""Parse docstrings: their sections, and the names and descriptions under ``Args``."""

from __future__ import annotations

import inspect
import re
import textwrap


def sections(text: str) -> dict[str, str]:
    """The indented parts of a docstring by their headings (``Args``, ``Source``, ...); what stands
    above them under ``""``.

    Example:
        >>> sections('''One line.
        ...
        ...     Idea:
        ...         It learns.
        ...
        ...     More.''')
        {'': 'One line.', 'Idea': 'It learns.'}
    """
    text = inspect.cleandoc(text) + "\n"
    above = re.split(r"^\w[\w ]*:\n(?=    )", text, maxsplit=1, flags=re.MULTILINE)[0]
    parts = re.findall(r"^(\w[\w ]*):\n(?=    )((?:(?:    .*)?\n)*)", text, flags=re.MULTILINE)
    return {"": above.strip()} | {name: textwrap.dedent(part).strip() for name, part in parts}


def entries(text: str) -> dict[str, str]:
    """The names and descriptions of a docstring's ``Args``."""
    lines = re.findall(r"^([\w*, ]+): (.*(?:\n +.*)*)", text, flags=re.MULTILINE)
    return {name: " ".join(description.split()) for name, description in lines}
