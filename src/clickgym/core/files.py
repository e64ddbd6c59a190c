"""Atomic file writing, and one-line errors for input and output; used by the whole package.

A file is first written as a *draft* in the same folder, which is then renamed. The name of a draft
holds the process that writes it, so the drafts of a killed process are recognised, and the next
process that writes into the folder removes them. It also holds a random number, and the draft must
be a new file: threads do not share it, and nobody can put a link in its place.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 5
"""Format number of results folders and saved agents."""


class FileError(OSError):
    """A file cannot be written; the message says in one line where and why."""


# ------------------------------------------------------------ writing


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically, also if several threads or processes write it: if writing fails, an
    error is raised and no part of the file remains.

    Args:
        path: the file; an existing one is replaced and its permissions are kept; a symbolic link is
            replaced, not followed.
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
    if not path.name:  # "." or "/"
        raise FileError(f"{path} cannot be written: it is a folder")
    _clean_once(path.parent)
    draft = draft_of(path)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise OSError("it is not a regular file")
        is_known = path.exists() and not path.is_symlink()
        mode = path.stat().st_mode & 0o777 if is_known else 0o666
        with open(draft, "xb", opener=partial(os.open, mode=mode)) as file:
            file.write(content.encode() if isinstance(content, str) else content)
            if is_known:  # of a new file, the umask decides
                with suppress(AttributeError, OSError):  # Windows; a file system without modes
                    os.fchmod(file.fileno(), mode)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException as error:
        # on a read-only file system: report the first error
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _file_error(path, error) from None
        raise


def make_folder(path: Path) -> None:
    """Make a folder and its parents if they are missing.

    Raises:
        ValueError: a file has this name.
        FileError: the folder cannot be made.
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
DRAFT = re.compile(r".+\.clickgym-(?P<host>[\w-]+)-(?P<pid>\d+)(\.[0-9a-f]+)?\.partial")
"""Pattern of the names of drafts."""
MAX_AGE = 86400
"""Seconds without a change after which the draft of another host's process counts as abandoned."""


def draft_of(path: Path) -> Path:
    """Return a new path at which this process writes the draft of a file."""
    random = secrets.token_hex(6)
    # of a long name a part: file systems take 255 bytes
    return path.with_name(f"{path.name[:30]}.clickgym-{HOST}-{os.getpid()}.{random}.partial")


def is_draft(path: Path) -> bool:
    """Whether the name of a path is that of a draft."""
    return DRAFT.fullmatch(path.name) is not None


def remove_drafts(folder: Path) -> None:
    """Remove the drafts in a folder that no process is writing.

    A draft of this host is removed if its process has ended; a draft of another host, by its age.
    """
    with suppress(OSError):  # a draft that stays does no harm
        for name in os.listdir(folder):
            match = DRAFT.fullmatch(name)
            if match and _is_left_behind(folder / name, match["host"], int(match["pid"])):
                with suppress(OSError):
                    shutil.rmtree(folder / name) if (folder / name).is_dir() else (
                        folder / name
                    ).unlink()


_clean_once = cache(remove_drafts)
"""`remove_drafts`, once for each folder: before the first file that this process writes there."""


def _is_left_behind(draft: Path, host: str, pid: int) -> bool:
    if host != HOST or os.name != "posix":
        return time.time() - draft.lstat().st_mtime > MAX_AGE
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        pass
    return False


# ------------------------------------------------------------ locks

LOCK = "clickgym.lock"
"""The name of the file that is locked in place of one that does not exist."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Context in which no other thread or process has the lock of a file, which need not exist. Who
    replaces the file does it last, because the new one is not locked.

    The system unlocks the files of a process that has ended. Where a file cannot be locked, because
    it is read-only or on a file system without locks, the context does nothing.
    """
    beside, file, place = path.with_name(LOCK), -1, path
    try:
        with suppress(ImportError, OSError):
            import fcntl  # Windows has none

            while file < 0:
                place = path if path.exists() else beside
                file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
                fcntl.flock(file, fcntl.LOCK_EX)
                current = path if path.exists() else beside
                if not current.exists() or not os.path.samestat(os.fstat(file), current.stat()):
                    os.close(file)
                    file = -1
        yield
    finally:
        if file >= 0:
            if place is beside:
                with suppress(OSError):
                    place.unlink()
            os.close(file)


