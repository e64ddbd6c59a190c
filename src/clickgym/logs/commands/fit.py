"""``clickgym fit``: from a click log to instance files, with what the fit is worth on held-out
sessions.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote as shell_quote
from typing import Annotated, Any
from urllib.parse import quote

import numpy as np
import typer
from rich.console import Console
from rich.text import Text
from scipy.special import stdtrit

from ...core.files import make_folder
from ...envs import ClickModel
from ...runner.console import Column, announce_compiling, errors, output, print_table, say
from ..estimation.em import ConvergenceWarning
from ..estimation.estimator import MODEL_ESTIMATORS
from ..estimation.information import least_identified
from ..fitting import Fitted, fit_models
from ..reading import log_name, read_log
from .options import Columns, Log, Seed, names


def fit(
    log: Log,
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL...",
            help=f"Click models: one or more of {', '.join(map(str, MODEL_ESTIMATORS))}, or all.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE|DIR",
            help="Where the users go: a file, name.json, or a folder for several queries.",
        ),
    ],
    query: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            "-q",
            metavar="QUERY...",
            show_default="the most frequent",
            help="The queries whose users you want. All sessions of the log help to estimate how "
            "far users look.",
        ),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Keep the N items that were displayed most.",
            show_default="those in at least one of a hundred sessions",
        ),
    ] = None,
    bootstrap: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Fit the models N times to resampled sessions, for intervals; 0 for none.",
        ),
    ] = 10,
    columns: Columns = "",
    seed: Seed = 0,
) -> None:
    """Make simulated users from your click log, and see which click model predicts it best.

    Two click models, and the users of the most frequent query:

    clickgym fit log.csv --model PBM UBM --out users.json

    Several queries, with a file for each in a folder:

    clickgym fit log.csv --model PBM --query shoes hats --out users

    The output begins with the model that predicts best, and with the command that plays agents on
    these users. Below stand the scores of all models, and the estimates with their intervals.

    Ask clickgym check-models first whether such users can be trusted.
    """
    queries = query or []
    is_file = out.suffix == ".json"
    if is_file and len(queries) > 1:
        raise ValueError(f"--out is {out} for {len(queries)} queries; expected a folder")
    make_folder(out.parent if is_file else out)
    console, status = output(), errors()
    with announce_compiling(status), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the table shows it
        sessions = read_log(log, columns=names(columns))
        say(status, f"read {len(sessions):,} sessions")
        fitted = fit_models(
            sessions,
            model,
            queries,
            n_items=items,
            seed=seed,
            bootstrap=bootstrap,
            origin=f"estimated by clickgym from the click log {log_name(log)}",
        )
    scores = {name: it.score(fitted.test) for name, it in fitted.scored.items()}
    files = {}
    for label, instance in fitted.instances.items():
        files[label] = out if is_file else out / f"{quote(label, safe=' ')}.json"
        instance.save(files[label])
    _print_next(console, fitted, scores, files)
    for caution in _cautions(fitted):
        say(console, caution)
    n_train, n_test = len(fitted.train), len(fitted.test)
    title = f"Fitted to {n_train:,} sessions; per session and by rank on {n_test:,} held out"
    print_table(console, *_scores(fitted, scores), title=title)
    for label, file in files.items():
        say(console, f"{file}: {fitted.instances[label].description}")
    for line in _parameter_lines(fitted):
        say(console, line)


def _print_next(
    console: Console, fitted: Fitted, scores: Mapping[str, float], files: Mapping[str, Path]
) -> None:
    """Print which model predicts best, and the command that plays agents on its users."""
    best = max(scores, key=scores.__getitem__)
    users = " ".join(shell_quote(str(file)) for file in files.values())
    counted = min(_exact_positions(it.model(best)) for it in fitted.instances.values())
    cutoff = f":cutoff={counted}" if counted < fitted.test.n_positions else ""
    say(console, f"{best} predicts the held-out sessions best. To run agents on these users:")
    command = (
        f"clickgym run {best}Rank-v0{cutoff} --instance {users} --agents CascadeTS Fixed "
        "--horizon 1e5 --out results/users"
    )
    console.print(Text(command), soft_wrap=True)  # so that it can be pasted
    console.print()


def _exact_positions(users: ClickModel) -> int:
    """The most positions of which the best list is known exactly: all, unless a search would take
    too long. Environments of these users require a ``cutoff`` that is no larger.
    """
    try:
        users.optimal_ranking()
    except ValueError:
        counts = range(users.n_positions, 0, -1)
        return next(n for n in counts if math.perm(users.n_items, n) <= users.max_search)
    return users.n_positions


def _cautions(fitted: Fitted) -> Iterator[str]:
    """Of each query, which models the log does not tell of all lists."""
    for query, instance in fitted.instances.items():
        found = {
            name: least_identified(it, query, instance.labels)
            for name, it in fitted.information.items()
        }
        models = [name for name in found if found[name]]
        if models:
            yield (
                f"Caution: {query}: this log does not tell all lists by {', '.join(models)}, most "
                f"of all for {found[models[0]]}: with other values users would have clicked the "
                "same. Show 5 % of the sessions in random order."
            )


def _scores(fitted: Fitted, scores: Mapping[str, float]) -> tuple[list[Column], list[list[str]]]:
    """Of each model: the steps of EM, and the figures on the held-out sessions."""
    ranks = range(fitted.test.n_positions)
    heads = [Column("model"), Column("EM steps", rank=1, right=True)]
    heads += [Column(name, right=True) for name in ("log likelihood", "perplexity")]
    heads += [Column(f"at {k + 1}", rank=2 + k, right=True) for k in ranks]
    rows = []
    for name, estimator in fitted.scored.items():
        steps = str(getattr(estimator, "n_iter_", "closed form"))
        fits = estimator, fitted.estimators[name]
        if any(getattr(fit, "converged_", None) is False for fit in fits):
            steps += ", not converged"
        by_rank = estimator.perplexity_by_rank(fitted.test)
        figures = [f"{value:.5f}" for value in (scores[name], np.nanmean(by_rank))]
        rows.append([name, steps, *figures, *(f"{value:.4f}" for value in by_rank)])
    return heads, rows


def _parameter_lines(fitted: Fitted) -> Iterator[str]:
    """The parameters of the first query with their intervals."""
    query, instance = next(iter(fitted.instances.items()))
    facts, untold = instance.estimation, False
    for kind, of_kind in facts.get("standard_errors", {}).items():
        refits = facts["refits"]
        half = float(stdtrit(refits - 1, 0.975))
        yield f"{kind}, {query}: estimates ± half of their 0.95 intervals, from {refits} refits"
        if "examination" in of_kind:
            yield (
                f"Attractions and examinations of {kind} are known up to a common factor; their "
                "intervals hold for the examination at position 1 that stands here."
            )
        for title, entries in _parameters(instance.model(kind), instance.labels, of_kind):
            cells = [
                f"{label}{value:.3f}{'*' if error is None else f' ± {half * error:.3f}'}"
                for label, value, error in entries
            ]
            yield f"{title}: {', '.join(cells)}"
            untold = untold or any(error is None for _, _, error in entries)
    if untold:
        yield "* Clicks do not tell this one; see docs/fit.md."


def _parameters(
    model: ClickModel, items: Sequence[str], errors_of: Mapping[str, Any]
) -> Iterator[tuple[str, list[tuple[str, float, float | None]]]]:
    """The parameters of a click model: a title, and label, estimate and standard error of each."""
    for name, of_name in errors_of.items():
        values = np.asarray(getattr(model.parameters, name))
        if values.ndim == 2:  # of the UBM: a column for each position of the last click above
            for j, column in enumerate(zip(*of_name, strict=True)):
                title = f"{name} after {f'a click at {j}' if j else 'no click'}"
                rows = range(j, len(values))
                yield title, [(f"{k + 1} ", values[k, j], column[k]) for k in rows]
            continue
        labels = items if name in model.item_parameters() else range(1, values.size + 1)
        named = [f"{label} " for label in labels] if values.ndim else [""]
        yield name, [*zip(named, np.ravel(values), np.ravel(of_name), strict=True)]
