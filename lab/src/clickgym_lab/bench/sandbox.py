"""A sandbox for the code of others: bubblewrap makes it, one process enters it, and it ends with whoever has made it.

``bwrap`` makes new namespaces and a root of what a seat needs, read-only, and starts ``cat`` there as the first process. The
kernel ends all processes of the sandbox with that one, which ends when its input does: when whoever has opened the sandbox
closes it or dies. A process that has loaded the package, and nothing else, enters the sandbox and gives up what is left: its
user, if that is root, its capabilities, the system calls in `CALLS`, and all beyond the limits. Then it may load foreign code.
"""

from __future__ import annotations

import ctypes
import math
import os
import platform
import resource
import struct
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MEMORY, SCRATCH, THREADS = 2 << 30, 64 << 20, 64
"""What a sandbox may use: bytes of memory, bytes of files in ``/tmp``, threads."""
NOBODY = 65534
OURS = ("clickgym", "clickgym.envs", "clickgym.agents", "clickgym_lab")
"""Packages that may lie in folders of their own."""
SUBMISSION, KERNELS = Path("/submission"), Path("/kernels")
"""Where the folder of the submission and that of compiled kernels are in a sandbox."""
WITHOUT = "--unconfined plays without a sandbox, and judges nothing"

NEW_USER = 0x10000000
NEW_OTHERS = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
"""Namespaces: of mounts, cgroup, UTS, IPC, processes and network."""
SET_DEATH_SIGNAL, SET_SECCOMP, SET_NO_NEW_PRIVILEGES = 1, 22, 38  # of prctl
KILLED = 9


# ------------------------------------------------------------------------------------------------------- who opens a sandbox


class Opened:
    """A sandbox, until it is closed."""

    def __init__(self, command: list[str]) -> None:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, env={"PATH": os.defpath})
        except FileNotFoundError:
            how = "install it (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap)"
            raise OSError(f"the judge needs bubblewrap, which confines the code of others: {how}; {WITHOUT}") from None
        stdin: Any = self._process.stdin
        stdout: Any = self._process.stdout
        with suppress(BrokenPipeError):
            stdin.write(b"\n")
        if not stdout.read(1):  # what comes back says that the sandbox is complete
            reason = " ".join(self._process.communicate()[1].decode(errors="replace").split())
            raise OSError(f"bubblewrap cannot confine the code of others here ({reason}); {WITHOUT}")
        [child] = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        self.first = os.pidfd_open(int(child))
        """A descriptor of its first process."""

    def close(self) -> None:
        """End all its processes."""
        self._process.communicate()
        os.close(self.first)


@dataclass(frozen=True)
class Sandbox:
    """What the sandboxes of a submission contain beside the system's libraries, Python and the package.

    Attributes:
        folder: of the submission.
        kernels: the folder of compiled kernels.
        confined: whether there is a sandbox at all.
    """

    folder: Path
    kernels: Path
    confined: bool = True

    @property
    def inside(self) -> tuple[Path, Path]:
        """Where its processes find the submission and the kernels."""
        return (SUBMISSION, KERNELS) if self.confined else (self.folder, self.kernels)

    def open(self) -> Opened:
        """Make a new one, which lives until it is closed, or until this process ends.

        Raises:
            OSError: the system makes none; the message says what to do.
        """
        # What root starts gets a user of its own as it enters.
        kinds = ["ipc", "pid", "net", "uts", "cgroup-try", *(["user"] if os.getuid() else [])]
        command = ["bwrap", *(f"--unshare-{kind}" for kind in kinds)]
        command += ["--new-session", "--die-with-parent", "--as-pid-1", "--clearenv", "--cap-drop", "ALL", *_root()]
        for source, place in ((self.folder, SUBMISSION), (self.kernels, KERNELS)):
            command += ["--ro-bind", str(source), str(place)]
        return Opened([*command, "--remount-ro", "/", "--chdir", "/", "--", "/usr/bin/cat"])


@cache
def check_can_confine() -> None:
    """Make a sandbox and end it.

    Raises:
        OSError: the system makes none; the message says what to do.
    """
    if platform.machine() not in PROCESSORS:
        raise OSError(
            f"the judge confines the code of others on {' and '.join(PROCESSORS)}, not on {platform.machine()}; {WITHOUT}"
        )
    Sandbox(Path("/usr/lib"), Path("/usr/lib")).open().close()


@cache
def _root() -> list[str]:
    """The files of a sandbox, as ``bwrap`` takes them: libraries of the system, Python, the package, and an empty ``/tmp``."""
    files = ["--proc", "/proc", "--perms", "1777", "--size", str(SCRATCH), "--tmpfs", "/tmp", "--dir", "/dev"]
    for device in ("null", "random", "urandom"):
        files += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    for name in ("bin", "sbin", "lib", "lib64"):
        path = Path("/", name)
        files += ["--symlink", os.readlink(path), str(path)] if path.is_symlink() else ["--ro-bind-try", str(path), str(path)]
    for path in _needed():
        above = [part for parent in reversed(path.parents) for part in ("--dir", str(parent))]  # everybody may look into them
        files += [*above, "--ro-bind", str(path), str(path)]
    return files


def _needed() -> list[Path]:
    """The folders of the system's libraries, of Python and of the package, without those that lie in another."""
    packages = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    ours = [folder for spec in filter(None, map(find_spec, OURS)) for folder in spec.submodule_search_locations or ()]
    needed = dict.fromkeys(map(Path, ["/usr", sys.prefix, sys.base_prefix, *packages, *ours]))
    return [path for path in needed if path.is_dir() and needed.keys().isdisjoint(path.parents)]


