"""Functions that run a program in its own process."""

from __future__ import annotations

import subprocess
from typing import Any


def output(*command: Any, cwd: Any = None) -> str:
    """Return what a command prints, after checking that the command succeeds."""
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
