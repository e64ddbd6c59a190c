"""Functions that extract code blocks and commands from the documentation's pages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def page(name: str) -> str:
    """Return the text of a page, given its path in the repository without ``.md``."""
    return (ROOT / f"{name}.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """Return a page's code blocks in a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command after ``clickgym``, without a redirection to a file."""
    for shell in blocks(text, "sh"):
        for command in re.findall(r"^clickgym ((?:.*\\\n)*.*)", shell, re.MULTILINE):
            yield shlex.split(command.replace("\\\n", " ").partition(" > ")[0], comments=True)


def squeezed(text: str) -> list[str]:
    """Return the non-empty lines of an output, with single spaces, because its columns may be wider
    than those on the page.
    """
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
