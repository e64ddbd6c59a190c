"""A limit of address space that is too low for a command is said in one line, before libraries load, which abort without it.

The package imports this module before its other imports, for NumPy and numba are among them.
"""

import os
import sys

from ._interrupts import command

NEEDED = {"": 500, "list": 500, "show": 500}
"""Megabytes of address space that a command needs at least, on two processors."""
OTHERWISE = 1300
"""That of all others, which load data frames and figures and start threads."""

if command:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        unlimited = limit == resource.RLIM_INFINITY
    except ImportError:  # Windows has no such limit
        limit, unlimited = 0, True
    word = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    needed = NEEDED.get(word, OTHERWISE) * 10**6
    if not unlimited and limit < needed:
        name = f"clickgym {word}".strip()
        text = f"clickgym: the address space is limited to {limit / 1e6:,.0f} MB; {name} needs {needed / 1e6:,.0f} MB or more "
        sys.stderr.write(f"{text}(ulimit -v)\n")
        sys.stderr.flush()
        os._exit(1)
