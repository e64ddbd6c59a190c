"""The size of MSLR-WEB10K: seconds of processors, which other processes hardly change, and memory,
in a process of its own.
"""

import subprocess
import sys

import numpy as np
import pytest

N_QUERIES, LENGTH, N_FEATURES = 6_000, 120, 136

PROGRAM = """
import re, sys, time
from pathlib import Path
import clickgym, gymnasium as gym
from clickgym_logs import judged_instance, read_judgments

start = time.process_time()
judged = read_judgments(sys.argv[1])
instance = judged_instance(judged, n_items=100)
seconds = time.process_time() - start
env = gym.make("ContextualDBNRank-v0", instance=instance)
clickgym.run("Random", env, 1_000, seed=0)  # compiles
before = time.process_time()
clickgym.run("Random", env, 20_000, seed=0)
session = (time.process_time() - before) / 20_000
print(judged.features.shape, instance.n_positions)
status = Path("/proc/self/status").read_text()  # ru_maxrss begins with the memory of the parent
print(seconds, session, 1024 * int(re.search(r"VmHWM:\\s*(\\d+)", status)[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_the_size_of_mslr(tmp_path):
    """720,000 documents with 136 features: less than 1.5 GB and 60 s; at most 60 µs a session."""
    rng, path = np.random.default_rng(0), tmp_path / "train.txt"
    words = [  # of each feature, made once: to format 98,000,000 numbers takes minutes
        [f"{place}:{value}" for value in rng.random(1_000).round(6).tolist()]
        for place in range(1, N_FEATURES + 1)
    ]
    with path.open("w") as file:
        for query in range(N_QUERIES):
            chosen = rng.integers(0, 1_000, (N_FEATURES, LENGTH)).tolist()
            columns = [[pairs[k] for k in row] for pairs, row in zip(words, chosen, strict=True)]
            grades = rng.integers(0, 5, LENGTH).tolist()
            for grade, pairs in zip(grades, zip(*columns, strict=True), strict=True):
                file.write(f"{grade} qid:{query} {' '.join(pairs)}\n")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True
    )
    path.unlink()
    shape, figures = done.stdout.splitlines()
    print(figures)
    assert shape == f"({N_QUERIES * LENGTH}, {N_FEATURES}) 10"
    seconds, session, n_bytes = map(float, figures.split())
    assert seconds < 60
    assert session < 60e-6
    assert n_bytes < 1.5e9
