"""Ways by which processes can talk to one another: a test prepares them, and an agent looks which of them are open."""

import ctypes
import fcntl
import mmap
import os
import platform
import resource
import socket
from contextlib import closing
from pathlib import Path

import numpy as np

from clickgym.core.kernels import cache_folder
from clickgym_lab.bench.sandbox import CALLS, PROCESSORS

LIBC = ctypes.CDLL(None, use_errno=True)
SESSION_KEYRING, USER_KEYRING = -3, -4
CREATE = 0o1000 | 0o666


def call(name, *arguments):
    return LIBC.syscall(CALLS[name][list(PROCESSORS).index(platform.machine())], *arguments)


def segment(key, flags=0):
    """A segment of System V memory, attached."""
    number = LIBC.shmget(key, 64, flags)
    if number < 0:
        raise OSError(ctypes.get_errno(), "no segment")
    LIBC.shmat.restype = ctypes.c_void_p
    return number, LIBC.shmat(number, None, 0)


def queue(name, flags=0):
    if LIBC.mq_open(name.encode(), os.O_RDWR | flags, 0o666, None) < 0:
        raise OSError(ctypes.get_errno(), "no queue")


def key(keyring, name):
    if call("keyctl", 10, keyring, b"user", name.encode(), 0) < 0:
        raise OSError("no key")


def new_key(keyring, name):
    number = call("add_key", b"user", name.encode(), b"best", 4, keyring)
    if number < 0:
        raise OSError("no key")
    return number


def _connect(kind, address):
    with closing(socket.socket(kind, socket.SOCK_STREAM)) as way:
        way.settimeout(2)
        way.connect(address)


def _send(port):
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as way:
        way.sendto(b"best", ("127.0.0.1", port))


def _read(path):
    with open(path, "rb") as file:
        file.read(1)


def _write(folder):
    with open(os.path.join(folder, "left.txt"), "w") as file:
        file.write("best")


def _lock(operation):
    with open(__file__) as file:
        operation(file)


def _child():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def ways_of(places):
    """Ways to what a test has prepared, and to what an agent that has looked before has left; each raises if it is closed."""
    name, pid = places["name"], places["pid"]
    return {
        "memory of System V": lambda: segment(places["segment"]),
        "queues": lambda: queue(f"/{name}"),
        "session keyring": lambda: key(SESSION_KEYRING, name),
        "user keyring": lambda: key(USER_KEYRING, name),
        "limits": lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE),
        "niceness": lambda: os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid)),
        "signals": lambda: os.kill(pid, 0),
        "path-name socket": lambda: _connect(socket.AF_UNIX, places["path"]),
        "abstract socket": lambda: _connect(socket.AF_UNIX, f"\0{name}"),
        "TCP": lambda: _connect(socket.AF_INET, ("127.0.0.1", places["tcp"])),
        "files": lambda: _read(places["file"]),
        "home": lambda: _read(places["home"]),
        "/var": lambda: os.listdir("/var")[0],
        "/proc": lambda: _read(f"/proc/{pid}/status"),
        "file locks": lambda: _lock(lambda file: fcntl.flock(file, fcntl.LOCK_SH)),
        "record locks": lambda: _lock(lambda file: fcntl.lockf(file, fcntl.LOCK_SH)),
        "processes": _child,
        "memory that no limit counts": lambda: mmap.mmap(-1, 4096),
        "left in /tmp": lambda: _read(f"/tmp/{name}"),
        "left in memory of System V": lambda: segment(places["segment"] + 1),
        "left in a queue": lambda: queue(f"/{name}-left"),
        "left in a keyring": lambda: key(USER_KEYRING, f"{name}-left"),
        "own folder": lambda: _write(os.path.dirname(os.path.abspath(__file__))),
        "kernels": lambda: _write(cache_folder()),
        "package": lambda: os.utime(np.__file__),
    }


def is_open(way):
    try:
        way()
    except (OSError, IndexError):
        return False
    return True


def leave(places):
    """Leave something wherever that works."""
    name = places["name"]
    is_open(lambda: Path(f"/tmp/{name}").write_text("best"))
    is_open(lambda: segment(places["segment"] + 1, CREATE))
    is_open(lambda: queue(f"/{name}-left", os.O_CREAT))
    is_open(lambda: new_key(USER_KEYRING, f"{name}-left"))
    is_open(lambda: _send(places["udp"]))
