"""``clickgym evaluate``: what another policy would have earned."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...envs import REWARDS
from ..reports.terminal import Column, print_table
from ..reports.terminal import say as tell
from .console import output

if TYPE_CHECKING:
    from ...offline import Comparison

__all__ = ["evaluate"]

EARNED = {"clicks": "Clicks", "any_click": "Lists with a click", "satisfaction": "Satisfied users"}


def evaluate(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The click log of another policy, before the options.")],
    policy: Annotated[str, typer.Option(
        "--policy", "-p", metavar="uniform|fixed:ITEM,...|FILE.json:MODEL|FILE.npz",
        help="The policy to evaluate. [bold].json[/]: the best list of a click model in what [bold]clickgym fit[/] wrote (or a "
        "folder, for several queries). [bold].npz[/]: [bold]action_dist[/] (items, positions) or [bold]scores[/] (items; "
        "Plackett-Luce), and perhaps the labels of the [bold]items[/].",
    )],
    estimator: Annotated[list[str], typer.Option(
        "--estimator", "-e", metavar="NAME...", show_default="item-position",
        help="One or more of {estimators}.",
    )] = ["item-position"],  # noqa: B006
    log_format: Annotated[str, typer.Option(
        "--format", metavar="auto|{log_formats}|obd",
        help="As for [bold]clickgym fit[/]; [bold]obd[/] is the Open Bandit Dataset.",
    )] = "auto",
    query: Annotated[str | None, typer.Option(
        metavar="NAME", help="Only the sessions of one query.", show_default="all",
    )] = None,
    logging: Annotated[str | None, typer.Option(
        metavar="POLICY", show_default="what the log recorded",
        help="The policy that made the log: as --policy, or [bold]empirical[/], how often the log shows each list.",
    )] = None,
    reward: Annotated[str, typer.Option(
        metavar="|".join(REWARDS), help="What a list earns: its clicks, 1 for any, or 1 for a satisfied user.",
    )] = "clicks",
    cutoff: Annotated[int | None, typer.Option(
        metavar="N", help="Count only the first N positions.", show_default="all",
    )] = None,
    on_policy: Annotated[Path | None, typer.Option(
        metavar="LOG", help="A log of the evaluated policy itself, to compare with.", show_default=False,
    )] = None,
    bootstrap: Annotated[int, typer.Option(metavar="N", help="Resamplings for the intervals.")] = 1000,
    level: Annotated[float, typer.Option(metavar="P", help="Confidence level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(metavar="N", help="The same seed gives the same intervals.")] = 0,
) -> None:  # fmt: skip
    """Estimate from a log what another ranking policy would have earned.

    [bold]Examples[/]

    The Open Bandit Dataset: one policy from the log of another, beside its own log:

      clickgym evaluate random/all.csv --format obd --policy bts_action_dist_all.npz --on-policy bts/all.csv

    One list for one query, from a log that does not know how it was made; three click models side by side:

      clickgym evaluate log.csv --query shoes --policy fixed:a,c,b --estimator pbm dcm ubm

    The best list that a click model knows, five positions of it:

      clickgym evaluate log.csv --query shoes --policy shoes.json:UBM --cutoff 5 --estimator pbm ubm

    Click-model estimators fit their model to the log. Where a weight would be infinite, the estimate is refused.
    """
    from ...offline import compare

    compared = compare(
        log, policy, estimator, log_format=log_format, query=query, logging=logging, reward=reward, cutoff=cutoff,
        on_policy=on_policy, bootstrap=bootstrap, level=level, seed=seed,
    )  # fmt: skip
    _print(compared, level, reward, cutoff)


def _print(compared: Comparison, level: float, reward: str, cutoff: int | None) -> None:
    """Show estimates as a table."""
    from ...offline import ClickLog

    results = compared.evaluations
    what = "session" if isinstance(compared.log, ClickLog) else "row"
    earned = f"{EARNED[reward]} per {what}" + (f", first {cutoff} positions" if cutoff else "")
    interval = f"{level:.4g} interval"
    columns = [
        Column("estimator"),
        Column("estimate", right=True),
        Column(interval, right=True),
        Column("self-normalised", rank=2, right=True),
        Column(f"self-normalised {interval}", rank=3, right=True),
        Column("effective size", rank=1, right=True),
        Column("mean weight", rank=4, right=True),
        Column("largest weight", rank=5, right=True),
    ]
    rows = [
        (
            result.estimator,
            f"{result.value:.7g}",
            "{:.4g} to {:.4g}".format(*result.interval),
            f"{result.self_normalised:.7g}",
            "{:.4g} to {:.4g}".format(*result.self_normalised_interval),
            f"{result.effective_sample_size:.0f}",
            f"{result.mean_weight:.3f}",
            f"{result.max_weight:.4g}",
        )
        for result in results
    ]
    console = output()
    print_table(console, columns, rows, title=f"{earned}, under the policy")
    say = partial(tell, console)
    if results[0].on_policy is None:
        say(f"The log ({results[0].n_sessions:,} {what}s) does not tell who was satisfied")
    else:
        say(f"{earned}, in the log: {results[0].on_policy:.7g} (of {results[0].n_sessions:,})")
    if compared.on_policy is not None:
        say(f"{earned}, in the evaluated policy's own log: {compared.on_policy:.7g}")
    for result in results:
        if abs(result.mean_weight - 1.0) > 0.1:
            say(
                f"Caution: the mean weight of {result.estimator} is {result.mean_weight:.3f}, where 1 is expected: the log is "
                f"too short for this policy, or lacks what it shows."
            )
