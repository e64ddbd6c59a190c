"""Ctrl-C in the command: before it has begun and after it is done, the process ends at once, and says nothing.

The package imports this module first of all, for its other imports take a second. In between, `interruptible` rules.
"""

import os
import signal
import sys
import threading
from pathlib import Path

# The console script is called so; and `python -m clickgym` is called "-m" until its module is found.
if Path(sys.argv[0] if sys.argv else "").stem in ("clickgym", "-m") and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
