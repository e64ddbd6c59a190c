"""Parallel workers for sweeps.

Worker processes ignore Ctrl-C; the process that started the workers handles Ctrl-C and ends them.
This is the only module that imports joblib.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from importlib import import_module
from pickle import PicklingError
from typing import Any

import joblib
from joblib.parallel import LokyBackend, SequentialBackend, get_active_backend


def run_in_parallel(
    calls: Iterable[tuple[Callable[..., Any], *tuple[Any, ...]]],
    n_jobs: int,
    prefer: str,
    return_as: str = "generator_unordered",
    files: Mapping[str, str | None] | None = None,
) -> Iterator[Any]:
    """Call functions in parallel workers, and yield their results.

    joblib keeps worker processes for the next call. These processes have imported modules from
    files, so new processes are started if one of your files has changed.

    Args:
        calls: tuples of a function and its arguments.
        n_jobs: the largest number of workers; -1 means one worker per processor. There are never
            more worker processes than calls, except that joblib starts at least two or none.
        prefer: the kind of workers, ``"threads"`` or ``"processes"``. A ``joblib.parallel_config``
            around the call takes precedence.
        return_as: ``"generator"`` yields the results in the order of the calls; by default, results
            are yielded in the order in which they are finished.
        files: digests of your own modules, keyed by name; by default, none.

    Yields:
        The result of each call.

    Raises:
        ValueError: the backend of a ``joblib.parallel_config`` around the call returns no result
            before all calls are finished.
    """
    backend, _ = get_active_backend(prefer=prefer)
    if not (isinstance(backend, SequentialBackend) or backend.supports_return_generator):
        raise ValueError(
            f"joblib's {type(backend).__name__} returns no run before all runs are finished, so "
            "finished runs would be lost if one fails; choose loky, threading or dask"
        )
    calls, start = [*calls], dict[str, Any]()
    if isinstance(backend, LokyBackend):  # joblib keeps its processes if `start` stays the same
        start = {"initializer": start_worker, "initargs": (*sys.path, files)}
        n_jobs = min(joblib.effective_n_jobs(n_jobs), max(len(calls), 2))
    parallel = joblib.Parallel(
        n_jobs=n_jobs, prefer=prefer, return_as=return_as, batch_size=1, **start
    )
    with ignoring_interrupts():
        results = parallel(joblib.delayed(function)(*arguments) for function, *arguments in calls)
    yield from results


def runs_in_this_process(prefer: str, n_jobs: int) -> bool:
    """Return whether `run_in_parallel` would call functions in the current process."""
    backend, _ = get_active_backend(prefer=prefer)
    if isinstance(backend, LokyBackend) and joblib.effective_n_jobs(n_jobs) == 1:
        return True  # joblib starts no process for one job
    return bool(getattr(backend, "supports_sharedmem", False))


def count_workers(n_jobs: int, n_calls: int) -> int:
    """Return how many workers `run_in_parallel` uses at most for a number of calls."""
    return int(min(joblib.effective_n_jobs(n_jobs), n_calls))


def broken_pool_message(error: BrokenExecutor | PicklingError) -> str:
    """Explain in one line why a pool of worker processes broke: because a process died, or because
    a process could not load an object that was sent to it.
    """
    if error.__cause__ is None:
        match = re.search(r"SIG[A-Z]+", str(error))
        return (
            f"a worker process died{f' ({match[0]})' if match else ''}: either memory ran out "
            "(use fewer workers, such as n_jobs=2), or a kernel wrote outside its arrays (find the "
            "kernel with clickgym.check_agent or clickgym.check_click_model), or the process could "
            "not start (its error is shown above)"
        )
    lines = [line for line in str(error.__cause__).splitlines() if line.strip('" ')]
    return f"a worker process could not load an object that was sent to it: {lines[-1].strip()}"


def set_values(values: Mapping[str, Any]) -> None:
    """Set module constants and class attributes to the values that they have in the calling
    process.

    Args:
        values: the values, keyed by name as in `Fingerprint.values`. Values that are defined in the
            user's script are skipped, because they are sent together with the script's classes.
    """
    for name, value in values.items():
        module, _, path = name.partition(":")
        *classes, attribute = path.split(".")
        if module != "__main__":
            owner: Any = import_module(module)
            for class_name in classes:
                owner = getattr(owner, class_name)
            # Compare text, because == would compare arrays entry by entry.
            if repr(getattr(owner, attribute, None)) != repr(value):
                setattr(owner, attribute, value)


def start_worker(*_: object) -> None:
    """Set up a worker process.

    The arguments are the module search path and the digests of your own modules. This function does
    not use the arguments, but joblib starts new processes if the arguments have changed since the
    last call.
    """
    if "PYTHONFAULTHANDLER" not in os.environ:  # otherwise, a crash prints a page of traceback
        faulthandler.enable(open(os.devnull, "w"))  # noqa: SIM115 (open until the process ends)


@contextmanager
def ignoring_interrupts() -> Iterator[None]:
    """Context manager in which new processes are started so that they ignore Ctrl-C.

    A terminal sends Ctrl-C to a command and to all processes that the command started. Only the
    current process must handle it, because it then ends the processes that it started.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
