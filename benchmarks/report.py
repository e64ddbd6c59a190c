"""What the benchmarks share: the time of a session, tables, and how a script writes its section of
README.md.

Run alone, it names the machine.

Measurements that are compared are taken in turns in one process, several times, and the fastest of
each counts: what else runs on the machine can only add time. For the same reason they are of
processor time, of one thread.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

import clickgym
from clickgym.agents import Agent
from clickgym.core.statistics import half_width

README = Path(__file__).with_name("README.md")
PACKAGES = ("clickgym", "gymnasium", "numpy", "numba")


def seconds_per_session(
    env: gym.Env,
    name: str,
    horizon: int,
    sessions: int | None = None,
    engine: str = "auto",
    seed: int = 0,
) -> float:
    """Processor time of a session of an agent that knows the horizon, mean over a run of so many
    sessions; None plays all.
    """
    agent, n = clickgym.make_agent(name, env, horizon=horizon, seed=seed), sessions or horizon
    start = time.process_time()
    clickgym.run(agent, env, n, seed=seed, checkpoints=[n], engine=engine)
    return (time.process_time() - start) / n


def fastest_sessions(runs: Mapping[Any, tuple[Any, ...]], repeats: int) -> dict[Any, float]:
    """The least of several `seconds_per_session` of each run, taken in turns after all have
    compiled.

    Args:
        runs: by name, the environment, the agent, the horizon, and further arguments of
        `seconds_per_session`.
        repeats: how many there are of each.
    """
    for env, name, horizon, *_ in runs.values():
        seconds_per_session(env, name, horizon, 1)
    rounds = [[seconds_per_session(*run) for run in runs.values()] for _ in range(repeats)]
    return dict(zip(runs, map(min, zip(*rounds, strict=True)), strict=True))


def taken(what: str, words: Sequence[str]) -> tuple[list[str], str]:
    """A row of a table: what a process took by the clock, of the processors and of memory, with its
    imports; and what it said on standard error.
    """
    with tempfile.TemporaryFile("w+") as said:
        start = time.perf_counter()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        clock = time.perf_counter() - start
        said.seek(0)
        errors = said.read()
    print(errors, file=sys.stderr, flush=True)
    ended = "" if status == 0 else f" (ended with {os.waitstatus_to_exitcode(status)})"
    seconds, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e6
    return [what + ended, f"{clock:.1f} s", f"{seconds:.1f} s", f"{peak:.2f} GB"], errors.strip()


def printed(program: str, *arguments: object, **variables: str) -> str:
    """What a program prints that runs in a process of its own, with these variables in its
    environment.
    """
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(
        command, env=os.environ | variables, check=True, capture_output=True, text=True
    ).stdout


class Timed(Agent):
    """Another library's algorithm as an agent, which times itself.

    Args:
        choose: the list for the features of the candidates, or for None.
        learn: takes the list and the clicks.
    """

    def __init__(self, choose: Callable[[Any], Any], learn: Callable[[Any, Any], object]) -> None:
        self.choose, self.learn, self.seconds = choose, learn, 0.0

    def rank(self, observation: Any) -> np.ndarray:
        return np.asarray(
            self._timed(
                self.choose, observation["features"] if isinstance(observation, dict) else None
            )
        )

    def update(
        self, observation: Any, ranking: np.ndarray, clicks: np.ndarray, reward: float
    ) -> None:
        self._timed(self.learn, ranking, clicks)

    def _timed(self, function: Callable[..., Any], *arguments: Any) -> Any:
        start = time.process_time()
        result = function(*arguments)
        self.seconds += time.process_time() - start
        return result


def mean_text(values: Sequence[float]) -> str:
    """The mean of some runs, and half of its 95 % interval by Student's t."""
    half = np.std(values, ddof=1) * half_width(len(values))
    return f"{np.mean(values):,.0f} ± {half:,.0f}"


def versions(*packages: str) -> str:
    """The versions of some packages that are installed here."""
    return ", ".join(f"{package} {version(package)}" for package in packages)


def machine() -> str:
    """Processor, number of cores, system, versions, and how busy the machine is."""
    cpuinfo = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:\s*(.+)", cpuinfo.read_text()) if cpuinfo.exists() else None
    processor = found.group(1) if found else platform.processor() or platform.machine()
    return (
        f"{processor}, {os.cpu_count()} cores, {platform.system()}; Python {platform.python_version()}, {versions(*PACKAGES)}; "
        f"load average at the end {os.getloadavg()[0]:.1f}"
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns, the first to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * widths[0]] + ["-" * (width - 1) + ":" for width in widths[1:]]
    aligned = [
        [row[0].ljust(widths[0])]
        + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        for row in (header, rule, *rows)
    ]
    return "\n".join("| " + " | ".join(row) + " |" for row in aligned)


def side_by_side(corner: str, columns: Mapping[str, Mapping[str, str]]) -> str:
    """A `table` of columns by their headers, which have their cells by the names of the rows, in
    the order of the first.
    """
    rows = [
        [name, *(cells.get(name, "–") for cells in columns.values())]
        for name in next(iter(columns.values()))
    ]
    return table([corner, *columns], rows)


def publish(text: str) -> None:
    """Print what the running script measured; with ``--write`` replace its section of README.md by
    it.
    """
    script = Path(sys.argv[0])
    print(text)
    if "--write" in sys.argv:
        start, stop = (f"<!-- {mark} of {script.name} -->" for mark in ("start", "end"))
        note = f"`python benchmarks/{script.name} --write`, {datetime.date.today()}: {machine()}."
        before, rest = README.read_text(encoding="utf-8").split(start)
        after = rest.split(stop)[1]
        README.write_text(f"{before}{start}\n\n{text}\n\n{note}\n\n{stop}{after}", encoding="utf-8")


if __name__ == "__main__":
    print(machine())