def end_with(process: int) -> None:
    """Let this process end with its parent.

    Args:
        process: the parent; or this process itself, which then ends with nobody.
    """
    if process != os.getpid():
        _done(_libc().prctl(SET_DEATH_SIGNAL, KILLED, 0, 0, 0))
        if os.getppid() != process:
            os._exit(1)


# ------------------------------------------------------------------------------------------------------- who enters a sandbox


def enter(first: int) -> None:
    """Go on in a sandbox, in a process of its own; this one, which must have a single thread, ends with that.

    Args:
        first: a descriptor of the first process of the sandbox.

    Raises:
        OSError: the kernel refused.
    """
    libc, is_root = _libc(), os.getuid() == 0
    _done(libc.setns(first, NEW_OTHERS if is_root else NEW_OTHERS | NEW_USER))
    os.close(first)
    if is_root:  # whom limits do not bind
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        _done(libc.unshare(NEW_USER))
    child = os.fork()  # only children are in another namespace of processes
    if child:
        os.closerange(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        os.waitpid(child, 0)
        os._exit(0)
    os.setsid()
    resource.setrlimit(resource.RLIMIT_NPROC, (THREADS, THREADS))
    header, nothing = struct.pack("Ii", 0x20080522, 0), bytes(24)
    _done(libc.capset(header, nothing))
    _done(libc.prctl(SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    program = _filter()
    code = ctypes.create_string_buffer(program, len(program))
    _done(libc.prctl(SET_SECCOMP, 2, struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code)), 0, 0))


def restrict(seconds: float) -> None:
    """Limit what this process may use: memory, processor, files, threads.

    Args:
        seconds: of processor.
    """
    most = {
        resource.RLIMIT_DATA: MEMORY,
        resource.RLIMIT_CPU: math.ceil(seconds),
        resource.RLIMIT_FSIZE: SCRATCH,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for kind, value in most.items():
        resource.setrlimit(kind, (value, value))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _done(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"cannot confine: {os.strerror(ctypes.get_errno())}")


PROCESSORS = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS = {
    "clone": (56, 220), "clone3": (435, 435), "fcntl": (72, 25), "mmap": (9, 222), "fork": (57,), "vfork": (58,),
    "execve": (59, 221), "execveat": (322, 281), "shmget": (29, 194), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "flock": (73, 32), "inotify_init": (253,),
    "inotify_init1": (294, 26), "fanotify_init": (300, 262), "unshare": (272, 97), "ptrace": (101, 117), "bpf": (321, 280),
    "userfaultfd": (323, 282), "perf_event_open": (298, 241), "io_uring_setup": (425, 425),
}  # fmt: skip
"""System calls that a sandbox denies, in whole or in part, with their numbers on each of `PROCESSORS` that has them.

Denied are other processes, so that the limits of one bind the whole sandbox; memory that no limit counts; keyrings, file locks
and watches of files, by which sandboxes that read the same files could talk; and what only widens the ground for attacks.
"""
IN_PART = ("clone", "clone3", "fcntl", "mmap")
LOCKS = (5, 6, 7, 36, 37, 38, 1024, 1026)
"""Of ``fcntl``: locks, leases and watches of files."""
THREAD, SHARED_NO_FILE = 0x10000, 0x21


def _filter() -> bytes:
    """The program, in the kernel's language for filters, that says which system calls are denied."""
    machine = list(PROCESSORS).index(platform.machine())
    calls = {name: numbers[machine] for name, numbers in CALLS.items() if machine < len(numbers)}
    load, equal, any_of, at_least, mask, give = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
    number, processor, arguments = 0, 4, 16
    denied, absent, allowed, killed = 0x50001, 0x50026, 0x7FFF0000, 0x80000000
    program = [
        (load, 0, 0, processor),
        (equal, 1, 0, PROCESSORS[platform.machine()]),
        (give, 0, 0, killed),
        (load, 0, 0, number),
    ]
    program += [(at_least, 0, 1, 0x40000000), (give, 0, 0, denied)]  # a second set of numbers, on x86_64
    for value in (value for name, value in calls.items() if name not in IN_PART):
        program += [(equal, 0, 1, value), (give, 0, 0, denied)]
    program += [(equal, 0, 1, calls["clone3"]), (give, 0, 0, absent)]  # its arguments cannot be seen; clone does as well
    program += [(equal, 0, 4, calls["clone"]), (load, 0, 0, arguments), (any_of, 1, 0, THREAD), (give, 0, 0, denied)]
    program += [(give, 0, 0, allowed)]
    program += [(equal, 0, 5, calls["mmap"]), (load, 0, 0, arguments + 3 * 8), (mask, 0, 0, SHARED_NO_FILE)]
    program += [(equal, 0, 1, SHARED_NO_FILE), (give, 0, 0, denied), (give, 0, 0, allowed)]
    program += [(equal, 0, 2 + 2 * len(LOCKS), calls["fcntl"]), (load, 0, 0, arguments + 8)]
    for command in LOCKS:
        program += [(equal, 0, 1, command), (give, 0, 0, denied)]
    program += [(give, 0, 0, allowed), (give, 0, 0, allowed)]
    return b"".join(struct.pack("HBBI", *each) for each in program)