# ------------------------------------------------------------ reading


@contextmanager
def reading(path: object, what: str, cure: str) -> Iterator[None]:
    """Context that turns any error into a ValueError of one line: the file, the fault, and what to
    do.

    This includes a panic of Polars, which is not an `Exception`, and a MemoryError that a damaged
    size causes. A FileNotFoundError is raised as it is.

    Args:
        path: the file.
        what: what is wrong, such as ``"is damaged"``.
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
    """Raise a ValueError for a file of another version; it names the file and both formats."""
    if number != FORMAT:
        raise ValueError(
            f"{where} is of another version of clickgym: "
            f"its format is {number!r}; expected {FORMAT}"
        )


HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""By the version of a member."""


def read_arrays(path: str | os.PathLike[str] | IO[bytes]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an ``.npz`` file, after a check of all checksums and sizes: they take no
    more memory than the file has bytes.

    Raises:
        Exception: of many classes, on another file or a damaged one; see `reading`.
    """
    archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise ValueError("it is a single array")
    with archive as file:
        if damaged := file.zip.testzip():  # type: ignore[union-attr]
            raise ValueError(f"the checksum of {damaged} differs")
        for info in file.zip.infolist():  # type: ignore[union-attr]
            with file.zip.open(info) as member:  # type: ignore[union-attr]
                read_header = HEADERS[np.lib.format.read_magic(member)]
                shape, _, dtype = read_header(member)
                size = member.tell() + math.prod(shape) * dtype.itemsize
            is_right = info.file_size == info.compress_size == size
            if not (is_right or dtype.hasobject):  # which NumPy refuses in its own words
                raise ValueError(f"the size of {info.filename} is not that of its array")
        return {name: file[name] for name in file.files}


def parse_json(text: str) -> Any:
    """Parse a JSON text.

    NaN and Infinity, which Python also writes, are accepted here; the check of the argument that
    they belong to refuses them.

    Raises:
        json.JSONDecodeError: the text is not JSON.
        ValueError: an object has a key twice, the nesting is too deep, or a number has too many
            digits.

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
    """Return a JSON object; raise an error for a key that it has twice, which ``json.loads``
    accepts.
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
"""The key, and the type and length of its value, as stored in the footer of a Parquet file."""


def sealed(frame: Any, metadata: Mapping[str, str] | None = None) -> bytes:
    """Return a Polars data frame as the bytes of a Parquet file with a checksum of all bytes, so
    that damage is detected before parsing.

    Args:
        frame: the data frame.
        metadata: further metadata of the file.
    """
    file = io.BytesIO()
    frame.write_parquet(file, metadata={**(metadata or {}), SEAL: BLANK})
    content = file.getvalue()
    start = content.rfind(SEAL_IN_FOOTER) + len(SEAL_IN_FOOTER)
    return _with_seal(content, start, hashlib.sha256(content).hexdigest())


def check_seal(content: bytes) -> None:
    """Check the checksum of a Parquet file, if it has one (files of other programs do not).

    Raises:
        ValueError: the checksum differs.
    """
    start = content.rfind(SEAL_IN_FOOTER) + len(SEAL_IN_FOOTER)
    if start >= len(SEAL_IN_FOOTER):
        digest = hashlib.sha256(_with_seal(content, start, BLANK)).hexdigest()
        if content != _with_seal(content, start, digest):
            raise ValueError("its checksum differs")


def _with_seal(content: bytes, start: int, digest: str) -> bytes:
    return content[:start] + digest.encode() + content[start + len(BLANK) :]
