"""Processor seconds of the tests by file: of compiling, of other processes that tests start, and of the rest.

python benchmarks/tests.py                       what `make test` runs
python benchmarks/tests.py --empty -- tests/lab  arguments of pytest; from an empty cache of kernels
python benchmarks/tests.py --kernels 30          the compiled functions that cost most, and the tests that compiled them
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from numba.core import event

DEFAULT = ["-m", "not slow", "--ignore", "tests/lab"]
"""What `make test` runs."""


def of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Compiling(event.Listener):
    """Processor time in numba's compiler, by compiled function; what a function compiles on its way is its own."""

    def __init__(self) -> None:
        self.starts: list[tuple[float, float]] = []
        self.total = 0.0
        self.functions: list[tuple[float, str]] = []

    def on_start(self, event: event.Event) -> None:
        self.starts.append((time.thread_time(), self.total))

    def on_end(self, event: event.Event) -> None:
        start, total = self.starts.pop()
        self.total = total + time.thread_time() - start
        if not self.starts and event.data:  # tests of what is shown while compiling trigger events without data
            function = event.data["dispatcher"].py_func
            self.functions.append((self.total - total, f"{function.__module__}.{function.__qualname__}"))


class Seconds:
    """A plugin of pytest that measures every test; what is shared by the tests of a file counts for the first of them."""

    def __init__(self) -> None:
        self.compiling = Compiling()
        self.tests: dict[str, tuple[float, float, float]] = {}
        self.compiled: dict[str, list[tuple[float, str]]] = defaultdict(list)
        event.register("numba:compile", self.compiling)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        start, compiling, children = time.process_time(), self.compiling.total, of_children()
        self.compiling.functions.clear()
        result = yield
        compiling, children = self.compiling.total - compiling, of_children() - children
        self.tests[item.nodeid] = compiling, children, time.process_time() - start - compiling
        for seconds, name in self.compiling.functions:
            self.compiled[name].append((seconds, item.nodeid))
        return result


def print_rows(title: str, rows: dict[str, tuple[float, float, float]], most: int | None = None) -> None:
    print(f"\n{'all':>8} {'compiling':>10} {'processes':>10} {'the rest':>10}  {title}")
    ordered = sorted(rows.items(), key=lambda row: -sum(row[1]))
    for name, (compiling, processes, rest) in ordered[:most]:
        print(f"{compiling + processes + rest:8.1f} {compiling:10.1f} {processes:10.1f} {rest:10.1f}  {name}")


def main() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--empty", action="store_true", help="begin with an empty cache of kernels")
    parser.add_argument("--tests", type=int, default=20, help="how many of the slowest tests are printed")
    parser.add_argument("--kernels", type=int, default=0, help="how many compiled functions are printed")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, after --")
    options = parser.parse_args()
    os.chdir(Path(__file__).resolve().parents[1])
    with tempfile.TemporaryDirectory() as folder:
        if options.empty:
            os.environ["XDG_CACHE_HOME"] = folder
        seconds = Seconds()
        status = pytest.main(["-q", "-p", "no:cacheprovider", *(options.pytest or DEFAULT)], plugins=[seconds])
    files: dict[str, Counter[int]] = defaultdict(Counter)
    for test, parts in seconds.tests.items():
        files[test.partition("::")[0]].update(dict(enumerate(parts)))
    rows = {file: (parts[0], parts[1], parts[2]) for file, parts in files.items()}
    measured = sum(compiling + rest for compiling, _, rest in seconds.tests.values())
    rows["imports and collection"] = (0.0, 0.0, time.process_time() - measured)
    rows["sum"] = tuple(sum(column) for column in zip(*rows.values(), strict=True))  # type: ignore[assignment]
    print_rows("file", rows)
    print_rows("test", seconds.tests, options.tests)
    costs = sorted(seconds.compiled.items(), key=lambda entry: -sum(cost for cost, _ in entry[1]))
    for name, entries in costs[: options.kernels]:
        print(f"{sum(cost for cost, _ in entries):8.1f} in {len(entries):3}  {name}: {entries[0][1]}")
    print(f"{len(seconds.compiled)} functions compiled {sum(map(len, seconds.compiled.values()))} times")
    return status


if __name__ == "__main__":
    sys.exit(main())
