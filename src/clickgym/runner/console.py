"""Consoles of the commands: standard output, standard error, warnings and interrupts; and options
that several commands have.
"""

from __future__ import annotations

import io
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console

from ..core.compiling import COMPILING, Compiling
from ..core.formats import one_line

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""A change of colour, as in the warnings of Gymnasium."""
USAGE_ERROR: Any = typer.BadParameter.__base__

Seed = Annotated[
    int,
    typer.Option(
        rich_help_panel="Results", metavar="N", help="The same seed gives the same numbers."
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        rich_help_panel="Speed",
        metavar="N",
        help="Worker processes; -1 for one per CPU. Results stay the same.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        rich_help_panel="Speed",
        help="Run on the workers of a Dask cluster: the "
        "address of its scheduler, tcp://host:8786. Results stay the same.",
    ),
]


def output() -> Console:
    """Return the console for results: standard output."""
    return _wide(Console())


def errors() -> Console:
    """Return the console of standard error: progress, warnings and errors."""
    return _wide(Console(stderr=True))


def _wide(console: Console) -> Console:
    """Do not break lines in files and pipes, which have no width, unless ``COLUMNS`` sets one; 0
    sets none.
    """
    if not console.width or not (console.is_terminal or "COLUMNS" in os.environ):
        console.width = 1000
    return console


def print_anywhere() -> None:
    """Let the streams of this process print any text: what their encoding lacks is escaped."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def announce_compiling(console: Console) -> Iterator[None]:
    """Context that shows in a terminal that kernels are being compiled."""
    status = console.status(COMPILING, spinner="line" if console.options.ascii_only else "dots")
    with Compiling(lambda going_on: status.start() if going_on else status.stop()):
        yield


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Context that prints warnings in one line, without file and line of the code."""

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        plain = COLOUR.sub("", str(message))
        text = f"clickgym: {one_line(plain)}"
        errors().print(text, highlight=False, markup=False, emoji=False)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def interruptible() -> Iterator[None]:
    """Context in which Ctrl-C and SIGTERM raise a KeyboardInterrupt, which the command reports;
    elsewhere they end its process.
    """
    # signals arrive, and can be handled, only in the main thread
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number in before:
            signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
