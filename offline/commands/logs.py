"""Options that say how a command reads a click log."""

from __future__ import annotations

from typing import Annotated

import typer

from ..readers import LOG_FORMATS

__all__ = ["LOG_FORMAT", "Columns", "Duplicates", "MaxMemory", "columns_of"]

LOG_FORMAT = f"auto|{'|'.join(LOG_FORMATS)}"
"""The values of ``--format``, as help texts show them."""

Columns = Annotated[str, typer.Option(
    metavar="NAME=COLUMN,...", show_default="the standard names",
    help="Names of the columns of your tidy log, as in [bold]item=doc_id,clicked=is_click[/].",
)]  # fmt: skip
Duplicates = Annotated[str, typer.Option(
    metavar="refuse|first", help="If rows have the same session and position: refuse the log, or keep the first of them.",
)]  # fmt: skip
MaxMemory = Annotated[str, typer.Option(
    metavar="SIZE", help="Maximum memory for the log: 5 bytes for each session and position, and the labels.",
)]  # fmt: skip


def columns_of(words: str) -> dict[str, str]:
    """What ``item=doc_id,clicked=is_click`` says."""
    parts = [part.partition("=") for part in words.split(",") if part]
    if not all(name and column for name, _, column in parts) or len({name for name, _, _ in parts}) < len(parts):
        raise ValueError(f"--columns is {words!r}; expected NAME=COLUMN,... with each name once, as in item=doc_id")
    return {name: column for name, _, column in parts}
