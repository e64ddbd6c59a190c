"""The end of a worker process whose parent process has ended. Imported before all else, because a
worker takes seconds to import the package.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import cache

EVERY = 0.25
"""Seconds between two checks of the parent process."""


@cache
def end_with(parent: int) -> None:
    """End this process when its parent process has ended, whatever it does, within a second.

    Args:
        parent: the id of the process that started this one; another parent is that of an orphan.
    """

    def end() -> None:
        while os.getppid() == parent:
            time.sleep(EVERY)
        os._exit(1)

    threading.Thread(target=end, daemon=True).start()


if "joblib.externals.loky.backend.popen_loky_posix" in sys.orig_argv:  # a worker that starts
    end_with(os.getppid())
