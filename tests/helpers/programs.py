"""Programs in processes of their own."""

from __future__ import annotations

import subprocess
from typing import Any


def output(*command: Any, cwd: Any = None) -> str:
    """What a command prints, which must end well."""
    done = subprocess.run(
        [*map(str, command)], cwd=cwd, capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
