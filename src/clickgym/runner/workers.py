"""Workers: their number, their machines, and their end. They ignore Ctrl-C, on which the process
that started them ends them.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import Any

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError
from joblib.parallel import LokyBackend, get_active_backend

from ..core.checks import is_integer, short
from .own_code import Values, set_values

ANSWERS_IN = 10.0
"""Seconds in which a cluster must answer."""


def in_parallel(
    calls: Iterable[tuple[Callable[..., Any], *tuple[Any, ...]]],
    n_jobs: int,
    prefer: str,
    return_as: str = "generator_unordered",
    values: Values | None = None,
) -> Iterator[Any]:
    """Run functions in workers.

    Args:
        calls: functions, each with its arguments.
        n_jobs: as in joblib.
        prefer: ``"threads"`` or ``"processes"``; a ``joblib.parallel_config`` comes first.
        return_as: ``"generator"`` yields the results in the order of the calls,
            ``"generator_unordered"`` each when it is there.
        values: what this program has set in own modules, which processes import from their files.

    Returns:
        The results.
    """
    backend, _ = get_active_backend(prefer=prefer)
    is_loky = isinstance(backend, LokyBackend)
    start = {"initializer": start_worker, "initargs": tuple(sys.path)} if is_loky else {}
    parallel = joblib.Parallel(
        n_jobs=n_jobs, prefer=prefer, return_as=return_as, batch_size=1, **start
    )
    known = None if getattr(backend, "supports_sharedmem", False) else values
    with ignoring_interrupts():
        results: Iterator[Any] = parallel(
            joblib.delayed(call_with)(known, function, *arguments) for function, *arguments in calls
        )
    return results


def what_broke(error: BrokenExecutor) -> str:
    """Why a pool of worker processes broke, in a line: one died, or could not load its data."""
    if error.__cause__ is None or isinstance(error, TerminatedWorkerError):
        how = re.search(r"SIG[A-Z]+", str(error))
        return (
            f"a worker process died{f' ({how[0]})' if how else ''}: memory ran out, or a kernel "
            "wrote outside of its arrays, which check_agent and check_click_model notice"
        )
    lines = [line for line in str(error.__cause__).splitlines() if line.strip('" ')]
    return f"a worker process could not load what was sent to it: {lines[-1].strip()}"


def call_with(values: Values | None, function: Callable[..., Any], *arguments: Any) -> Any:
    """Set what the program has set, and call a function."""
    set_values(values or {})
    return function(*arguments)


def start_worker(*_: str) -> None:
    """Set up a worker process; where modules are found elsewhere than before, joblib starts new
    ones.
    """
    if "PYTHONFAULTHANDLER" not in os.environ:  # or joblib prints a page; the parent has a line
        faulthandler.enable(open(os.devnull, "w"))  # noqa: SIM115 (as long as the process)


def check_workers(n_jobs: int) -> None:
    """Check a number of workers; -1 means one for each processor."""
    if not is_integer(n_jobs) or n_jobs == 0:
        raise ValueError(
            f"n_jobs is {short(n_jobs)}; expected a number of workers, or -1 for one per processor"
        )


@contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Context in which joblib uses the workers of a Dask cluster, or this machine if the address is
    None.

    Args:
        address: of the scheduler, such as ``"tcp://host:8786"``.

    Raises:
        ValueError: Dask is not installed, no scheduler answers at the address, or the cluster has
            no workers.
    """
    if address is None:
        yield
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise ValueError(
            '--cluster requires Dask; install it with: pip install "clickgym[cluster]"'
        ) from None
    try:
        client = Client(address, timeout=ANSWERS_IN)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"--cluster {address}: no scheduler answers ({error or type(error).__name__}); "
            "expected the address of one that runs, such as tcp://host:8786"
        ) from None
    with client, joblib.parallel_config(backend="dask"):
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise ValueError(
                f"--cluster {address}: it has no workers; start some with: dask worker {address}"
            )
        client.run(search_also, [os.path.abspath(folder) for folder in sys.path])
        yield


def search_also(folders: list[str]) -> None:
    """Find modules in further folders."""
    sys.path.extend(folder for folder in folders if folder not in sys.path)


@contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Context in which started processes ignore Ctrl-C, which a terminal sends to all of them; this
    process handles it and ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
