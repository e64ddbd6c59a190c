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

RECORDED, RESULTS = "What to record", "Results"
"""The sections of the help text."""


def record(
    env: Annotated[
        str,
        typer.Argument(
            rich_help_panel=RECORDED,
            metavar="ENV",
            show_default=False,
            help="The environment, before the options, written as for clickgym run.",
        ),
    ],
    agent: Annotated[
        str,
        typer.Option(
            "--agent",
            "-a",
            rich_help_panel=RECORDED,
            metavar="AGENT",
            show_default=False,
            help="The agent that shows the lists, as TopRank, Random, or your own module:Class.",
        ),
    ],
    sessions: Annotated[
        float,
        typer.Option(
            rich_help_panel=RECORDED,
            metavar="N",
            show_default=False,
            help="The length of the log in sessions, as 100000 or 1e5.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            rich_help_panel=RESULTS,
            metavar="FILE",
            show_default=False,
            help="The file of the log: .csv, .csv.gz or .parquet.",
        ),
    ],
    instance: Annotated[
        str | None,
        typer.Option(
            "--instance",
            "-i",
            rich_help_panel=RECORDED,
            metavar="NAME|FILE",
            show_default="a real search query",
            help="The query and its users: a name of clickgym list, or your own JSON file.",
        ),
    ] = None,
    seed: Seed = 0,
) -> None:
    """Get a click log of simulated users, to try the other commands on.

    Random lists, and the clicks on them:

    clickgym record PBMRank-v0 --agent Random --sessions 1e5 --out log.csv

    The commands check-models, fit and evaluate read this log. You know the users who made
    it, so you can compare what the commands say with the truth.
    """
    check_table(out)
    n = check_horizon(sessions, name="sessions")
    with announce_compiling(errors()):
        place = make_env(env, instance)
        learner: Any = make_agent(agent, place, horizon=n, seed=seed)
        log = record_(learner, place, n, seed=seed)
    write_tidy(log, out)
    say(output(), f"{out}: {len(log):,} sessions, {log.clicks.sum():,} clicks")
