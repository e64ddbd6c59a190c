"""``clickgym evaluate``: what another policy would have earned."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Annotated, Any

import typer

from ...runner.console import Column, announce_compiling, errors, output, print_table, say
from ..log import ClickLog
from ..off_policy.contributions import ESTIMATORS, check_estimator
from ..off_policy.evaluation import evaluate as evaluate_
from ..off_policy.policies import FixedPolicy, Policy, check_query, read_policy
from ..off_policy.result import Evaluation
from ..reading import log_name, read_log
from .options import Columns, Cutoff, Log, Reward, names

HEADS = [
    Column("estimator"),
    Column("estimate", right=True),
    Column("interval", right=True),
    Column("effective sessions", rank=2, right=True),
    Column("effective clicks", rank=1, right=True),
    Column("difference", right=True),
    Column("interval", right=True),
]
BEST = (
    "this is the best list of a model that was fitted to this log, so that it looks better here "
    "than it is. Fit the model to other sessions than you evaluate by."
)
EARNED = {"clicks": "Clicks", "any_click": "Lists with a click"}


def evaluate(
    log: Log,
    policy: Annotated[
        list[str],
        typer.Option(
            "--policy",
            "-p",
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
            metavar="NAME...",
            help=f"One or more of {', '.join(ESTIMATORS)}. ips weighs whole lists, cascade their "
            "beginnings, and item-position single items. The others are click models.",
        ),
    ],
    columns: Columns = "",
    query: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The query to evaluate. You need it if the log has several.",
            show_default=False,
        ),
    ] = None,
    logging: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            show_default="what the log recorded",
            help="The policy that chose the lists of the log, written as for --policy. empirical "
            "takes the frequencies of the lists in the log, as click models always do.",
        ),
    ] = None,
    reward: Reward = "clicks",
    cutoff: Cutoff = None,
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

    Take two estimators that assume different things. If their intervals do not overlap, one of
    them assumes something false.

    The output warns you if an estimate rests on few clicks. The command refuses a policy that
    shows what the log never shows, and one of which the log does not tell by a click model.

    Intervals count sessions as independent. Give the log a column user if your users have more
    than about ten sessions each.
    """
    for name in estimator:
        check_estimator(name, reward)
    with announce_compiling(errors()):
        sessions = read_log(log, columns=names(columns))
        sessions = sessions if query is None else sessions.of_query(query)
        check_query(sessions)
        targets = {spec: read_policy(spec, sessions, reward, cutoff) for spec in policy}
        settings: dict[str, Any] = {
            "logging": None if logging is None else read_policy(logging, sessions),
            "reward": reward,
            "cutoff": cutoff,
        }
    _print_what_was_earned(sessions, reward, cutoff)
    for spec, target in targets.items():
        results, remarks = _evaluated(sessions, target, estimator, settings)
        if isinstance(target, FixedPolicy) and target.origin.endswith(f" {log_name(log)}"):
            remarks.append(f"Caution: {BEST}")
        remarks += [f"Caution: {text}" for result in results for text in result.cautions]
        console = output()
        console.print()
        if isinstance(target, FixedPolicy):
            shown = ", ".join(sessions.item_labels[item] for item in target.ranking)
            say(console, f"{spec} shows: {shown}")
        print_table(console, HEADS, [_row(result) for result in results], title=spec)
        for remark in dict.fromkeys(remarks):
            say(console, remark)


def _print_what_was_earned(sessions: ClickLog, reward: str, cutoff: int | None) -> None:
    """Print what the tables are of, and what the log has of it."""
    console = output()
    positions = f", first {cutoff} positions" if cutoff else ""
    unit = "session" if sessions.users is None else "user"
    title = f"{EARNED[reward]} per session{positions}; intervals at 0.95, by {unit}"
    say(console, title, "bold")
    earned = sessions.earned(reward, cutoff).sum(axis=1).mean()
    say(console, f"In the log ({len(sessions):,} sessions): {earned:.7g}")


def _evaluated(
    sessions: ClickLog, target: Policy, estimators: Sequence[str], settings: dict[str, Any]
) -> tuple[list[Evaluation], list[str]]:
    """What the estimators say of a policy, and why some say nothing; if all do, the first reason is
    raised.
    """
    results, refusals = [], []
    for name in estimators:
        try:
            with announce_compiling(errors()):
                results.append(evaluate_(sessions, target, name, **settings))
        except ValueError as error:
            refusals.append(f"{name}: {error}")
    if not results:
        raise ValueError(refusals[0])
    return results, [f"Refused: {reason}" for reason in refusals]


def _row(result: Evaluation) -> list[str]:
    compared = result.difference is not None
    return [
        result.estimator,
        f"{result.value:.7g}",
        _interval(result.interval),
        f"{result.effective_sample_size:,.0f}",
        f"{result.effective_clicks:,.0f}",
        f"{result.difference:+.4g}" if compared else "",
        _interval(result.difference_interval) if compared else "",
    ]


def _interval(ends: Any) -> str:
    """An interval in words; a single session or user has none."""
    return "–" if isnan(ends[0]) else "{:.4g} to {:.4g}".format(*ends)
