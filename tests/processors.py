"""Tests of the digits under conditions of other processors and C libraries: with OpenBLAS's kernels
for other processors, without NumPy's choice of vector instructions, and with a C library without
FMA.

python tests/processors.py [--short]

Each variation runs in its own processes; ``--short`` runs only the last variation, which combines
all others, on the frozen digits. A variation changes nothing if the processor or the C library
lacks the feature that it turns off.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from numpy._core._multiarray_umath import __cpu_dispatch__ as numpy_levels
from numpy._core._multiarray_umath import __cpu_features__ as features

ROOT = Path(__file__).resolve().parents[1]
NUMPY = {"NPY_DISABLE_CPU_FEATURES": " ".join(numpy_levels)}
LIBRARY = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA"}
VARIATIONS = {
    "NumPy's lowest level": NUMPY,
    "glibc without AVX2 and FMA": LIBRARY,
    "oldest of all": {"OPENBLAS_CORETYPE": "Prescott", **NUMPY, **LIBRARY},
}
if features.get("AVX512F"):  # without it, the kernels for SkylakeX are illegal instructions
    VARIATIONS = {"OpenBLAS for SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"}, **VARIATIONS}
DIGITS = ["tests/test_digits.py"]
TESTS = [*DIGITS, "tests/runner/test_engines.py", "tests/envs/users/test_memory.py"]
TESTS += ["tests/envs/test_ties_in_best_lists.py"]
TESTS += map(str, sorted(ROOT.glob("tests/envs/users/*contextual*.py")))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="the last variation, over the digits")
    is_short = parser.parse_args().short
    names = list(VARIATIONS)[-1:] if is_short else list(VARIATIONS)
    os.chdir(ROOT)
    failed = []
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    pytest += ["-n", "2", "--dist", "load" if is_short else "loadfile"]
    pytest += DIGITS if is_short else TESTS
    for name in names:
        start = time.perf_counter()
        command = [*pytest, "-m", "not slow"]
        is_bad = subprocess.run(command, env=os.environ | VARIATIONS[name], check=False).returncode
        failed += [name] if is_bad else []
        words = "failed" if is_bad else "passed"
        print(f"{name}: {words} in {time.perf_counter() - start:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
