"""Worker processes: none outlives the process that started it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any

EVERY = 0.25
"""Seconds between two looks at the parent."""


def watched(parent: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a worker process, which ends itself once its parent has ended, killed or not.

    A worker in the same process (a thread), or one that another process started (on a cluster), is not ended.

    Args:
        parent: the id of the process that started the worker.
        function, arguments: what is called.
    """
    if os.getppid() == parent:
        _watch(parent)
    return function(*arguments)


@cache
def _watch(parent: int) -> None:
    def end() -> None:
        while os.getppid() == parent:
            time.sleep(EVERY)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()
