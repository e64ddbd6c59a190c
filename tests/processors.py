"""Tests of digits as other processors and C libraries compute them: by OpenBLAS's kernels for other
processors, by NumPy without vector instructions of its choice, by a C library without FMA.

python tests/processors.py [--short]

Each variation is played in processes of its own, in which it is first made sure that it takes
effect; ``--short`` is the last one alone, of all together, over the frozen digits.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from numpy._core._multiarray_umath import __cpu_dispatch__ as numpy_levels

ROOT = Path(__file__).resolve().parents[1]
NUMPY = {"NPY_DISABLE_CPU_FEATURES": " ".join(numpy_levels)}
LIBRARY = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA"}
VARIATIONS = {
    "OpenBLAS for SkylakeX": {"OPENBLAS_CORETYPE": "SkylakeX"},
    "NumPy's lowest level": NUMPY,
    "glibc without AVX2 and FMA": LIBRARY,
    "oldest of all": {"OPENBLAS_CORETYPE": "Prescott", **NUMPY, **LIBRARY},
}
DIGITS = ["tests/test_digits.py"]
TESTS = [*DIGITS, "tests/runner/test_engines.py", "tests/envs/test_memory.py"]
TESTS += ["tests/envs/test_order.py", *map(str, sorted(ROOT.glob("tests/envs/*contextual*.py")))]

PROBE = """
import array, ctypes, glob, math, os, zlib, numpy
from numpy._core._multiarray_umath import __cpu_features__ as features
folder = os.path.dirname(numpy.__file__)
core = "none"
for file in glob.glob(folder + ".libs/*openblas*") + glob.glob(folder + "/.libs/*openblas*"):
    name = getattr(ctypes.CDLL(file), "scipy_openblas_get_corename64_", None)
    if name is not None:
        name.restype = ctypes.c_char_p
        core = name().decode()
levels = [name for name in os.environ.get("NPY_DISABLE_CPU_FEATURES", "").split() if features[name]]
values = array.array("d", [math.pow(i, 0.3) for i in range(1, 30000)])
print(core, ",".join(levels) or "none", zlib.crc32(values))
"""
"""Prints the kernels of OpenBLAS (those for Prescott are called Katmai), the levels of NumPy that
should be off and are not, and a hash of powers by the C library.
"""


def probe(variation: dict[str, str]) -> tuple[str, str, str]:
    command = [sys.executable, "-W", "ignore", "-c", PROBE]
    text = subprocess.check_output(command, env=os.environ | variation, text=True)
    core, levels, powers = text.split()
    return core, levels, powers


def without_effect(variation: dict[str, str], usual: tuple[str, str, str]) -> list[str]:
    """The variables of a variation that change nothing here."""
    core, levels, powers = probe(variation)
    wanted = variation.get("OPENBLAS_CORETYPE", core).replace("Prescott", "Katmai")
    faults = {
        f"OpenBLAS uses the kernels for {core}": core != wanted,
        f"NumPy still uses {levels}": levels != "none",
        "the C library computes the same": "GLIBC_TUNABLES" in variation and powers == usual[2],
    }
    return [fault for fault, is_so in faults.items() if is_so]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true", help="the last variation, over the digits")
    is_short = parser.parse_args().short
    names = list(VARIATIONS)[-1:] if is_short else list(VARIATIONS)
    os.chdir(ROOT)
    usual, failed = probe({}), []
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    pytest += ["-n", "2", "--dist", "load" if is_short else "loadfile"]
    pytest += DIGITS if is_short else TESTS
    for name in names:
        start = time.perf_counter()
        for fault in without_effect(VARIATIONS[name], usual):
            print(f"{name}: {fault}; this processor or library cannot be varied so", flush=True)
        command = [*pytest, "-m", "not slow"]
        is_bad = subprocess.run(command, env=os.environ | VARIATIONS[name], check=False).returncode
        failed += [name] if is_bad else []
        words = "failed" if is_bad else "passed"
        print(f"{name}: {words} in {time.perf_counter() - start:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
