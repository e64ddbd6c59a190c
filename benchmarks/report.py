"""Shared code of the benchmarks: times measured in turns, tables, and their sections of README.md.

Compared measurements alternate in one process, several times, and the fastest of each counts,
because other programs on the machine can only add time. For the same reason times are processor
times of one thread.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

README = Path(__file__).with_name("README.md")


def machine() -> str:
    """Return processor, number of cores, system, versions, and load of the machine."""
    cpuinfo = Path("/proc/cpuinfo")
    match = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text()) if cpuinfo.exists() else None
    processor = match[1] if match else platform.processor() or platform.machine()
    names = ("clickgym", "gymnasium", "numpy", "numba")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    return (
        f"{processor}, {os.cpu_count()} cores, {platform.system()}; "
        f"Python {platform.python_version()}, {versions}; "
        f"load average at the end {os.getloadavg()[0]:.1f}"
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, the first column aligned to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    aligned = [
        [row[0].ljust(widths[0])]
        + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        for row in (header, rule, *rows)
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in aligned)


def publish(text: str) -> None:
    """Print the results of the running script; ``--write`` replaces its section of README.md."""
    script = Path(sys.argv[0])
    print(text)
    if "--write" in sys.argv:
        start, stop = (f"<!-- {mark} of {script.name} -->" for mark in ("start", "end"))
        note = f"`python benchmarks/{script.name} --write`, {datetime.date.today()}: "
        before, rest = README.read_text(encoding="utf-8").split(start)
        section = f"{start}\n\n{text}\n\n{note}{machine()}.\n\n{stop}"
        README.write_text(f"{before}{section}{rest.split(stop)[1]}", encoding="utf-8")
