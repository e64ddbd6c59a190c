"""One line for a process that dies in a kernel, where no Python code can report it any more."""

from __future__ import annotations

import faulthandler
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

OWN = re.compile(r"(?:^|=)([A-Za-z_][\w.]*:[A-Za-z_][\w-]*)(?::|$)")
"""An own class or environment among the words of a command."""
CURE = (
    "a kernel read or wrote outside of its arrays; clickgym.check_agent or check_click_model names "
    "the line, and the same command with NUMBA_BOUNDSCHECK=1 in the environment whose kernel it is"
)
WATCHER = """
import re, sys
if fault := re.search(r"Fatal Python error: ([A-Za-z ]*)", sys.stdin.read()):
    name = fault[1] or "Segmentation fault"  # empty if two threads die at once
    print(f"clickgym: the process died ({name}): {sys.argv[1]}", file=sys.stderr)
"""


@contextmanager
def reporting_crashes(parameters: Mapping[str, Any]) -> Iterator[None]:
    """Context in which another process waits, and says in one line if this one dies of a fault of
    memory.

    Args:
        parameters: of a command, by name. If none names an own class, nothing is done.
    """
    values = [value if isinstance(value, list) else [value] for value in parameters.values()]
    words = [word for words in values for word in words if isinstance(word, str)]
    own = [match[1] for word in words if (match := OWN.search(word))]
    if not own:
        yield
        return
    command = [sys.executable, "-S", "-c", WATCHER, f"{CURE} (run: {', '.join(own)})"]
    # of its own session: Ctrl-C does not end it
    watcher = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True)
    with watcher, watcher.stdin:  # type: ignore[union-attr]
        was_enabled = faulthandler.is_enabled()
        faulthandler.enable(watcher.stdin, all_threads=False)  # type: ignore[arg-type]
        try:
            yield
        finally:
            faulthandler.enable(2) if was_enabled else faulthandler.disable()
