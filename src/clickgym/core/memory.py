"""Memory that is available to this process, so that arrays that do not fit are refused before any
of them is made.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")


def available_memory() -> float:
    """Return the bytes that arrays of this process may still take: nine tenths of what the system
    has free within the limit of its container; infinite if the system does not say.
    """
    limits = [math.inf]
    with suppress(OSError, ValueError, StopIteration):
        lines = MEMINFO.read_text().splitlines()
        limits.append(1024 * int(next(line for line in lines if "MemAvailable" in line).split()[1]))
    with suppress(OSError, ValueError):  # "max" is no number: no limit
        most, used = (int((CGROUP / f"memory.{name}").read_text()) for name in ("max", "current"))
        limits.append(most - used)
    if len(limits) == 1:
        with suppress(OSError, ValueError, AttributeError):  # not on Windows
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return 0.9 * max(min(limits), 0)


def check_memory(holder: str, n_bytes: int, cure: str) -> None:
    """Check that arrays fit into the available memory.

    Args:
        holder: what holds them, for the message, such as ``"TopRank holds L × L arrays"``.
        n_bytes: their size.
        cure: what to take instead.

    Raises:
        ValueError: they do not fit; the message names their size and the available memory.
    """
    available = available_memory()
    if n_bytes > available:
        raise ValueError(
            f"{holder}: {_gigabytes(n_bytes)}, and {_gigabytes(available)} of memory are "
            f"available; {cure}"
        )


def _gigabytes(n_bytes: float) -> str:
    return f"{n_bytes / 1e9:,.{0 if n_bytes >= 1e10 else 1}f} GB"
