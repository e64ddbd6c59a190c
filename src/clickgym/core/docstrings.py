"""Parse docstrings: their sections, and the names and descriptions under ``Args``."""

from __future__ import annotations

import inspect
import re

__all__ = ["entries", "sections"]


def sections(text: str) -> dict[str, str]:
    """The parts of a docstring by their headings (``Args``, ``Source``, ...); what stands above them under ``""``."""
    parts = re.split(r"^(\w[\w ]*):\n(?=    )", inspect.cleandoc(text), flags=re.MULTILINE)
    pairs = zip(["", *parts[1::2]], parts[::2], strict=True)
    return {name: inspect.cleandoc(part).strip() for name, part in pairs}


def entries(text: str) -> dict[str, str]:
    """The names and descriptions of a docstring's ``Args``."""
    lines = re.findall(r"^([\w*, ]+): (.*(?:\n +.*)*)", text, flags=re.MULTILINE)
    return {name: " ".join(description.split()) for name, description in lines}
