"""``clickgym evaluate``: what another policy would have earned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import chain
from typing import Annotated

import typer
from rich.console import Console

from clickgym.core.console import Json, compiling_told, errors, output, print_json
from clickgym.core.terminal import Column, print_table
from clickgym.core.terminal import say as tell

from ..comparison import Comparison, compare, of_query
from ..evaluation import ESTIMATORS, Evaluation
from ..readers import log_name, read_log
from .logs import Columns, Cutoff, Log, Reward, names

EARNED = {"clicks": "Clicks", "any_click": "Lists with a click", "satisfaction": "Satisfied users"}


def evaluate(
    log: Log,
    policy: Annotated[
        list[str],
        typer.Option(
            "--policy",
            "-p",
            metavar="uniform|fixed:ITEM,...|FILE.json:MODEL|FILE.npz...",
            help="One or more policies to evaluate. [bold].json[/]: an instance file of [bold]clickgym fit[/] (or a folder of "
            "them, for several queries); the policy is the best list of its click model. [bold].npz[/]: an array "
            "[bold]action_dist[/] (items, positions) or [bold]scores[/] (items; Plackett-Luce), and optionally the labels of the "
            "[bold]items[/].",
        ),
    ],
    estimator: Annotated[
        list[str],
        typer.Option(
            "--estimator",
            "-e",
            metavar="NAME...",
            help=f"One or more of {', '.join(ESTIMATORS)}. [bold]ips[/] weighs whole lists, [bold]cascade[/] their beginnings, "
            "[bold]item-position[/] single items; the others are click models.",
        ),
    ],
    columns: Columns = "",
    query: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only the sessions of one query.",
            show_default="all",
        ),
    ] = None,
    logging: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            show_default="what the log recorded",
            help="The policy that produced the log, written as --policy; or [bold]empirical[/], the frequencies of lists in the "
            "log.",
        ),
    ] = None,
    reward: Reward = "clicks",
    cutoff: Cutoff = None,
    bootstrap: Annotated[
        int, typer.Option(metavar="N", help="Bootstrap resamples for the intervals.")
    ] = 1000,
    level: Annotated[
        float, typer.Option(metavar="P", help="Confidence level of the intervals.")
    ] = 0.95,
    seed: Annotated[
        int, typer.Option(metavar="N", help="The same seed gives the same intervals.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Estimate from a click log the reward of another ranking policy, by named estimators.

    [bold]Examples[/]

    One list for one query, by a click model and by an estimator that assumes less:

      clickgym evaluate log.csv --query shoes --policy fixed:a,c,b --estimator pbm item-position
      --logging empirical

    The first five positions of the best list of a fitted click model:

      clickgym evaluate log.csv --query shoes --policy shoes.json:UBM --cutoff 5 --estimator pbm ubm

    Nothing is tested of what an estimator assumes. Click-model estimators fit their model to the
    log. An estimate is refused if the policy shows lists or items that the log never shows: their
    weight would be infinite. The column [bold]better[/] is the share of bootstrap resamples in
    which the policy gains.
    """
    with compiling_told(errors()):
        compared = compare(
            of_query(read_log(log, columns=names(columns)), query),
            policy,
            estimator,
            logging=logging,
            reward=reward,
            cutoff=cutoff,
            bootstrap=bootstrap,
            level=level,
            seed=seed,
        )
    _print(output(as_json), compared, level, reward, cutoff, bootstrap)
    if as_json:
        print_json(
            {
                "log": log_name(log),
                "query": query,
                "reward": reward,
                "cutoff": cutoff,
                "level": level,
                "policies": {name: {"lists": compared.lists(name)} for name in compared.policies},
                "evaluations": [
                    {"policy": name, **asdict(evaluation), "cautions": evaluation.cautions}
                    for name, evaluations in compared.by_policy.items()
                    for evaluation in evaluations
                ],
                "refused": [
                    {"policy": name, "estimator": by, "why": why}
                    for (name, by), why in compared.refused.items()
                ],
            }
        )


