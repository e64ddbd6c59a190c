"""Files that are whole or not there at all; used by the whole package."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

__all__ = ["write_whole"]


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file whole or not at all; what goes wrong is raised, and leaves nothing behind.

    Args:
        path: the file, replaced if there is one.
        write: called with the path of a draft in the same folder, which it writes.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_whole(Path(folder, "a.txt"), lambda draft: draft.write_text("whole"))
        ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
        [('a.txt', 'whole')]
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        write(draft)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):  # on a file system that is full or read-only: the first error is the one to be told
            draft.unlink(missing_ok=True)
        raise
