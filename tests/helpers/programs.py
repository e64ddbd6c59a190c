"""Programs that run in their own processes."""

from __future__ import annotations

import subprocess
from typing import Any


def output(*command: Any, cwd: Any = None) -> str:
    """Return what a command prints, and check that it succeeds."""
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
