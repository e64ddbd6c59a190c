"""``clickgym check-models``: can the users of a log be simulated?"""

from __future__ import annotations

from typing import Annotated

import typer

from clickgym.core.console import compiling_told, errors, output
from clickgym.core.terminal import Column, print_table, say

from ..readers import read_log
from ..simulability import MODELS, check_models
from .logs import Columns, Log, Seed, names


def check(
    log: Log,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL...",
            help=f"One or more of {', '.join(map(str, MODELS))}.",
            show_default="all of them",
        ),
    ] = None,
    columns: Columns = "",
    seed: Seed = 0,
) -> None:
    """Check whether simulations of a click log can be trusted to order lists.

    Each query with two or more lists leaves out one list at a time, and click models predict its
    click rates by position from all other lists. error is the root of their mean squared
    error, noise that of a model that knows the truth. predicted is the share of
    the differences between lists that a model predicts, without noise: 1 is all, 0 is what the
    click rates of positions predict, below 0 is worse. Intervals (0.95) are from resampled
    queries.

    \b
    clickgym check-models log.csv

    \b
    clickgym check-models log.csv --model PBM UBM
    """
    with compiling_told(errors()):
        sessions = read_log(log, columns=names(columns))
        checked = check_models(sessions, model or MODELS, seed=seed)
    rows = [
        [
            row["model"],
            f"{row['error']:.4f}",
            f"{row['error_low']:.4f} to {row['error_high']:.4f}",
            f"{row['noise']:.4f}",
            f"{row['predicted']:.3f}",
            f"{row['low']:.3f} to {row['high']:.3f}",
        ]
        for row in checked.table.iter_rows(named=True)
    ]
    heads = (
        Column(name, right=True) for name in ("error", "interval", "noise", "predicted", "interval")
    )
    print_table(output(), [Column("model"), *heads], rows)
    say(output(), checked.sentence, "bold")
