"""``clickgym count``: the counts of a click log, which may be larger than memory."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ...core.console import bold, compiling_told, errors, output
from ...core.terminal import say
from ..counts import check_counts_path
from ..estimation.estimator import MODEL_ESTIMATORS
from ..reading import Reading
from ..tally import count_log, statement
from .logs import LogFormat, reads_logs

COUNTED = [name for name, estimator in MODEL_ESTIMATORS.items() if estimator.counted is not None]


@reads_logs("repeated", "click_action")
def count(
    log: Annotated[list[Path], typer.Argument(
        metavar="LOG...", help="The click log, before the options: a tidy table, a folder of them, or several.",
        show_default=False,
    )],
    model: Annotated[list[str], typer.Option(
        "--model", "-m", metavar="MODEL...",
        help=f"The click models that are to be fitted: one or more of {', '.join(map(bold, COUNTED))}; or [bold]all[/].",
    )],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The file of the counts, [bold].parquet[/].")],
    hold_out: Annotated[float, typer.Option(
        metavar="S", help="Share of the sessions that are counted apart, for the held-out likelihood of [bold]clickgym fit[/].",
    )] = 0.0,
    sql: Annotated[bool, typer.Option(
        "--sql", help="Count nothing: print the statement that does the same in DuckDB.",
    )] = False,
    log_format: LogFormat = "auto",
    *,
    reading: Reading,
) -> None:  # fmt: skip
    """Count the clicks of a log that may be larger than memory, for clickgym fit and clickgym decide.

    [bold]Examples[/]

      clickgym count logs/ --model PBM UBM --hold-out 0.2 --out counts.parquet

      clickgym fit counts.parquet --model PBM UBM --out query.json

    The statement, for a log that lies in a warehouse:

      clickgym count sample.parquet --model UBM --out counts.parquet --sql

    Counts hold how often each item of each query was shown and clicked, by position and last click above. So they hold all that
    the position-based and the user browsing model take from a log, but no sessions: no intervals follow from them.
    """
    check_counts_path(out)
    if sql:
        of = {name: reading[name] for name in ("columns", "sessions_per_file")}
        print(statement(log, model, str(out), hold_out=hold_out, log_format=log_format, **of), end="")  # type: ignore[arg-type]
        return
    with compiling_told(console := errors()):
        counts = count_log(log, model, hold_out=hold_out, log_format=log_format, on_step=partial(say, console), **reading)
    counts.write(out)
    say(
        output(),
        f"{out}: {counts.n_sessions:,} sessions of {len(counts.query_labels):,} queries in {len(counts.position):,} cells",
    )
