"""The command ``clickgym judgments``, which makes a contextual instance from judged queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...runner.console import output_console, print_text
from ..judgments import GRADED_USERS, judged_instance, read_judgments

MAX_NUMBERS = 5_000_000
"""The largest number of feature values that the command saves in an instance file."""


def judgments(
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="One or more files in the SVMlight format, with the grade and the features of "
            "each document.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="Where to save the instance: name.json.", show_default=False
        ),
    ],
    test: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE...",
            help=(
                "Files with held-out queries, for the metric held_out_ndcg@k. Simulated users "
                "never issue these queries."
            ),
            show_default=False,
        ),
    ] = None,
    users: Annotated[
        str,
        typer.Option(
            metavar="USERS", help=f"How users click: one of {', '.join(GRADED_USERS[2])}."
        ),
    ] = "navigational",
    candidates: Annotated[
        int | None,
        typer.Option(
            metavar="L",
            help="Number of candidate documents per session. Queries with fewer documents get "
            "blank rows.",
            show_default="the largest query",
        ),
    ] = None,
    positions: Annotated[
        int, typer.Option(metavar="K", help="Number of positions in the list.")
    ] = 10,
) -> None:
    """Make simulated users from judged queries, so that better grades get more clicks.

    Make the users, then run two agents and test how well they rank held-out queries:

    clickgym judgments train.txt --test test.txt --out letor.json

    \b
    clickgym run ContextualDBNRank-v0 --instances letor.json \\
        --agents PDGD:eta=0.1 LinearTS --metrics ndcg@10 held_out_ndcg@10 \\
        --horizon 1e4 --out letor
    """
    if out.suffix != ".json":
        raise ValueError(f"--out is {out}; expected the name of a .json file")
    console = output_console()
    train = read_judgments(data)
    n, d = train.features.shape
    print_text(
        console,
        f"read {n:,} documents of {len(train.queries):,} queries, {d:,} features",
    )
    held_out = read_judgments(test, n_features=d) if test else None
    if held_out is not None:
        documents, queries = len(held_out.grades), len(held_out.queries)
        print_text(console, f"read {documents:,} documents of {queries:,} held-out queries")
        n += documents
    if n * d > MAX_NUMBERS:
        raise ValueError(
            f"{out} would hold {n * d:,} numbers; expected at most {MAX_NUMBERS:,}: create the "
            "instance in Python, with clickgym.logs.judged_instance"
        )
    print_text(
        console,
        f"all features are divided by {train.scale:.4g}; if a paper uses a learning rate of 0.1, "
        "for example, pass PDGD:eta=0.1",
    )
    instance = judged_instance(
        train,
        users,
        n_items=candidates,
        n_positions=positions,
        test=held_out,
        name=out.stem,
        origin=f"made by clickgym from {', '.join(file.name for file in data)}",
    )
    instance.save(out)
    print_text(console, f"{out}: {instance.description}")
