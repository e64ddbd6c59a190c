"""``clickgym record``: the log of an agent in an environment, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from clickgym.core.checks import check_horizon
from clickgym.runner.console import announce_compiling, errors, output
from clickgym.runner.make import make_agent, make_env
from clickgym.runner.terminal import say

from ..log import check_table, write_tidy
from ..record import record as record_
from .logs import Seed


def record(
    env: Annotated[
        str,
        typer.Argument(
            metavar="ENV",
            show_default=False,
            help="The environment, before the options, as after clickgym run.",
        ),
    ],
    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            "-a",
            metavar="AGENT",
            show_default=False,
            help="The agent that shows the lists, as TopRank, Random, or your own module:Class.",
        ),
    ],
    sessions: Annotated[
        float,
        typer.Option(
            metavar="N",
            show_default=False,
            help="Sessions, as 100000 or 1e5.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="The table, .csv, .csv.gz or .parquet.",
        ),
    ],
    instance: Annotated[
        str | None,
        typer.Option(
            "--instance",
            "-i",
            metavar="NAME|FILE",
            show_default="a real search query",
            help="The instance: a name, or your own JSON file.",
        ),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Write the click log of an agent in an environment: its lists, and the clicks of the simulated
    users.

    \b
    clickgym record PBMRank-v0 --agent Random --sessions 1e5 --out log.csv

    The commands fit, evaluate, decide and check-models read it.
    """
    check_table(out)
    n = check_horizon(sessions, name="sessions")
    with announce_compiling(errors()):
        try:
            place = make_env(env, instance)
            learner: Any = make_agent(agent, place, horizon=n, seed=seed)
            log = record_(learner, place, n, seed=seed)
        except TypeError as error:  # of an argument that was typed
            raise ValueError(str(error)) from None
    write_tidy(log, out)
    say(output(), f"{out}: {len(log):,} sessions, {log.clicks.sum():,} clicks")
