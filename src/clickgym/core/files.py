"""Atomic file writing, and one-line errors for input and output; used by the whole package.

A file is written as a draft beside it, which then takes its name. The name of a draft tells who
writes it, so that what a killed process left behind is known, and removed by the next that writes
into the folder.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 4
"""Of results folders and saved agents."""


class FileError(OSError):
    """A file cannot be written; the message says in one line where and why."""


# ------------------------------------------------------------ writing


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically: if writing fails, an error is raised and no part of the file
    remains.

    Args:
        path: the file, replaced if there is one.
        content: bytes, or text, which is written as UTF-8.

    Raises:
        FileError: the file cannot be written.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_whole(Path(folder, "a.txt"), "whole")
        ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
        [('a.txt', 'whole')]
    """
    _clean_once(path.parent)
    draft = draft_of(path)
    try:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)
        draft.replace(path)
    except BaseException as error:
        # on a read-only file system: the first error is the one that counts
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _file_error(path, error) from None
        raise


def make_folder(path: Path) -> None:
    """Make a folder and its parents if they are missing.

    Raises:
        ValueError: there is a file in its place.
        FileError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ValueError(f"{path} is a file, or lies below a file; expected a folder") from None
    except OSError as error:
        raise _file_error(path, error) from None


def _file_error(path: Path, error: OSError) -> FileError:
    refusal = FileError(f"{path} cannot be written: {error.strerror or error}")
    refusal.errno = error.errno
    return refusal


# ------------------------------------------------------------ drafts

HOST = re.sub(r"[^\w-]", "_", platform.node()) or "host"
DRAFT = re.compile(r".+\.clickgym-(?P<host>[\w-]+)-(?P<pid>\d+)\.partial")
"""The names of drafts."""
MAX_AGE = 86400
"""Seconds without a change, after which the draft of a process of another host is taken for left
behind.
"""


def draft_of(path: Path) -> Path:
    """Where this process writes what shall become a file or a folder."""
    return path.with_name(f"{path.name}.clickgym-{HOST}-{os.getpid()}.partial")


def is_draft(path: Path) -> bool:
    """Whether this is a draft, by its name."""
    return DRAFT.fullmatch(path.name) is not None


def remove_drafts(folder: Path) -> None:
    """Remove drafts from a folder, as far as nobody can be writing them.

    Of a process of this host it is known whether it lives; those of others go by their age.
    """
    with suppress(OSError):  # nothing depends on it
        for name in os.listdir(folder):
            match = DRAFT.fullmatch(name)
            if match and _is_left_behind(folder / name, match["host"], int(match["pid"])):
                with suppress(OSError):
                    shutil.rmtree(folder / name) if (folder / name).is_dir() else (
                        folder / name
                    ).unlink()


_clean_once = cache(remove_drafts)
"""Before the first file that this process writes into a folder."""


def _is_left_behind(draft: Path, host: str, pid: int) -> bool:
    if host != HOST or os.name != "posix":
        return time.time() - draft.stat().st_mtime > MAX_AGE
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass
    return False


# ------------------------------------------------------------ reading


@contextmanager
def reading(path: object, what: str, cure: str) -> Iterator[None]:
    """Context that turns any error into a ValueError of one line: the file, the fault, and what to
    do.

    Also a panic of polars, which is no `Exception`, and memory that a damaged size asks for.
    Absence stays what it is.

    Args:
        path: the file.
        what: what is said of it, as ``"is damaged"``.
        cure: what to do.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, FileNotFoundError):
        raise
    except BaseException as error:
        line = str(error).strip().partition("\n")[0]
        raise ValueError(f"{path} {what} ({line or type(error).__name__}); {cure}") from None


def check_format(where: object, number: object) -> None:
    """Refuse a file of another version; the message of the ValueError names the file and both
    formats.
    """
    if number != FORMAT:
        raise ValueError(
            f"{where} is of another version of clickgym: "
            f"its format is {number!r}, and this one reads {FORMAT}"
        )


def read_arrays(path: str | os.PathLike[str] | IO[bytes]) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file, all of whose checksums are right.

    Raises:
        Exception: of many kinds, on another file or a damaged one; see `reading`.
    """
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError("it is a single array")
    with archive as file:
        if damaged := file.zip.testzip():  # type: ignore[union-attr]
            raise ValueError(f"the checksum of {damaged} differs")
        return {name: file[name] for name in file.files}


def parse_json(text: str) -> Any:
    """Parse a JSON text.

    NaN and Infinity, which Python writes where a number is none, are read; whoever takes the number
    refuses them by its name.

    Raises:
        json.JSONDecodeError: it is not JSON.
        ValueError: it is, but an object has a key twice, it is nested too deep, or a number has too
            many digits.

    Example:
        >>> parse_json('{"a": 1, "a": 2}')
        Traceback (most recent call last):
            ...
        ValueError: the key 'a' is there twice
    """
    try:
        return json.loads(text, object_pairs_hook=_distinct)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object without the silence of ``json.loads``, which keeps the last of two equal
    keys.
    """
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(
            f"the key {next(key for key in keys if keys.count(key) > 1)!r} is there twice"
        )
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file.

    Raises:
        FileNotFoundError: there is no file.
        ValueError: naming the file and what is wrong.
    """
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} cannot be read: {path.name} is not JSON: {error}") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}; expected a JSON object")
    return content


# ------------------------------------------------------------ Parquet

SEAL, BLANK = "clickgym_sha256", "0" * 64
SEAL_IN_FOOTER = SEAL.encode() + b"\x18@"
"""The key, and the type and the length of its value, as Parquet's footer has them."""


def sealed(frame: Any) -> bytes:
    """A table of polars as a Parquet file with a checksum of all its bytes: what is damaged is
    known before it is parsed.
    """
    file = io.BytesIO()
    frame.write_parquet(file, metadata={SEAL: BLANK})
    content = file.getvalue()
    start = content.rfind(SEAL_IN_FOOTER) + len(SEAL_IN_FOOTER)
    return _with_seal(content, start, hashlib.sha256(content).hexdigest())


def check_seal(content: bytes) -> None:
    """Check the checksum of a Parquet file, if it has one: those that others wrote do not.

    Raises:
        ValueError: the checksum is another.
    """
    start = content.rfind(SEAL_IN_FOOTER) + len(SEAL_IN_FOOTER)
    if start >= len(SEAL_IN_FOOTER):
        digest = hashlib.sha256(_with_seal(content, start, BLANK)).hexdigest()
        if content != _with_seal(content, start, digest):
            raise ValueError("its checksum differs")


def _with_seal(content: bytes, start: int, digest: str) -> bytes:
    return content[:start] + digest.encode() + content[start + len(BLANK) :]
