"""The command ``clickgym record``, which saves a click log of an agent in an environment."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from ...core.checks import check_horizon
from ...runner.console import output_console, print_text
from ...runner.make.agents import make_agent
from ...runner.make.environments import make_env
from ...runner.make.labels import expand_instances
from ..log import check_table_path, write_tidy
from ..reading import read_log
from ..recording import record as record_


def record(
    env: Annotated[
        str,
        typer.Argument(
            metavar="ENV",
            show_default=False,
            help="The environment, before the options, in the same form as in clickgym run.",
        ),
    ],
    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            "-a",
            metavar="AGENT",
            help="The agent that chooses the lists: a name such as TopRank or Random, or "
            "module:Class for your own agent.",
        ),
    ],
    sessions: Annotated[
        float,
        typer.Option(metavar="N", help="Number of sessions per instance, such as 100000 or 1e5."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="Where to save the log: name.csv or name.parquet. An older file is replaced.",
        ),
    ],
    instances: Annotated[
        list[str] | None,
        typer.Option(
            "--instances",
            "-i",
            metavar="NAME|FILE...",
            show_default="a real search query",
            help=(
                "One or more instances, each a query and its users: names, or your own JSON files. "
                "For each instance, the agent starts from scratch. 'shipped' means all real search "
                "queries in the package."
            ),
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Random seed. The same seed gives the same log.")
    ] = 0,
) -> None:
    """Record a click log of simulated users, on which you can try the other commands.

    Record the clicks on random lists:

    clickgym record PBMRank-v0 --agent Random --sessions 1e4 --out log.csv

    Record a log of all real search queries in the package:

    \b
    clickgym record DBNRank-v0 --instances shipped --agent BubbleRank \\
        --sessions 2e3 --out log.csv

    Because you know the simulated users behind a recorded log, you can check the output of the
    other commands against the truth.
    """
    check_table_path(out)
    n = check_horizon(sessions, name="sessions")
    parts = []
    for number, name in enumerate(expand_instances(instances)):
        log_env = make_env(env, name)
        log_agent: Any = make_agent(agent, log_env, horizon=n, seed=seed + number)
        part = record_(log_agent, log_env, n, seed=seed + number).to_frame()
        parts.append(part.with_columns(pl.col("session") + number * n))
    log = read_log(pl.concat(parts))
    replaced = " (an older file was replaced)" if out.exists() else ""
    write_tidy(log, out)
    counts = f"{len(log):,} sessions, {log.clicks.sum():,} clicks"
    print_text(output_console(), f"{out}: {counts}{replaced}")
