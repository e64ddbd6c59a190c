"""``clickgym compare-online``: what an A/B test and interleaving would find, and what is true."""

from __future__ import annotations

import math
import re
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

import typer

from ...core.console import Json, compiling_told, errors, output, print_json
from ...core.terminal import Column, print_table
from ...core.terminal import say as tell
from .. import compare_online as comparison

RANKING = "ITEM,ITEM,...|AGENT"
COLUMNS = ("outcome", "sessions for 80 % power", "in the run", "95 % interval", "p-value", "p ≤ 0.05 after")


def compare_online(
    users: Annotated[str, typer.Argument(metavar="ENV|LOG", help="An environment; or a click log, with --model.")],
    a: Annotated[str, typer.Option("--a", metavar=RANKING, help="A ranking: items, the best first; or an agent.")],
    b: Annotated[str, typer.Option("--b", metavar=RANKING, help="The other one.")],
    by: Annotated[list[str] | None, typer.Option(
        metavar=f"{'|'.join(comparison.METHODS)}...", show_default="ab team_draft", help="One or more methods.",
    )] = None,
    credit: Annotated[str, typer.Option(
        metavar="sign|clicks", help="Of interleaving: who has more clicks, or how many more.",
    )] = "sign",
    common: Annotated[str, typer.Option(
        metavar="none|team", help="Of team draft: whose the items are on which both agree from the top on.",
    )] = "none",
    paired: Annotated[bool, typer.Option("--paired", help="Of [bold]ab[/]: the same users see both lists.")] = False,
    sessions: Annotated[int, typer.Option(metavar="N", help="Sessions of the simulated run of each method.")] = 10_000,
    train: Annotated[int, typer.Option(metavar="N", help="Sessions in which an agent learns before.")] = 10_000,
    model: Annotated[str | None, typer.Option(
        metavar="MODEL", show_default="none", help="Of a log: the click model that is fitted to it.",
    )] = None,
    query: Annotated[str | None, typer.Option(metavar="LABEL", show_default="the most frequent", help="Of a log.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the simulated runs.")] = 0,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Compare two rankings as an A/B test or interleaving would, for users whose click model is known.

    [bold]Examples[/]

      clickgym compare-online DCMRank-v0 --a Oracle --b Fixed --by ab team_draft probabilistic

      clickgym compare-online PBMRank-v0 --a 2,4,7,8,0 --b 4,2,7,8,0

      clickgym compare-online log.csv --model DCM --a p1,p2,p3 --b p2,p1,p3

    An agent learns for --train sessions, and then ranks as it would without exploration; Oracle is the optimal list, Fixed the
    list in production. The credit of interleaving is a preference and not clicks: a sentence says so where they disagree.
    Sessions for 80 % power are those of a test that is looked at once; p-value and interval of the run hold at all times.
    """
    with compiling_told(errors()):
        compared = comparison.compare_online(
            _ranking(a, model), _ranking(b, model), users, by or comparison.METHODS[:2], credit=credit, common=common,
            paired=paired, sessions=sessions, train=train, model=model, query=query, seed=seed,
        )  # fmt: skip
    console = output(as_json)
    say = partial(tell, console)
    for what, values in (
        ("Value of clicks" if compared.valued else "Clicks", compared.clicks),
        ("Satisfied users", compared.satisfaction),
    ):
        if values is not None:
            say(f"{what} per session: A {values[0]:.6g}, B {values[1]:.6g}, difference {values[0] - values[1]:+z.4g}")
    columns = [Column("method"), *(Column(name, right=True) for name in COLUMNS)]
    print_table(console, columns, map(_cells, compared.tests.values()))
    if compared.valued:
        say("The difference and ab are in the unit of item_values; credit counts clicks.")
    for sentence in compared.warnings:
        say(f"Caution: {sentence}.", "bold")
    if as_json:
        print_json({"users": users, **asdict(compared), "warnings": compared.warnings})


def _ranking(text: str, model: str | None) -> Any:
    """A ranking as it was typed: numbers of items, labels of a log's, or an agent."""
    if model is None and re.fullmatch(r"\d+(,\d+)*", text):
        return [int(item) for item in text.split(",")]
    return text if model is None or "," not in text else text.split(",")


def _cells(test: comparison.OnlineTest) -> list[str]:
    error = f" ± {test.error:.4f}" if test.error else ""
    needed = "never" if math.isinf(test.sessions) else f"{test.sessions:,.0f}"
    interval = "–" if math.isinf(test.low) else f"{test.low:+.4f} to {test.high:+.4f}"
    after = "–" if test.decided is None else f"{test.decided:,}"
    return [test.by, f"{test.mean:+z.4f}{error}", needed, f"{test.estimate:+.4f}", interval, f"{test.p_value:.2g}", after]
