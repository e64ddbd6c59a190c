"""Full disks and workers that die: told in one line, and what is finished is kept."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import clickgym
from clickgym.core.files import append

RUN = "run PBMRank-v0 --agents Random --horizon 100 --runs 2 --jobs 1 --out out"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# -------------------------------------------------------------------------------------------- disks


LIMITED = """
import resource, sys, warnings
from clickgym.__main__ import main

warnings.simplefilter("ignore")  # compiled kernels cannot be kept either
resource.setrlimit(resource.RLIMIT_FSIZE, (2500, resource.RLIM_INFINITY))
for words in sys.stdin:
    print("code", main(words.split()), file=sys.stderr)
"""
WRITERS = (RUN, "report b --out c")


def test_command_that_cannot_write_says_so_in_one_line(here):
    """A limit to the size of files refuses as a full disk does, and needs no privileges."""
    clickgym.sweep(["PBMRank-v0"], ["Random"], 200, 1, out="b", n_jobs=1)
    code, words = [sys.executable, "-c", LIMITED], "\n".join(WRITERS)
    done = subprocess.run(code, input=words, capture_output=True, text=True, check=True)
    line = r"^clickgym: \S+\.(?:jsonl|png): File too large$\ncode 2$"
    told = re.findall(line, done.stderr, re.MULTILINE)
    assert len(told) == len(WRITERS)


# ------------------------------------------------------------------------------------------ workers

KILLED = """
import os, signal
import numpy as np
from clickgym.agents import Agent

class Victim(Agent):
    def __init__(self, n_items, n_positions, *, seed=None):
        self.items = np.arange(n_positions)

    def rank(self, observation):
        return self.items

    def update(self, observation, ranking, clicks, reward):
        if not os.path.exists("spared"):
            os.kill(os.getpid(), signal.{signal})
"""


@pytest.mark.slow
@pytest.mark.parametrize("signal", ["SIGKILL", "SIGSEGV"])
def test_a_worker_that_dies(here, signal):
    """One line says so, and the sweep goes on."""
    Path("victim.py").write_text(KILLED.format(signal=signal))
    words = RUN.replace("Random", "Random victim:Victim").replace("2 --jobs 1", "4 --jobs 2")
    command = [sys.executable, "-m", "clickgym", *words.split()]
    first = subprocess.run(command, capture_output=True, text=True, check=False)
    assert first.returncode == 1
    _, line = first.stderr.splitlines()
    assert line.startswith(f"clickgym: a worker process died ({signal})")
    Path("spared").touch()
    subprocess.run(command, capture_output=True, text=True, check=True)
    assert clickgym.Results("out").frame.filter(step=100).height == 8


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="it stands for a full disk")
def test_a_full_disk_names_the_file():
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        append(Path("/dev/full"), "a line")
