"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file whole or not at all; after a failure nothing of it is left.

    Args:
        path: where; a file that is there is replaced.
        write: writes the file that it is given, of another name in the same folder.
    """
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        write(partial)
        partial.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):  # where nothing can be written, nothing can be removed
            partial.unlink()
        raise
