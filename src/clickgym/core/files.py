"""Atomic file writing, and one-line errors for input and output; used by the whole package."""

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
"""Format number of results folders and saved agents: the first major version of clickgym that
writes this format.
"""


# ------------------------------------------------------------ writing


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically, even if several threads or processes write the same file: write a
    temporary file, and then rename it.

    Args:
        path: the file; an existing file or symbolic link is replaced.
        content: bytes, or text, which is written as UTF-8.

    Raises:
        OSError: the file cannot be written; the error names it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_whole(Path(folder, "a.txt"), "whole")
        ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
        [('a.txt', 'whole')]
    """
    # only the start of a long name: file systems allow 255 bytes
    temporary = path.parent / f".{path.name[:30]}.{secrets.token_hex(6)}.partial"
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(temporary, path)
    except OSError as error:  # name the file, not the temporary file
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(OSError):  # the temporary file is left after a failure; otherwise renamed
            temporary.unlink()


def append(path: Path, lines: str) -> None:
    """Add lines to a file, even if several threads or processes add lines to the same file.

    Raises:
        OSError: the lines cannot be written, for example on a full disk; the error names the file.
    """
    try:
        with open(path, "ab") as file:
            file.write(lines.encode())
    except OSError as error:  # the error of a full disk names no file
        raise OSError(error.errno, error.strerror, str(path)) from None


def make_folder(path: Path) -> None:
    """Make a folder and its parents if they are missing; raise a ValueError if a file is there."""
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
    """Context manager that turns any error into a one-line ValueError: the file, the fault, and
    what to do.

    This includes a panic in Polars, which is not an `Exception`, and a MemoryError that a damaged
    size field causes. A FileNotFoundError passes through unchanged.

    Args:
        path: the file.
        fault: what is wrong, such as ``"is damaged"``.
        cure: what to do.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, FileNotFoundError):
        raise
    except BaseException as error:
        line = str(error).strip().partition("\n")[0]
        raise ValueError(f"{path} {fault} ({line or type(error).__name__}); {cure}") from None


def check_format(source: object, number: object) -> None:
    """Raise a ValueError if a file has another format; the message says which version reads it."""
    if number != FORMAT:
        raise ValueError(
            f"{source} was written by another version of clickgym: its format is {number!r}, "
            f"but the installed version reads only format {FORMAT}; create it again under a "
            f"new name, or install clickgym {number}.0"
        )


def read_json(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file.

    Raises:
        FileNotFoundError: the file does not exist.
        ValueError: the file is not a JSON object; the message says what is wrong.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}; expected a JSON object")
    return content


# ------------------------------------------------------------ Parquet


def parquet(frame: Any) -> bytes:
    """Return a Polars data frame as the bytes of a Parquet file."""
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()
