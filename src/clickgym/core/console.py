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
        help="Let the workers of a Dask cluster do it, by the "
        "address of its scheduler: tcp://host:8786. Results stay the same.",
    ),
]

Pdf = Annotated[
    bool, typer.Option("--pdf", help="Also write the figure as a PDF file, with embedded fonts.")
]


def output(as_json: bool = False) -> Console:
    """The console for results: standard output, or standard error if standard output gets a JSON
    document.
    """
    return errors() if as_json else _wide(Console())


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document on standard output; what is unknown or not finite is null."""
    text = json.dumps(finite(document), indent=1, ensure_ascii=False)
    # JSON escapes only some of what a terminal obeys.
    sys.stdout.write(
        HIDDEN.sub(lambda one: one[0] if one[0] == "\n" else f"\\u{ord(one[0]):04x}", text) + "\n"
    )


def errors() -> Console:
    """The console of standard error: progress, warnings and faults."""
    return _wide(Console(stderr=True))


def _wide(console: Console) -> Console:
    """Without lines broken where there is no terminal, for files and pipes have no width, unless
    ``COLUMNS`` names one.
    """
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = 1000
    return console


@contextmanager
def compiling_told(console: Console) -> Iterator[None]:
    """Context in which a terminal shows that kernels are being compiled."""
    status = console.status(COMPILING)
    with Compiling(lambda going_on: status.start() if going_on else status.stop()):
        yield


@contextmanager
def interruptible() -> Iterator[None]:
    """Within, Ctrl-C and SIGTERM are a KeyboardInterrupt, which can be told; the process of the
    command is ended by them at other times.
    """
    # only there it arrives, and only there it can be set
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
