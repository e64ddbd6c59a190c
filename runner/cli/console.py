"""Where the commands print."""

from __future__ import annotations

from rich.console import Console

__all__ = ["bold", "errors", "output"]


def output() -> Console:
    """For what a command was asked for."""
    return _wide(Console())


def errors() -> Console:
    """For what is going on."""
    return _wide(Console(stderr=True))


def _wide(console: Console) -> Console:
    """Without lines broken where there is no terminal, for files and pipes have no width."""
    if not console.is_terminal:
        console.width = 1000
    return console


def bold(word: str) -> str:
    """A word in bold, in the markup of help texts."""
    return f"[bold]{word}[/]"
