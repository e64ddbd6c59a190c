"""``clickgym evaluate``: what another policy would have earned."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Annotated

import typer

from clickgym.runner.console import announce_compiling, errors, output
from clickgym.runner.terminal import Column, print_table, say

from ..comparison import Comparison, SearchedPolicy, compare
from ..evaluation import ESTIMATORS
from ..names import csv_line
from ..policies import FixedPolicy
from ..readers import read_log
from .logs import THE_LOG, Columns, Cutoff, Log, Reward, Seed, names

ESTIMATED, INTERVALS = "What to estimate", "Intervals"
"""The sections of the help text, after that on the log."""

EARNED = {"clicks": "Clicks", "any_click": "Lists with a click"}


def evaluate(
    log: Log,
    policy: Annotated[
        list[str],
        typer.Option(
            "--policy",
            "-p",
            rich_help_panel=ESTIMATED,
            metavar="uniform|fixed:ITEM,...|FILE.json:MODEL...",
            help="The policies to evaluate. uniform shows random lists, fixed: one list, and "
            "FILE.json:MODEL the best list of a click model that clickgym fit has written.",
        ),
    ],
    estimator: Annotated[
        list[str],
        typer.Option(
            "--estimator",
            "-e",
            rich_help_panel=ESTIMATED,
            metavar="NAME...",
            help=f"One or more of {', '.join(ESTIMATORS)}. ips weighs whole lists, cascade their "
            "beginnings, and item-position single items. The others are click models.",
        ),
    ],
    columns: Columns = "",
    query: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=THE_LOG,
            metavar="NAME",
            help="The query to evaluate. You need it if the log has several.",
            show_default=False,
        ),
    ] = None,
    logging: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=THE_LOG,
            metavar="POLICY",
            show_default="what the log recorded",
            help="The policy that chose the lists of the log, written as for --policy. empirical "
            "takes the frequencies of the lists in the log.",
        ),
    ] = None,
    reward: Reward = "clicks",
    cutoff: Cutoff = None,
    level: Annotated[
        float,
        typer.Option(
            rich_help_panel=INTERVALS,
            metavar="P",
            help="How often the intervals should hold the true value.",
        ),
    ] = 0.95,
    seed: Seed = 0,
) -> None:
    """Estimate from your click log what another list would have earned.

    One list for one query, by a click model and by an estimator that assumes less:

    \b
    clickgym evaluate log.csv --query shoes --policy fixed:a,c,b \\
        --estimator pbm item-position --logging empirical

    The first five positions of the best list of a fitted click model:

    \b
    clickgym evaluate log.csv --query shoes --policy shoes.json:UBM \\
        --cutoff 5 --estimator pbm ubm

    Take two estimators that assume different things. If their intervals do not overlap, the
    output begins with that, because one of them assumes something false.

    The output also warns you if the lists of the log changed with time, or if an estimate rests on
    few clicks. The command refuses a policy that shows what the log never shows.

    Intervals count sessions as independent. Give the log a column user if your users have more
    than about ten sessions each.
    """
    with announce_compiling(errors()):
        sessions = read_log(log, columns=names(columns))
        if query is not None:
            sessions = sessions.of_query(query)
        compared = compare(
            sessions,
            policy,
            estimator,
            logging=logging,
            reward=reward,
            cutoff=cutoff,
            level=level,
            seed=seed,
        )
    positions = f", first {cutoff} positions" if cutoff else ""
    unit = "session" if sessions.users is None else "user"
    _print(
        compared,
        sessions.item_labels,
        f"{EARNED[reward]} per session{positions}; intervals at {level:.4g}, by {unit}",
    )


def _print(compared: Comparison, items: Sequence[str], title: str) -> None:
    """Show contradictions, the lists that were evaluated, the estimates, and cautions."""
    console = output()
    results = [(name, result) for name, results in compared.by_policy.items() for result in results]
    several = len(compared.policies) > 1
    cautions = {
        f"{name}: {caution}" if several and "this policy" in caution else caution: None
        for name, result in results
        for caution in result.cautions
    }
    first = [text for text in cautions if "changed with time" in text]
    for text in (*compared.contradictions, *first):
        say(console, f"Caution: {text}", "bold")
    for name, shown in compared.policies.items():
        if isinstance(shown, FixedPolicy):
            search = ", the best list of a local search" * isinstance(shown, SearchedPolicy)
            labels = csv_line(items[item] for item in shown.ranking)
            say(console, f"{name} shows: {labels}{search}")
    ranks = {"effective sessions": 2, "effective clicks": 1}
    numbers = ("estimate", "interval", *ranks, "difference", "interval")
    heads = [Column("estimator")]
    heads += [Column(name, ranks.get(name, 0), right=True) for name in numbers]
    rows = [
        (
            name,
            result.estimator,
            f"{result.value:.7g}",
            _interval(result.interval),
            f"{result.effective_sample_size:,.0f}",
            f"{result.effective_clicks:,.0f}",
            "–" if result.difference is None else f"{result.difference:+.4g}",
            _interval(result.difference_interval),
        )
        for name, result in results
    ]
    say(console, title, "bold")
    console.print()
    for name, group in groupby(rows, key=itemgetter(0)):
        print_table(console, heads, [row[1:] for row in group], title=name)
        console.print()
    _, logged = results[0]
    spread = _interval(logged.on_policy_interval)
    say(
        console,
        f"In the log ({logged.n_sessions:,} sessions): {logged.on_policy:.7g} ({spread}); the "
        "difference is the estimate minus this.",
    )
    for (policy, estimator), reason in compared.refused.items():
        say(console, f"Refused: {estimator} of {policy}: {reason}")
    for text in cautions:
        if text not in first:
            say(console, f"Caution: {text}")


def _interval(ends: tuple[float, float] | None) -> str:
    return "–" if ends is None else "{:.4g} to {:.4g}".format(*ends)
