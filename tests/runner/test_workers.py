"""No worker outlives the process that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from clickgym.runner.workers import SearchPath, watched

WORKER = """
import os, sys, time
from clickgym.runner.workers import SearchPath, watched
print(os.getpid(), flush=True)
watched(SearchPath(), int(sys.argv[1]), time.sleep, 60)
"""
PARENT = """
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid())])
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a process is not told of its parent")
def test_a_worker_ends_when_its_parent_is_killed():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, WORKER], stdout=subprocess.PIPE, text=True
    ) as parent:
        worker = int(parent.stdout.readline())
        time.sleep(0.5)
        os.kill(worker, 0)
        parent.kill()
        parent.wait()
        end = time.monotonic() + 10
        while time.monotonic() < end and alive(worker):
            time.sleep(0.1)
        if still := alive(worker):
            os.kill(worker, signal.SIGKILL)
        assert not still


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_is_no_worker_of_this_process_is_not_ended():
    assert watched(SearchPath(), os.getpid(), sum, [1, 2]) == 3
