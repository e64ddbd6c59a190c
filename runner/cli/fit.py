"""``clickgym fit``: from a click log to instance files, with what the fit is worth on held-out sessions."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from ...envs.checks import check_at_least, check_count, check_seed, unknown
from ...offline import ClickLog, ConvergenceWarning, Estimator, hold_out, query_instance, read_log
from ...offline.fitting import MODELS, MODELS_PER_QUERY
from ...offline.readers import LOG_FORMATS

__all__ = ["fit_log"]


def fit_log(
    path: Path,
    models: Sequence[str],
    out: Path,
    *,
    log_format: str = "auto",
    queries: Sequence[str] = (),
    n_items: int = 10,
    test_share: float = 0.2,
    iterations: int = 1000,
    tol: float = 1e-7,
    per_query: bool = False,
    seed: int = 0,
    strict: bool = True,
    console: Console,
    progress: Console,
) -> None:
    """Fit click models to a log, print what they are worth on held-out sessions, and write instance files.

    The files hold the parameters estimated from all sessions; those that are scored were estimated without the sessions that
    they are scored on.

    Args:
        path: the log.
        models: short names, see `clickgym.offline.fitting.MODELS`.
        out: a file for a single query, which ends with ``.json``; else a folder, for one file per query.
        log_format: as for `read_log`.
        queries: labels of the queries that become instances; without any, the most frequent one.
        n_items: L.
        test_share: of the sessions, how many are held out; 0 scores nothing.
        iterations, tol: of the EM algorithms.
        per_query: examination probabilities for each query by itself, which PBM and UBM offer; else all queries share them.
        seed: of the split.
        strict: refuse a malformed line; else leave it and its session out, and say how many.
        console: for the figures.
        progress: for what is going on.

    Raises:
        ValueError, OSError: on wrong input, before anything is written.
    """
    available = MODELS_PER_QUERY if per_query else MODELS
    for name in models:
        if name not in MODELS:
            raise ValueError(unknown("model", name, MODELS))
        if name not in available:
            raise ValueError(f"{name} has no examination probabilities per query; {' and '.join(available)} have")
    if len(set(models)) < len(models) or {"DBN", "SDBN"} <= set(models):
        raise ValueError(f"models are {', '.join(models)}; expected each once, and one of DBN and SDBN")
    if not 0 <= test_share < 1:
        raise ValueError(f"test_share is {test_share}; expected a number from 0 to below 1")
    if log_format not in ("auto", *LOG_FORMATS):
        raise ValueError(unknown("log format", log_format, ["auto", *LOG_FORMATS]))
    check_count("items", n_items)
    check_count("iterations", iterations)
    check_at_least("tol", tol, 0, strictly=True)
    check_seed(seed)
    single = out.suffix == ".json"
    if single and len(queries) > 1:
        raise ValueError(f"{len(queries)} queries do not fit into one file; give --out a folder")
    if single and out.is_dir():
        raise ValueError(f"{out} is a folder; expected the name of a file")
    folder = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    if not single and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give --out a folder, or a file whose name ends with .json")
    if single and not out.absolute().parent.is_dir():
        raise ValueError(f"there is no folder {out.absolute().parent}")

    start = time.perf_counter()
    log = read_log(path, log_format, strict=strict)
    progress.print(f"read {len(log):,} sessions in {time.perf_counter() - start:.1f} s", highlight=False)
    for reason, lines in log.skipped.items():
        progress.print(f"left out {lines:,} lines: {reason}", highlight=False)
    labels = list(queries) or [log.query_labels[int(np.bincount(log.queries).argmax())]]
    files = [out if single else out / f"{_file_name(label)}.json" for label in labels]
    if len(set(files)) < len(files):
        raise ValueError(f"two of the queries {', '.join(labels)} would go to the same file")
    quick = {"CM": MODELS["CM"](1, None).fit(log)}
    for label in labels:  # what is wrong with a query is said before the work
        query_instance(log, label, quick, n_items)

    scored: dict[str, Estimator] = {}
    estimators: dict[str, Estimator] = {}
    train, test = hold_out(log, test_share, seed) if test_share else (log, log[:0])
    for name in models:
        start = time.perf_counter()
        scored[name] = _fit(available[name], train, iterations, tol)
        estimators[name] = _fit(available[name], log, iterations, tol) if test_share else scored[name]
        progress.print(f"fitted {name} in {time.perf_counter() - start:.1f} s", highlight=False)
        if getattr(estimators[name], "converged_", None) is False:
            progress.print(f"{name} has not converged after {iterations} steps; allow more --iterations", highlight=False)
    _print_scores(console, scored, train, test)

    method = {
        "sessions_of_all_queries": len(log),
        "smoothing": "(1 + successes) / (2 + trials)",
        "position_parameters": "of each query by itself" if per_query else "shared by all queries of the log",
        "steps": {name: getattr(estimator, "n_iter_", None) for name, estimator in estimators.items()},
    }
    origin = f"estimated by clickgym from the click log {path.name}"
    instances = [query_instance(log, label, estimators, n_items, origin=origin, estimation=method) for label in labels]
    if not single:
        out.mkdir(parents=True, exist_ok=True)
    for file, instance in zip(files, instances, strict=True):
        instance.save(file)
        console.print(f"{file}: {instance.description}", highlight=False, markup=False)


def _file_name(label: str) -> str:
    """A query as the name of a file."""
    return "".join(letter if letter.isalnum() or letter in "-_ ." else "_" for letter in label).strip(" .") or "query"


def _fit(make: Callable[[int, float | None], Estimator], log: ClickLog, iterations: int, tol: float | None) -> Estimator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table shows it
        return make(iterations, tol).fit(log)


def _print_scores(console: Console, estimators: dict[str, Estimator], train: ClickLog, test: ClickLog) -> None:
    """One row per model: convergence, and likelihood and perplexity on the held-out sessions, if there are any."""
    table = Table.grid(padding=(0, 2))
    header = ["model", "EM steps"]
    if len(test):
        header += ["log-likelihood", "perplexity", *(f"at {k + 1}" for k in range(test.n_positions))]
    for column in header:
        table.add_column(justify="left" if column == "model" else "right")
    table.add_row(*header, style="bold")
    for name, estimator in estimators.items():
        steps = getattr(estimator, "n_iter_", None)
        cells = [name, "closed form" if steps is None else f"{steps}{'' if estimator.converged_ else ', not converged'}"]  # type: ignore[attr-defined]
        if len(test):
            by_rank = estimator.perplexity_by_rank(test)
            cells += [f"{estimator.score(test):.5f}", f"{by_rank.mean():.5f}", *(f"{value:.4f}" for value in by_rank)]
        table.add_row(*cells)
    if len(test):
        title = f"Fitted to {len(train):,} sessions; per session and by rank on {len(test):,} held out"
    else:
        title = f"Fitted to {len(train):,} sessions; none held out"
    console.print(f"[bold underline]{title}[/]", highlight=False)
    console.print(table, highlight=False)
    several = float((test.clicks.sum(axis=1) > 1).mean()) if len(test) else 0.0
    if "CM" in estimators and several:
        console.print(f"CM excludes the {several:.1%} of sessions with several clicks: no likelihood", highlight=False)