def _print(
    console: Console,
    compared: Comparison,
    level: float,
    reward: str,
    cutoff: int | None,
    bootstrap: int,
) -> None:
    """Show what was evaluated, the estimates as a table, and what they come to."""
    say = partial(tell, console)
    for policy in compared.policies:
        _print_lists(compared, policy, say)
    earned = f"{EARNED[reward]} per session" + (f", first {cutoff} positions" if cutoff else "")
    interval, several = f"{level:.4g} interval", len(compared.policies) > 1
    _print_estimates(
        console,
        compared,
        f"{earned}, under the {'policies' if several else 'policy'}",
        interval,
        several,
    )
    first = compared.evaluations[0]
    if first.on_policy_interval is None:
        say(f"The log ({first.n_sessions:,} sessions) does not record which users were satisfied")
    else:
        spread = f"{interval} {_interval(first.on_policy_interval)}"
        gains = "policies gain" if several else "policy gains"
        say(f"{earned}, in the log: {first.on_policy:.7g} (of {first.n_sessions:,}; {spread})")
        say(
            f"The difference is the estimate minus the mean of the log; better is the share of {bootstrap:,} bootstrap "
            f"resamples of its sessions in which the {gains}."
        )
    _print_remarks(compared, say, several)


def _print_estimates(
    console: Console, compared: Comparison, title: str, interval: str, several: bool
) -> None:
    """The estimates, a row each; of several policies also their names."""
    columns, first = _columns(interval), 0 if several else 1
    heads = [Column("policy"), *(column for column, _ in columns)][first:]
    named = [(name, result) for name, results in compared.by_policy.items() for result in results]
    rows = [(name, *(cell(result) for _, cell in columns))[first:] for name, result in named]
    print_table(console, heads, rows, title=title, groups=several)


def _columns(interval: str) -> list[tuple[Column, Callable[[Evaluation], str]]]:
    """The columns of the table, and what each shows of an estimate."""
    return [
        (Column("estimator"), lambda result: result.estimator),
        (Column("estimate", right=True), lambda result: f"{result.value:.7g}"),
        (Column(interval, right=True), lambda result: _interval(result.interval)),
        (
            Column("self-normalised", rank=3, right=True),
            lambda result: f"{result.self_normalised:.7g}",
        ),
        (
            Column(f"self-normalised {interval}", rank=4, right=True),
            lambda result: _interval(result.self_normalised_interval),
        ),
        (
            Column("effective size", rank=2, right=True),
            lambda result: _number(result.effective_sample_size, ".0f"),
        ),
        (
            Column("mean weight", rank=5, right=True),
            lambda result: _number(result.mean_weight, ".3f"),
        ),
        (
            Column("largest weight", rank=6, right=True),
            lambda result: _number(result.max_weight, ".4g"),
        ),
        (
            Column("difference", rank=1, right=True),
            lambda result: _number(result.difference, "+.4g"),
        ),
        (
            Column(f"difference {interval}", right=True),
            lambda result: _interval(result.difference_interval),
        ),
        (
            Column("better", rank=1, right=True),
            lambda result: _number(result.probability_better, ".3f"),
        ),
    ]


def _number(value: float | None, form: str) -> str:
    """A number; to some estimates nothing is compared."""
    return "–" if value is None else f"{value:{form}}"


def _print_remarks(compared: Comparison, say: Callable[..., None], several: bool) -> None:
    """Estimates that were refused, and cautions."""
    for (policy, estimator), reason in compared.refused.items():
        say(f"Refused: {estimator}{f' of {policy}' if several else ''}: {reason}")
    for policy, results in compared.by_policy.items():
        for caution in chain.from_iterable(result.cautions for result in results):
            say(f"Caution: {f'{policy}: ' if several else ''}{caution}")


def _print_lists(
    compared: Comparison, policy: str, say: Callable[[str], None], most: int = 5
) -> None:
    """Which list a policy shows, of each of a few queries."""
    lists = compared.lists(policy)
    for query, labels in [*lists.items()][:most]:
        which = f" for query {query}" if len(lists) > 1 else ""
        say(f"{policy} shows{which}: {', '.join(labels)}")
    if len(lists) > most:
        say(f"{policy}: lists of {len(lists) - most:,} more queries")


def _interval(ends: tuple[float, float] | None) -> str:
    return "–" if ends is None else "{:.4g} to {:.4g}".format(*ends)
