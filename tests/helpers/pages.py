"""What pages show: their blocks of code, and their commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def page(name: str) -> str:
    """The text of a page by its path in the repository, without ``.md``."""
    return (ROOT / f"{name}.md").read_text(encoding="utf-8")


def blocks(text: str, language: str) -> list[str]:
    """The blocks of code of a language."""
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command after ``clickgym``, and before the file to which it prints."""
    for shell in blocks(text, "sh"):
        for command in re.findall(r"^clickgym ((?:.*\\\n)*.*)", shell, re.MULTILINE):
            yield shlex.split(command.replace("\\\n", " ").partition(" > ")[0], comments=True)


def squeezed(text: str) -> list[str]:
    """The lines that say something, with single spaces: columns may be wider."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
