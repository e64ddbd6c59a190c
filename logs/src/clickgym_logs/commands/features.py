"""``clickgym features``: contextual instances from ratings."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

from clickgym.runner.console import output
from clickgym.runner.terminal import say

from ..contextual import ATTRACTION_ONLY, contextual_instance, read_ratings


def features(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="Ratings: a .csv or .parquet file with the columns userId, movieId, rating; CSV "
            "may be gzipped.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The instance file, name.json.")],
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="MODEL...",
            help=f"One or more of {', '.join(map(str, ATTRACTION_ONLY))}.",
            show_default="UBM",
        ),
    ] = None,
    candidates: Annotated[
        int,
        typer.Option(
            metavar="L",
            help="Candidate items per session. Users with fewer ratings are left out.",
        ),
    ] = 10,
    positions: Annotated[int, typer.Option(metavar="K", help="Positions of a list.")] = 5,
    linear: Annotated[
        bool,
        typer.Option(
            "--linear",
            help="Replace the attraction probabilities by their best linear fit from the features.",
        ),
    ] = False,
    dimension: Annotated[
        int, typer.Option(metavar="N", help="N features of the user and N of the item.")
    ] = 10,
    interactions: Annotated[
        str,
        typer.Option(
            metavar="none|products|outer",
            help="Add products of features: of the user's with the item's at the same place, or "
            "all "
            "of them.",
        ),
    ] = "none",
) -> None:
    """Make a contextual instance (items with features) from ratings.

    Films as candidates, with features from a singular value decomposition (He et al. 2020):

    \b
    clickgym features ml-latest-small/ratings.csv --out movielens.json

    \b
    clickgym run ContextualUBMRank-v0 --instance movielens.json \\
        --agents UBMLinUCB C2UCB --horizon 1e5 --out films

    The same with products of user's and film's features, so that linear agents can learn what each
    user prefers:

    \b
    clickgym features ml-latest-small/ratings.csv --interactions products \\
        --out movielens-products.json

    An item with rating y has the attraction .05 + .95 (2^y - 1) / 2^(largest rating).
    """
    if out.suffix != ".json" or not out.absolute().parent.is_dir() or out.is_dir():
        raise ValueError(
            f"--out is {out}; expected the name of a .json file in a folder that exists"
        )
    ratings = read_ratings(data)
    with warnings.catch_warnings(record=True) as cautions:
        warnings.simplefilter("always", UserWarning)
        instance = contextual_instance(
            ratings,
            model or ["UBM"],
            n_items=candidates,
            n_positions=positions,
            linear=linear,
            dimension=dimension,
            interactions=interactions,
            name=out.stem,
            origin=f"made by clickgym from {data.name}",
        )
    instance.save(out)
    console, left_out = output(), instance.estimation["left_out"]
    say(console, f"read {len(ratings):,} ratings of {ratings['user'].n_unique():,} users")
    if left_out:
        say(console, f"left out {left_out:,} users with fewer than {candidates} candidates")
    say(console, f"{out}: {instance.description}")
    for caution in cautions:
        say(console, f"Caution: {caution.message}")
