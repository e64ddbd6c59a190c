"""``clickgym fit``: from a click log to instance files, with what the fit is worth on held-out
sessions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from scipy.special import stdtrit

from clickgym.core.console import Json, bold, compiling_told, errors, output, print_json
from clickgym.core.files import make_folder
from clickgym.core.terminal import Column, print_table, say
from clickgym.envs import ClickModel

from ..estimation.estimator import MODEL_ESTIMATORS, ConvergenceWarning
from ..estimation.settings import ITERATIONS, TOL
from ..fitting import Fitted, fit_models
from ..readers import log_name, read_log
from .logs import Columns, Log, names

CONFOUNDED = 0.8
"""The share of displays of items at their usual positions above which the table has a caution."""
HEADINGS = (
    ("log-likelihood", "log_likelihood"),
    ("conditional", "conditional_perplexity"),
    ("perplexity", "perplexity"),
)
"""Of the figures of a model on held-out sessions, and their names."""
UNTOLD = {
    "PBM UBM": "PBM, UBM: clicks tell only products of attraction and examination. Examination at position 1 is the prior's "
    "choice, and the intervals hold for it; multiply attraction by it and divide examination by it to have 1 there.",
    "DCM": "DCM: nothing follows the last position, so no click tells who leaves there; the position above is repeated.",
    "prior": "0.500: no session tells it, and the prior's value is left.",
}
"""By click models, why parameters are marked with an asterisk."""


def fit(
    log: Log,
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL...",
            help=f"One or more of {', '.join(map(bold, MODEL_ESTIMATORS))}; or [bold]all[/].",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE|DIR",
            help="The instance file, [bold]name.json[/], or a folder for one file per query.",
        ),
    ],
    columns: Columns = "",
    queries: Annotated[
        list[str] | None,
        typer.Option(
            "--queries",
            "-q",
            metavar="QUERY...",
            show_default="the most frequent",
            help="The queries to write as instances. The fit uses all sessions of the log, because queries share the parameters of "
            "positions.",
        ),
    ] = None,
    items: Annotated[
        int, typer.Option(metavar="N", help="Items of an instance: the N that were displayed most.")
    ] = 10,
    test_share: Annotated[
        float,
        typer.Option(
            metavar="S",
            help="Share of the sessions that is held out to test the fit; the instance files use all sessions.",
        ),
    ] = 0.2,
    iterations: Annotated[
        int, typer.Option(metavar="N", help="Maximum number of EM steps.")
    ] = ITERATIONS,
    tol: Annotated[
        float,
        typer.Option(
            metavar="X",
            help="EM stops when a step improves the log-likelihood per session by less than X.",
        ),
    ] = TOL,
    per_query: Annotated[
        bool,
        typer.Option(
            "--per-query",
            help="Estimate separate examination probabilities for each query (PBM, UBM).",
        ),
    ] = False,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N", help="Seed of the choice of the held-out sessions and of refits."
        ),
    ] = 0,
    bootstrap: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Refits to resampled sessions, for the intervals of the parameters; 0 for no intervals.",
        ),
    ] = 10,
    as_json: Json = False,
) -> None:
    """Fit click models to a click log, report how well they predict clicks, and write an instance
    file.

    [bold]Examples[/]

      clickgym fit log.csv --model PBM UBM --out query.json

      clickgym run PBMRank-v0 --instance query.json --agents BatchRank PBMUCB --horizon 1e5 --out
      mine

    Several queries of a Yandex log, one file each:

      clickgym fit log.tsv.gz --model PBM --queries 98435-1 9982-1 --out queries
    """
    wanted = queries or ()
    files = _files(out, wanted)
    console, status = output(as_json), errors()
    with compiling_told(status), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table shows it
        start = perf_counter()
        sessions = read_log(log, columns=names(columns))
        say(status, f"read {len(sessions):,} sessions in {perf_counter() - start:.1f} s")
        fitted = fit_models(
            sessions,
            model,
            wanted,
            n_items=items,
            test_share=test_share,
            iterations=iterations,
            tol=tol,
            per_query=per_query,
            seed=seed,
            bootstrap=bootstrap,
            origin=f"estimated by clickgym from the click log {log_name(log)}",
            on_step=partial(say, status),
        )
    _say_not_converged(fitted.estimators, iterations)
    scores = _print_scores(console, fitted)
    written = _write_instances(console, fitted.instances, files)
    _print_parameters(console, fitted)
    _print_cautions(console, fitted)
    if as_json:
        sizes = {"train_sessions": fitted.n_train, "test_sessions": fitted.n_test}
        print_json({"log": log_name(log)} | sizes | {"models": scores, "instances": written})


def _say_not_converged(estimators: Mapping[str, Any], iterations: int) -> None:
    for name, estimator in estimators.items():
        if getattr(estimator, "converged_", None) is False:
            say(
                errors(),
                f"{name} has not converged after {iterations} steps; allow more --iterations",
            )


def _write_instances(
    console: Console, instances: Mapping[str, Any], files: Callable[[str], Path]
) -> list[dict[str, Any]]:
    """Write the instance of each query, and return what is told of them as JSON."""
    written = []
    for query, instance in instances.items():
        file = files(query)
        make_folder(file.parent)
        instance.save(file)
        say(console, f"{file}: {instance.description}")
        sure = instance.estimation.get("standard_errors", {})
        written.append(
            {
                "query": query,
                "file": str(file),
                "description": instance.description,
                "standard_errors": sure,
            }
        )
    return written


def _files(out: Path, queries: Sequence[str]) -> Callable[[str], Path]:
    """Where the instance of each query goes.

    Raises:
        ValueError: not every query can have a file.
    """
    single = out.suffix == ".json"
    if single:
        _check_file(out, len(queries))
    else:
        folder = next(
            folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists()
        )
        if not folder.is_dir():
            raise ValueError(
                f"{folder} is a file; give --out a folder, or a file whose name ends with .json"
            )
    if len({_file_name(query) for query in queries}) < len(queries):
        raise ValueError(f"two of the queries {', '.join(queries)} would go to the same file")
    return lambda query: out if single else out / f"{_file_name(query)}.json"


def _check_file(out: Path, n_queries: int) -> None:
    if n_queries > 1:
        raise ValueError(f"{n_queries} queries do not fit into one file; give --out a folder")
    if out.is_dir():
        raise ValueError(f"{out} is a folder; expected the name of a file")
    if not out.absolute().parent.is_dir():
        raise ValueError(f"there is no folder {out.absolute().parent}")


def _file_name(label: str) -> str:
    """A query as the name of a file."""
    return (
        "".join(letter if letter.isalnum() or letter in "-_ ." else "_" for letter in label).strip(
            " ."
        )
        or "query"
    )


def _print_scores(console: Console, fitted: Fitted) -> list[dict[str, Any]]:
    """Of each model: convergence, and likelihood and perplexities on the held-out sessions, if
    there are any.
    """
    start, rows, test = perf_counter(), [], fitted.test
    for name, estimator in fitted.scored.items():
        by_rank = estimator.perplexity_by_rank(test) if len(test) else np.empty(0)
        figures: tuple[float | None, ...] = (None, None, None)
        if len(test):
            figures = (
                estimator.score(test),
                estimator.conditional_perplexity(test),
                float(np.nanmean(by_rank)),
            )
        told = dict(
            zip(("log_likelihood", "conditional_perplexity", "perplexity"), figures, strict=True)
        )
        course = {
            "steps": getattr(estimator, "n_iter_", None),
            "converged": getattr(estimator, "converged_", None),
        }
        rows.append({"model": name} | course | told | {"perplexity_by_rank": by_rank.tolist()})
    _print_rows(console, fitted, rows)
    several = float((test.clicks.sum(axis=1) > 1).mean()) if len(test) else 0.0
    if "CM" in fitted.scored and several:
        excluded = f"CM excludes the {several:.1%} of sessions with several clicks"
        say(console, f"{excluded}: likelihood 0, conditional perplexity infinite")
    if len(test):
        say(errors(), f"scored in {perf_counter() - start:.1f} s")
    return rows


def _print_rows(console: Console, fitted: Fitted, rows: list[dict[str, Any]]) -> None:
    """A table of models: the steps of EM and, with held-out sessions, the figures under headings,
    and the last by rank.
    """
    columns = [Column("model"), Column("EM steps", rank=1, right=True)]
    if fitted.n_test:
        columns += [Column(heading, right=True) for heading, _ in HEADINGS]
        columns += [
            Column(f"at {k + 1}", rank=2 + k, right=True) for k in range(fitted.test.n_positions)
        ]
    cells = []
    for row in rows:
        steps = (
            "closed form"
            if row["steps"] is None
            else f"{row['steps']}{', not converged' * (not row['converged'])}"
        )
        told = [] if row["log_likelihood"] is None else [f"{row[name]:.5f}" for _, name in HEADINGS]
        told += [f"{value:.4f}" for value in row["perplexity_by_rank"]]
        cells.append([row["model"], steps, *told, *["–"] * (len(columns) - 2 - len(told))])
    held_out = (
        f"per session and by rank on {fitted.n_test:,} held out"
        if fitted.n_test
        else "none held out"
    )
    print_table(console, columns, cells, title=f"Fitted to {fitted.n_train:,} sessions; {held_out}")


def _print_parameters(console: Console, fitted: Fitted) -> None:
    """The parameters of a few queries with their intervals, and what clicks do not tell."""
    untold: set[str] = set()
    for query, instance in [*fitted.instances.items()][:3]:
        facts = instance.estimation
        for kind, told in facts.get("standard_errors", {}).items():
            say(
                console,
                f"{kind}, {query}: estimates ± half of their 0.95 intervals, from {facts['refits']} refits",
                "bold",
            )
            half = float(stdtrit(facts["refits"] - 1, 0.975))
            for title, entries in _parameters(instance.model(kind), facts["items"], told):
                line = ", ".join(
                    f"{label}{value:.3f}{'*' if error is None else f' ± {half * error:.3f}'}"
                    for label, value, error in entries
                )
                say(console, f"{title}: {line}")
                untold |= {kind, "prior"} if " 0.500*" in line else {kind}
    for kinds, text in UNTOLD.items():
        if untold & set(kinds.split()):
            say(console, f"* {text}")


def _print_cautions(console: Console, fitted: Fitted) -> None:
    """Queries whose lists hardly differ."""
    for query, (lists, share) in fitted.variety.items():
        if share > CONFOUNDED:
            say(
                console,
                f"Caution: {query}: in {share:.1%} of the displays an item is where it mostly is ({lists:,} distinct lists). "
                "Clicks hardly tell attraction from position, and estimates can miss by more than their intervals.",
            )


def _parameters(
    model: ClickModel, items: Sequence[str], told: Mapping[str, Any]
) -> Iterator[tuple[str, Iterable[Any]]]:
    """The parameters of a click model: a title, and label, estimate and standard error of each."""
    for name, of_name in told.items():
        values = np.asarray(getattr(model.parameters, name))
        if values.ndim < 2:
            labels = items if name in model.item_parameters() else range(1, values.size + 1)
            named = [f"{label} " for label in labels] if values.ndim else [""]
            yield name, zip(named, np.ravel(values), np.ravel(of_name), strict=True)
        else:  # of the UBM: a column for each position of the last click above
            for j, (column, of_column) in enumerate(
                zip(values.T, zip(*of_name, strict=True), strict=True)
            ):
                title = f"{name} after {f'a click at {j}' if j else 'no click'}"
                yield (
                    title,
                    zip(
                        (f"{k + 1} " for k in range(j, len(values))),
                        column[j:],
                        of_column[j:],
                        strict=True,
                    ),
                )
