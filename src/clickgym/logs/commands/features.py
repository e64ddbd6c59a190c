"""``clickgym features``: a contextual instance from ratings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...runner.console import output, say
from ..contextual import contextual_instance, read_ratings
from .options import InstanceFile


def features(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="A CSV file with the columns userId, movieId and rating.",
        ),
    ],
    out: InstanceFile,
    candidates: Annotated[
        int,
        typer.Option(
            metavar="L",
            help="Candidate items of a session. Users with fewer ratings are left out.",
        ),
    ] = 10,
    positions: Annotated[int, typer.Option(metavar="K", help="Positions of a list.")] = 5,
    linear: Annotated[
        bool,
        typer.Option(
            "--linear",
            help="Replace attractions by their best linear fit from the features.",
        ),
    ] = False,
    interactions: Annotated[
        str,
        typer.Option(
            metavar="none|products|outer",
            help="Add products of the features of user and item, those at the same place or all of "
            "them.",
        ),
    ] = "none",
) -> None:
    """Make users of items with features, from ratings.

    Films that users have rated, and two agents that learn from features:

    clickgym features ml-latest-small/ratings.csv --out movielens.json

    \b
    clickgym run ContextualUBMRank-v0 --instance movielens.json \\
        --agents UBMLinUCB C2UCB --horizon 1e5 --out films

    The same films with products of features. Linear agents need them to learn what each user
    prefers:

    \b
    clickgym features ml-latest-small/ratings.csv --interactions products \\
        --out movielens-products.json

    The features of users and items come from a singular value decomposition of the ratings (He et
    al. 2020). An item with rating y has the attraction .05 + .95 (2^y - 1) / 2^(largest rating).
    """
    console = output()
    ratings = read_ratings(data)
    say(console, f"read {len(ratings):,} ratings of {ratings['user'].n_unique():,} users")
    instance = contextual_instance(
        ratings,
        n_items=candidates,
        n_positions=positions,
        linear=linear,
        interactions=interactions,
        name=out.stem,
        origin=f"made by clickgym from {data.name}",
    )
    if left_out := instance.estimation["left_out"]:
        say(console, f"left out {left_out:,} users with fewer ratings than candidates")
    instance.save(out)
    say(console, f"{out}: {instance.description}")
