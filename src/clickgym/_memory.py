"""Check the limit of address space before libraries load, because they abort without a message if it is too low.

The package imports this module before its other imports, for NumPy and numba are among them.
"""

import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from ._interrupts import command

NEEDED = {"": 500, "list": 500, "show": 500}
"""Megabytes of address space that a command needs at least, on two processors."""
OTHERWISE = 1300
"""That of all others, which load data frames and figures and start threads."""

if command and find_spec("resource") is not None:  # Windows has no such limit
    system: Any = import_module("resource")
    limit = system.getrlimit(system.RLIMIT_AS)[0]
    word = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    needed = NEEDED.get(word, OTHERWISE)
    if limit != system.RLIM_INFINITY and limit < needed * 10**6:
        has = f"the address space is limited to {limit / 10**6:,.0f} MB"
        sys.stderr.write(f"clickgym: {has}; {f'clickgym {word}'.strip()} needs {needed:,} MB or more (ulimit -v)\n")
        sys.stderr.flush()
        os._exit(1)
