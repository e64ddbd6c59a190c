"""What all tests share: where the real logs are, and property tests that try the same examples
every time.
"""

from __future__ import annotations

import gc
import os
import re
import runpy
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# no deadline: first calls compile
settings.register_profile("clickgym", derandomize=True, deadline=None)
settings.load_profile("clickgym")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real click logs, which the project does not contain; tests that need it are
    skipped without it.
    """
    folder = Path(
        os.environ.get("CLICKGYM_DATA", Path(__file__).resolve().parents[1] / "shared" / "data")
    )
    if not folder.is_dir():
        pytest.skip(f"no real logs: {folder} is not a folder (CLICKGYM_DATA names another)")
    return folder


# pytest-xdist sets it for its workers; commands follow it where there is no terminal
os.environ.pop("COLUMNS", None)
# no worker processes but where a test asks for them by a number of jobs
os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")
# torch, for which the networks are too small for more
os.environ.setdefault("OMP_NUM_THREADS", "1")
# a tenth of the time went into looking for garbage, most of it in what is loaded and stays
gc.set_threshold(1_000_000, 20, 20)


def pytest_collection_finish() -> None:
    gc.freeze()


TOGETHER = {
    "pairs": (
        *("engines", "digits", "edges", "every_agent", "check_agent", "linear_agents"),
        *("contextual_envs", "contextual_worlds", "memory", "episodes", "fuzz"),
        *("cascade_nonstationary", "cascade_restarts", "dbgd", "grab", "state_agents"),
    ),
    "workers": ("sweep", "state"),
}
"""Files that share the kernels of `tests/pairs.py`, or two worker processes."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Whole files go to a worker, and those of `TOGETHER` to one: what they share is made once."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            name = Path(file).stem.removeprefix("test_")
            return next((scope for scope, names in TOGETHER.items() if name in names), file)

    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def not_drawing() -> Iterator[None]:
    """Figures are made, but their files are empty: for tests that say nothing of pictures."""
    from clickgym.runner.reports import figures  # loads matplotlib, which most tests do not need

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "figure_bytes", lambda *arguments, **options: b"")
        patch.setattr(figures.Figure, "savefig", lambda *arguments, **options: None)
        yield


@pytest.fixture
def only_svg() -> Iterator[None]:
    """The other files of each figure are empty: for tests that read the SVG."""
    from clickgym.runner.reports import figures

    whole = figures.figure_bytes

    def draw(figure: Any, kind: str, origin: str | None = None) -> bytes:
        return whole(figure, kind, origin) if kind == "svg" else b""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "figure_bytes", draw)
        yield


undrawn = pytest.fixture(not_drawing)
undrawn_here = pytest.fixture(not_drawing, scope="module")  # for what the tests of a file share


@pytest.fixture(scope="module")  # idle processes take time, too
def cluster():
    """A Dask scheduler and two workers, processes that are started anew when they die."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture
def killing(cluster):
    """Kills one worker of the cluster as soon as it works, and tells afterwards whether it did."""
    from distributed import Client

    killed, ended = [], threading.Event()

    def kill():
        with Client(cluster) as client:
            while not ended.wait(0.02):
                busy = [worker for worker, tasks in client.processing().items() if tasks]
                if busy:
                    time.sleep(0.2)
                    killed.append(client.run(os.getpid, workers=busy[:1])[busy[0]])
                    os.kill(killed[0], signal.SIGKILL)
                    return

    thread = threading.Thread(target=kill)
    thread.start()
    yield killed
    ended.set()
    thread.join()
    assert killed, "no worker was killed while it worked"


@pytest.fixture
def printed(monkeypatch, capsys):
    """What a command prints in a terminal of a width, or where there is none."""

    from clickgym.command_line import (
        main,
    )  # which the process that hands out the tests does not need

    def run(words, width=None):
        with monkeypatch.context() as patch:
            if width is not None:
                for name, value in {
                    "COLUMNS": width,
                    "TTY_COMPATIBLE": 1,
                    "TERM": "xterm",
                    "NO_COLOR": 1,
                }.items():
                    patch.setenv(name, str(value))
            assert main(words) == 0
        return re.sub("\x1b[^m]*m", "", capsys.readouterr().out)

    return run


@pytest.fixture
def program(monkeypatch, capsys):
    """What a Python program prints, run in a folder as ``__main__`` with its words; to start an
    interpreter and to import everything again would take longer than most programs.
    """

    def run(file, *words, folder):
        with monkeypatch.context() as patch:
            patch.chdir(folder)
            patch.syspath_prepend(Path(file).parent)
            patch.setattr(sys, "argv", [str(file), *words])
            runpy.run_path(str(file), run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture
def refused(capsys):
    """What a command says that refuses its words."""

    from clickgym.command_line import main

    def run(words):
        assert main(words) == 2
        return capsys.readouterr().err

    return run


@pytest.fixture(autouse=True)
def own_modules(tmp_path_factory):
    """Modules that a test wrote are not taken for those of the same name that another one
    writes.
    """
    before, paths = set(sys.modules), list(sys.path)
    yield
    written = str(tmp_path_factory.getbasetemp())
    for name in sys.modules.keys() - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(written):
            del sys.modules[name]
    sys.path[:] = paths


@pytest.fixture(autouse=True)
def registries():
    """What a test registers is gone after it."""
    from registries import (
        restored,
    )  # loads the package, which the process that hands out the tests does not need

    with restored():
        yield
