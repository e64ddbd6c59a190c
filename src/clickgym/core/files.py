"""Functions for files: atomic writes, and one-line errors for files that are unusable."""

from __future__ import annotations

import io
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

FORMAT = 9
"""The format number of results folders and saved agents, which is the first major version of
clickgym that writes this format.
"""


# ------------------------------------------------------------ writing


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically, by renaming a temporary file. Several threads or processes may write
    the same file at the same time.

    Args:
        path: the file; an existing file or symbolic link is replaced.
        content: the bytes to write, or a text that is encoded as UTF-8.

    Raises:
        OSError: the file cannot be written; the message names the file.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_whole(Path(folder, "a.txt"), "whole")
        ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
        [('a.txt', 'whole')]
    """
    # file systems allow 255 bytes, so use only the start of a long name
    temporary = path.parent / f".{path.name[:30]}.{secrets.token_hex(6)}.partial"
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(temporary, path)
    except OSError as error:  # name the file instead of the temporary file
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(OSError):  # after a failure, the temporary file still exists
            temporary.unlink()


def append_lines(path: Path, lines: str) -> None:
    """Append lines to a file. Several threads or processes may append to the same file at the same
    time.

    Raises:
        OSError: the lines cannot be written, for example because the disk is full; the message
            names the file.
    """
    try:
        with open(path, "ab") as file:
            file.write(lines.encode())
    except OSError as error:  # if the disk is full, the error names no file
        raise OSError(error.errno, error.strerror, str(path)) from None


def make_folder(path: Path) -> None:
    """Create a folder and its missing parents; raise a ValueError if a file is in the way."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ValueError(
            f"{path} cannot be a folder, because it or a part of its path is a file; name another "
            "folder"
        ) from None


# ------------------------------------------------------------ reading


@contextmanager
def one_line_errors(path: object, fault: str, cure: str) -> Iterator[None]:
    """Context manager that re-raises any error as a one-line ValueError, which names the file, the
    fault and the cure.

    This applies even to a Polars panic, which is not an `Exception`, and to a MemoryError caused by
    a damaged size field. A FileNotFoundError passes through unchanged.

    Args:
        path: the file or other source of data, with which the message begins.
        fault: a predicate that says what is wrong, such as ``"is damaged"``.
        cure: advice on what to do, or on what was expected.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, FileNotFoundError):
        raise
    except BaseException as error:
        line = str(error).strip().partition("\n")[0]
        raise ValueError(f"{path} {fault} ({line or type(error).__name__}); {cure}") from None


def check_format(source: object, number: object) -> None:
    """Raise a ValueError if a file's format number is not `FORMAT`. The message names the version
    of clickgym that can read the file.
    """
    if number != FORMAT:
        raise ValueError(
            f"{source} was written by another version of clickgym: its format is {number!r}, "
            f"but the installed version reads only format {FORMAT}; create it again under a "
            f"new name, or install clickgym {number}.0"
        )


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that contains an object, and return the object as a dictionary.

    Raises:
        FileNotFoundError, NotADirectoryError: the file does not exist.
        ValueError: the file does not contain a JSON object; the message says what is wrong.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} contains a {type(content).__name__}; expected a JSON object")
    return content


# ------------------------------------------------------------ Parquet


def parquet_bytes(frame: Any) -> bytes:
    """Return a Polars data frame as the bytes of a Parquet file."""
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()
