"""Consoles of the commands: standard output, standard error, warnings and interrupts."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.console import Console

from .compiling import COMPILING, Compiling
from .formats import HIDDEN, finite

USAGE_ERROR: Any = typer.BadParameter.__base__

Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print the results as JSON, at full precision; all other output goes to stderr.",
    ),
]

Cluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="ADDRESS",
        help="Run on the workers of a Dask cluster: the "
        "address of its scheduler, tcp://host:8786. Results stay the same.",
    ),
]

Pdf = Annotated[
    bool, typer.Option("--pdf", help="Also write the figure as a PDF file, with embedded fonts.")
]


def output(as_json: bool = False) -> Console:
    """Return the console for results: standard output, or standard error if a JSON document goes
    to standard output.
    """
    return errors() if as_json else _wide(Console())


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document on standard output; unknown values and nan or infinities are null."""
    text = json.dumps(finite(document), indent=1, ensure_ascii=False)
    # JSON escapes only some of a terminal's control characters.
    sys.stdout.write(
        HIDDEN.sub(lambda one: one[0] if one[0] == "\n" else f"\\u{ord(one[0]):04x}", text) + "\n"
    )


def errors() -> Console:
    """Return the console of standard error: progress, warnings and errors."""
    return _wide(Console(stderr=True))


def _wide(console: Console) -> Console:
    """Do not break lines in files and pipes, which have no width, unless ``COLUMNS`` sets one."""
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = 1000
    return console


@contextmanager
def compiling_told(console: Console) -> Iterator[None]:
    """Context that shows in a terminal that kernels are being compiled."""
    status = console.status(COMPILING)
    with Compiling(lambda going_on: status.start() if going_on else status.stop()):
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
