"""Ctrl-C before a command has begun or after it has ended: the process exits at once and silently.

The package imports this module first of all, for its other imports take a second. In between,
`interruptible` rules.
"""

import os
import signal
import sys
import threading
from itertools import pairwise
from pathlib import Path

# `python -m clickgym` is called "-m" until its module is found; so would be any other program
# that is a package of its own.
script = Path(sys.argv[0] if sys.argv else "").stem == "clickgym"
module = sys.argv[:1] == ["-m"] and ("-m", "clickgym") in pairwise(sys.orig_argv)
command = script or module
"""Whether this process is the command, and not a program that uses the package."""
if command and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
