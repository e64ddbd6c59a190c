"""Interrupt every command that writes, at random moments: kill it, press Ctrl-C, let the disk be full.

    python benchmarks/reliability/interrupts.py --each 6

Afterwards no half-written file may have the name of a whole one; Ctrl-C says at most one line, and a full disk one, without a
traceback; and the same command, run again, ends with the tables and files of one that nobody interrupted. Moments are uniform
over the time that the command takes, from when the interpreter itself has started. A full disk is a small file system in
memory (Linux, with the right to mount); without that right, a limit to the size of files stands in for it.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import gymnasium as gym
import polars
import typer
from PIL import Image

import clickgym
from clickgym.core.files import check_seal
from clickgym.offline import write_tidy

COMMAND = (sys.executable, "-m", "clickgym")
LARGEST = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
"""How large a file may be."""

AGENT = """
import time
import numpy as np
from clickgym.agents import Agent

class Slow(Agent):
    def __init__(self, n_items, n_positions, *, seed=None):
        self.items = np.arange(n_positions)

    def rank(self, observation):
        time.sleep(0.002)
        return self.items

    def update(self, observation, ranking, clicks, reward):
        pass
"""


class Case(NamedTuple):
    """A command that writes into a folder ``out`` of the folder that it is run in.

    Attributes:
        words: after ``clickgym``.
        tables: what it has written, to be compared; paths in ``out``, or ``"stdout"``.
        before: a command that makes ``out``, where there must be one.
    """

    words: str
    tables: tuple[str, ...]
    before: str = ""


SWEEP = ("results.parquet",)
STUDY = ("pbm-small/results.parquet", "pbm-realistic/results.parquet", "pbm-synthetic.json")
CASES = {
    "run": Case("run PBMRank-v0 CMRank-v0 --agents TopRank Random --horizon 3e5 --runs 10 --jobs 2 --out out", SWEEP),
    "run, in processes": Case("run PBMRank-v0 --agents mine:Slow Random --horizon 200 --runs 4 --jobs 2 --out out", SWEEP),
    "merge": Case("merge a b --out out", SWEEP),
    "study": Case("study pbm-synthetic --scale 0.0001 --jobs 2 --out out", STUDY),
    "fit": Case("fit log.csv --model PBM CM UBM --out out/query.json", ("query.json",)),
    "features": Case("features ratings.csv --positions 3 --dimension 4 --out out/films.json", ("films.json",)),
    "evaluate": Case("evaluate log.csv --policy uniform --estimator pbm dcm", ("stdout",)),
    "report": Case("report out --html --markdown --latex --bounds", (*SWEEP, "summary.csv"), "merge a b --out out"),
}


def prepare(folder: Path) -> None:
    """What the commands read."""
    (folder / "mine.py").write_text(AGENT)
    env = gym.make("PBMRank-v0")
    write_tidy(clickgym.record(clickgym.make_agent("Random", env, seed=0), env, 3000, seed=0), folder / "log.csv")
    rows = [f"{user},{item},{(user * item) % 5 + 1}" for user in range(1, 60) for item in range(1, 40)]
    (folder / "ratings.csv").write_text("\n".join(["userId,movieId,rating", *rows, ""]))
    for name, agent in (("a", "TopRank"), ("b", "Random")):
        clickgym.sweep(["PBMRank-v0", "CMRank-v0"], [agent], 1000, 30, out=folder / name)


# --------------------------------------------------------------------------------------------------------------- whole?


def fault_of(file: Path) -> str | None:
    """What is wrong with a file that has the name of a whole one."""
    readers: dict[str, Callable[[], Any]] = {
        ".json": lambda: json.loads(file.read_text()),
        ".parquet": lambda: (check_seal(file.read_bytes()), polars.read_parquet(file)),
        ".png": lambda: Image.open(file).load(),
        ".svg": lambda: ElementTree.parse(file),
        ".html": lambda: file.read_text().rstrip().endswith("</html>") or 1 / 0,
        ".tex": lambda: file.read_text().endswith("\\end{table}\n") or 1 / 0,
        ".md": lambda: file.read_text().endswith("\n") or 1 / 0,
        ".csv": lambda: polars.read_csv(file).null_count().sum_horizontal().item() == 0 or 1 / 0,
    }
    try:
        readers[file.suffix]()
    except Exception as error:
        return f"{file.name}: {error!r}"
    return None


def faults_in(out: Path, partial: bool) -> list[str]:
    """What is wrong with the files of a folder; ``partial``: drafts may be left."""
    files = [file for file in out.rglob("*") if file.is_file()]
    left = [] if partial else [f"{file.name} was left" for file in files if file.name.endswith(".partial")]
    whole = [file for file in files if not any(part.endswith(".partial") for part in file.relative_to(out).parts)]
    return [*left, *filter(None, map(fault_of, whole))]


def content(case: Case, out: Path, printed: str) -> list[Any]:
    """What is compared: rows of tables, what JSON says; without the times in a summary."""
    found: list[Any] = []
    for name in case.tables:
        if name == "stdout":
            found.append(printed)
        elif name.endswith(".parquet"):
            found.append(polars.read_parquet(out / name).rows())
        elif name.endswith(".csv"):
            found.append(polars.read_csv(out / name).select("env", "instance", "agent", "regret", "reward").rows())
        else:
            found.append(json.loads((out / name).read_text()))
    return found


# ---------------------------------------------------------------------------------------------------------- interrupting


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str
    seconds: float


def run(words: str, folder: Path, sent: signal.Signals | None = None, after: float = 0.0, largest: int = LARGEST) -> Done:
    """Run a command; perhaps with a signal after some seconds, Ctrl-C to all of its processes as a terminal does it."""
    began = time.monotonic()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    process = subprocess.Popen(
        [*COMMAND, *words.split()], cwd=folder, env=environment, start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest)),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    if sent is not None:
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, sent)
    out, err = process.communicate(timeout=600)
    return Done(process.returncode, out, err, time.monotonic() - began)


def mount(out: Path, size: int | None) -> bool:
    """A file system of a size in memory, or another size for it; None takes it away, and leaves its files."""
    if size is None:
        kept = shutil.copytree(out, out.with_name("kept"))
        subprocess.run(["umount", out], check=True)
        shutil.rmtree(out)
        kept.rename(out)
        return True
    how = ["-o", f"remount,size={size}"] if out.is_mount() else ["-t", "tmpfs", "-o", f"size={size}", "tmpfs"]
    return subprocess.run(["mount", *how, out], capture_output=True, check=False).returncode == 0


def fill(case: Case, folder: Path, size: int, rng: random.Random) -> tuple[str, Done, list[str]]:
    """Run a command on a disk that is too small for it, or with a limit to the size of files.

    Returns:
        How small it was, in words; the command; and what did not hold.
    """
    out, free, faults = folder / "out", rng.randrange(4096, max(size, 8192)), []
    if out.is_mount():
        mount(out, free + _used(out))
        moment, done = f"{free:,} bytes free", run(case.words, folder)
        faults = faults_in(out, partial=False)  # who lives cleans up
        mount(out, None)
    else:
        moment, done = f"files of {free // 10:,} bytes", run(case.words, folder, largest=free // 10)
    if done.code == 1 and "cannot be written: " not in done.err:
        faults.append(f"no word of the disk: {done.err[-300:]}")
    return moment, done, faults


CODES = {"kill": (0, -signal.SIGKILL), "Ctrl-C": (0, 130, -signal.SIGINT), "full disk": (0, 1)}
"""With what a command may end. While the interpreter itself ends, Ctrl-C is a signal again; a shell calls both 130."""


def interrupt(
    case: Case, kind: str, folder: Path, whole: tuple[Done, list[Any]], size: int, rng: random.Random, start: float
) -> tuple[str, list[str]]:
    """Interrupt a command at a random moment, look, and run it again.

    Returns:
        When, in words; and what did not hold.
    """
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    if kind == "full disk":
        mount(out, 1 << 30)
    if case.before:
        run(case.before, folder)
    if kind == "full disk":
        moment, first, faults = fill(case, folder, size, rng)
    else:
        after, faults = rng.uniform(start, whole[0].seconds * 1.05), []
        moment = f"{after:.2f} of {whole[0].seconds:.2f} s"
        first = run(case.words, folder, signal.SIGKILL if kind == "kill" else signal.SIGINT, after)
    if first.code not in CODES[kind]:
        faults.append(f"exit code {first.code}")
    told = [line for line in first.err.splitlines() if line.startswith("clickgym: ")]
    if "Traceback" in first.err or "Exception" in first.err or len(told) > 1:
        faults.append(f"not one line: {first.err[-600:]}")
    faults += faults_in(out, partial=True)
    again = run(case.words, folder)
    if again.code != 0:
        faults.append(f"again: exit code {again.code}: {again.err[-300:]}")
    else:
        faults += [f"again: {fault}" for fault in faults_in(out, partial=False)]
        if content(case, out, again.out) != whole[1]:
            faults.append("again: other values")
    return moment, faults


def _used(out: Path) -> int:
    return sum(-(-file.stat().st_size // 4096) * 4096 for file in out.rglob("*") if file.is_file())


def main(each: int = 6, only: str = "", seed: int = 0) -> None:
    """Interrupt each command so often in each way, or one of them; print what was tried and held, and all that did not."""
    rng, failed, total = random.Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", ""], check=True)
        start = 1.5 * (time.monotonic() - began)
        print(f"{'':20s}" + "".join(f"{kind:>16s}" for kind in CODES) + "   (held of tried)", flush=True)
        for command in [only] if only else CASES:
            case, row = CASES[command], ""
            for _ in range(2):  # the first fills the cache of kernels
                shutil.rmtree(folder / "out", ignore_errors=True)
                if case.before:
                    run(case.before, folder)
                (folder / "out").mkdir(exist_ok=True)
                size = _used(folder / "out")
                whole = run(case.words, folder)
                assert whole.code == 0, whole.err
            size = _used(folder / "out") - size
            expected = whole, content(case, folder / "out", whole.out)
            for kind in CODES:
                held = 0
                for _ in range(each):
                    moment, faults = interrupt(case, kind, folder, expected, size, rng, start)
                    held += not faults
                    for fault in faults:
                        print(f"  {command}, {kind}, {moment}: {fault}", file=sys.stderr, flush=True)
                row += f"{held:>11d} of {each:<2d}"
                failed, total = failed + each - held, total + each
            print(f"{command:20s}{row}", flush=True)
    print(f"{total - failed} of {total} held; clickgym {clickgym.__version__}, seed {seed}")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    typer.run(main)
