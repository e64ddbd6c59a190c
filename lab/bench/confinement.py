"""Confinement of a process by the kernel (Landlock, Linux 5.13 or newer): which files it may use; other processes are closed.

What a process gives up it cannot take back, nor can the processes that it starts: files but for those that are named, TCP,
abstract sockets of others, signals to others, and the memory of others, which may not be traced. An older kernel knows fewer of
these; all know files and memory.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

__all__ = ["check_can_confine", "confine", "end_children"]

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION, PATH_BENEATH = 1, 1
NO_NEW_PRIVILEGES, CHILD_SUBREAPER = 38, 36
FILE_RIGHTS = (13, 13, 14, 15, 15, 16)
"""How many rights on files the first versions of Landlock know; those to come know as many as the last, or more."""
READ, READ_FILE, WRITE_FILE = 0b1101, 0b100, 0b10
"""To execute, to read files, and to list folders; those of a single file."""
NET, SCOPES = 0b11, 0b11


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _version() -> int:
    """Of Landlock; 0 or less where there is none."""
    return _libc().syscall(CREATE_RULESET, None, 0, ASK_VERSION) if sys.platform == "linux" else 0


def check_can_confine() -> None:
    """Raise an error if the system cannot confine processes.

    Raises:
        OSError: naming what is expected.
    """
    if _version() < 1:
        raise OSError("this system cannot confine the code of others; the judge needs Linux 5.13 or newer with Landlock")


class _Rules(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def confine(readable: Iterable[str | os.PathLike[str]], writable: str | os.PathLike[str] | None = None) -> None:
    """Restrict this process permanently to some files.

    Args:
        readable: files and folders that may be read; those that are not there do not matter.
        writable: a folder in which everything may be done; None for none.

    Raises:
        OSError: the kernel refused.
    """
    libc, version = _libc(), _version()
    every = (1 << FILE_RIGHTS[min(version, len(FILE_RIGHTS)) - 1]) - 1
    rules = _Rules(every, NET if version >= 4 else 0, SCOPES if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _done(libc.syscall(CREATE_RULESET, ctypes.byref(rules), size, 0))
    rights = {Path(path): READ for path in readable} | {Path(os.devnull): READ_FILE | WRITE_FILE}
    for path, right in (rights | ({} if writable is None else {Path(writable): every})).items():
        if path.exists():
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
            right &= every if path.is_dir() else READ_FILE | WRITE_FILE
            rule = _Beneath(right, folder)
            _done(libc.syscall(ADD_RULE, ruleset, PATH_BENEATH, ctypes.byref(rule), 0))
            os.close(folder)
    _done(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _done(libc.syscall(RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _done(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"cannot confine: {os.strerror(ctypes.get_errno())}")
    return result


def end_children(child: int) -> None:
    """Wait for a child, then end all that it has left behind; the caller has nothing else to wait for."""
    _done(_libc().prctl(CHILD_SUBREAPER, 1, 0, 0, 0))
    os.waitpid(child, 0)
    mine = Path(f"/proc/self/task/{os.getpid()}/children")
    while children := mine.read_text().split():
        for other in map(int, children):
            os.kill(other, 9)
            os.waitpid(other, 0)
