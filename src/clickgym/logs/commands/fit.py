"""The command ``clickgym fit``, which makes simulated users from a click log, and reports how well
click models predict the log.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shlex import quote as shell_quote
from typing import Annotated, Any
from urllib.parse import quote

import numpy as np
import typer
from rich.text import Text

from ...core.checks import check_path
from ...core.files import make_folder
from ...envs import MAX_SEARCH, ClickModel, Instance
from ...runner.console import Column, output_console, print_table, print_text
from ..estimation.em import ConvergenceWarning
from ..estimation.estimator import MODEL_ESTIMATORS, check_models_to_fit
from ..fitting import Fitted, fit_models, log_notes
from ..reading import log_name
from .options import ColumnNames, IdsPerFile, LogFiles, read_sessions


def fit(
    log: LogFiles,
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL...",
            help="The click models to fit: one or more of "
            f"{', '.join(map(str, MODEL_ESTIMATORS))}, or all.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE|DIR",
            help=(
                "Where to save the users: a file such as users.json or, for several queries, a "
                "folder."
            ),
        ),
    ],
    query: Annotated[
        list[str] | None,
        typer.Option(
            "--query",
            "-q",
            metavar="QUERY...",
            show_default="the most frequent",
            help=(
                "One or more queries, each of which becomes an instance. How often users look at "
                "each position is estimated from the sessions of all queries in the log."
            ),
        ),
    ] = None,
    items: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Keep only the N items that the log shows most often for a query.",
            show_default="items shown in at least 1 % of sessions",
        ),
    ] = None,
    columns: ColumnNames = "",
    ids_per_file: IdsPerFile = False,
    seed: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Random seed, which decides the sessions that are held out. The order of the "
            "log's rows and files does not matter.",
        ),
    ] = 0,
) -> None:
    """Make simulated users from your click log, and see which click model predicts clicks best.

    Fit two click models, and make users for the most frequent query:

    clickgym fit log.csv --model PBM UBM --out users.json

    Make users for several queries, with one file per query in a folder:

    clickgym fit log.csv --model PBM --query shoes hats --out users

    The output begins with the model that best predicts held-out sessions, or with the models
    between which these sessions do not decide, and with a command that runs agents with these
    users. The scores of all models and the estimates for the first query follow, the best
    model first.

    First run clickgym check-models, to find out whether you can trust such users.
    """
    queries = query or []
    out = check_path("out", out)
    is_file = out.suffix == ".json"
    if is_file and len(queries) > 1:
        raise ValueError(
            f"--out {out} is a single file, but {len(queries)} queries are written to a folder: "
            "pass a name without .json"
        )
    models = [*MODEL_ESTIMATORS] if model == ["all"] else model
    check_models_to_fit(models)  # before the log is read, which can take long
    make_folder(out.parent if is_file else out)
    console = output_console()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # the table shows which models did not converge
        sessions = read_sessions(log, columns, ids_per_file)
        name = log_name(sessions.source["files"])
        fitted = fit_models(
            sessions,
            models,
            queries,
            n_items=items,
            seed=seed,
            origin=f"estimated by clickgym from the click log {name}",
        )
    best, *others = fitted.candidates()
    files = {}
    for label, instance in fitted.instances.items():
        files[label] = out if is_file else out / f"{quote(label, safe=' ')}.json"
        instance.save(files[label])
    print_text(console, f"{_verdict(best, others)} To run agents on these users:")
    command = _run_command(best, fitted, files.values())
    console.print(Text(command), soft_wrap=True)  # unwrapped, so that you can paste it
    console.print()
    print_text(
        console,
        "First run clickgym check-models, which tests lists that a model has not seen: it says "
        "whether, and with which model, you can trust simulated users of this log.",
    )
    if note := log_notes(sessions):
        print_text(console, note)
    n_train, n_test = len(fitted.train), len(fitted.test)
    title = f"Fitted to {n_train:,} sessions; mean scores on {n_test:,} held-out sessions"
    print_table(console, *_score_table(fitted), title=title)
    for label, file in files.items():
        print_text(console, f"{file}: {fitted.instances[label].description}")
    counts = np.bincount(sessions.queries)
    if not queries and (n_tied := int((counts == counts.max()).sum())) > 1:
        print_text(
            console,
            f"{n_tied} queries are the most frequent, with {counts.max():,} sessions each; this is "
            "the first by its label. To choose: --query NAME.",
        )
    names = fitted.scores()["model"].to_list()
    for line in _estimate_lines(next(iter(fitted.instances.values())), names):
        print_text(console, line)


def _verdict(best: str, others: Sequence[str]) -> str:
    """Return a sentence that names the model with the best predictions, and the other models that
    may be better.
    """
    if not others:
        return f"{best} predicts the held-out sessions best."
    *firsts, last = best, *others
    return (
        f"Undecided between {', '.join(firsts)} and {last}: {best} predicts the held-out sessions "
        "best, but the difference may be due to chance."
    )


def _run_command(model: str, fitted: Fitted, files: Iterable[Path]) -> str:
    """Return the command that runs agents on the saved users of a click model: one agent that was
    made for users who read from the top, one for users of unknown kind, and today's list. The
    command sets a cutoff if the search for the best list would otherwise take too long.
    """
    users = " ".join(shell_quote(str(file)) for file in files)
    n_counted = min(
        _most_positions(instance.model(model)) for instance in fitted.instances.values()
    )
    cutoff = f":cutoff={n_counted}" if n_counted < fitted.test.n_positions else ""
    return (
        f"clickgym run {model}Rank-v0{cutoff} --instances {users} --agents CascadeTS MixTS Fixed "
        "--horizon 1e5 --out results/users"
    )


def _most_positions(model: ClickModel) -> int:
    """Return the largest number of positions for which the best list can be computed: all
    positions, unless the search would take too long. In that case, an environment with these users
    requires a ``cutoff`` of at most this number.
    """
    try:
        model.optimal_ranking()
    except ValueError:
        counts = range(model.n_positions, 0, -1)
        return next(n for n in counts if math.perm(model.n_items, n) <= MAX_SEARCH)
    return model.n_positions


def _score_table(fitted: Fitted) -> tuple[list[Column], list[list[str]]]:
    """Return the columns and the rows of the table of scores: for each model, the number of EM
    steps, and the scores on the held-out sessions.
    """
    ranks = range(fitted.test.n_positions)
    heads = [Column("model"), Column("EM steps", align_right=True)]
    names = ("log likelihood", "below best", "perplexity", *(f"at {k + 1}" for k in ranks))
    heads += [Column(name, align_right=True) for name in names]
    rows: list[list[str]] = []
    for name, score, below, half in fitted.scores().rows():
        estimator = fitted.scored[name]
        steps = str(getattr(estimator, "n_iter_", "closed form"))
        fits = estimator, fitted.estimators[name]
        if any(getattr(fit, "converged_", None) is False for fit in fits):
            steps += ", not converged"
        by_rank = estimator.perplexity_by_rank(fitted.test)
        difference = f"{below:.4f} ± {half:.4f}" if np.isfinite(below) else "inf"
        difference = difference if rows else "–"  # the best model comes first
        figures = [f"{score:.5f}", difference, f"{np.nanmean(by_rank):.5f}"]
        rows.append([name, steps, *figures, *(f"{value:.4f}" for value in by_rank)])
    return heads, rows


def _estimate_lines(instance: Instance, names: Iterable[str]) -> Iterator[str]:
    """Yield lines of text with the parameters of the click models in an instance, in the order of
    ``names``. Parameters of items are listed by the items' labels.
    """
    for name in names:
        model: Any = instance.models[name]
        yield f"{model.name()}, {instance.name}:"
        for parameter in model.shapes:
            values = np.asarray(getattr(model.parameters, parameter)).round(3)
            if parameter in model.item_parameters():
                pairs = zip(instance.labels, values.tolist(), strict=True)
                yield f"{parameter}: {', '.join(f'{label} {value:.3f}' for label, value in pairs)}"
            else:
                yield f"{parameter}: {values.tolist()}"
