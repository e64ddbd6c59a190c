"""``clickgym features``: contextual instances from ratings or judged queries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from ...envs import Instance
from ...runner.console import output
from ...runner.terminal import say
from ..contextual import contextual_instance, read_ratings
from ..judgments import GRADED_USERS, judged_instance, read_judgments

LARGEST = 5_000_000
"""Numbers in an instance file."""
USERS = ", ".join(GRADED_USERS[2])


def features(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            show_default=False,
            help="Ratings: a CSV file with the columns userId, movieId and rating.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The instance file, name.json.", show_default=False)
    ] = ...,  # type: ignore[assignment]
    judgments: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE...",
            help="Instead of DATA: judged queries in SVMlight format.",
            show_default=False,
        ),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            metavar="L",
            help="Candidate items of a session. Users with fewer ratings are left out, and queries "
            "with fewer documents get blank rows.",
            show_default="10, with --judgments the largest query",
        ),
    ] = None,
    positions: Annotated[
        int | None,
        typer.Option(
            metavar="K", help="Positions of a list.", show_default="5, with --judgments 10"
        ),
    ] = None,
    linear: Annotated[
        bool | None,
        typer.Option(
            "--linear",
            help="With ratings: replace attractions by their best linear fit from the features.",
            show_default=False,
        ),
    ] = None,
    interactions: Annotated[
        str | None,
        typer.Option(
            metavar="none|products|outer",
            help="With ratings: add products of the features of user and item, those at the same "
            "place or all of them.",
            show_default="none",
        ),
    ] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE...",
            help="With judged queries: queries that no user sees, for the metric held_out_ndcg@k.",
            show_default=False,
        ),
    ] = None,
    users: Annotated[
        str | None,
        typer.Option(
            metavar="USERS",
            help=f"With judged queries: who clicks, one of {USERS}.",
            show_default="navigational",
        ),
    ] = None,
) -> None:
    """Make users of items with features, from ratings or judged queries.

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

    Documents with relevance grades, and users who click by grade:

    clickgym features --judgments train.txt --test test.txt --out letor.json

    \b
    clickgym run ContextualDBNRank-v0 --instance letor.json \\
        --agents PDGD:eta=0.1 LinearTS --metrics ndcg@10 held_out_ndcg@10 \\
        --horizon 1e4 --out letor

    The features of users and items come from a singular value decomposition of the ratings (He et
    al. 2020). An item with rating y has the attraction .05 + .95 (2^y - 1) / 2^(largest rating).
    """
    if out.suffix != ".json":
        raise ValueError(f"--out is {out}; expected the name of a .json file")
    if (data is None) == (not judgments):
        raise ValueError("expected DATA, a file of ratings, or --judgments")
    sizes = _given(n_items=candidates, n_positions=positions)
    of_ratings = _given(linear=linear, interactions=interactions)
    of_judgments = _given(users=users, test=test)
    if wrong := of_ratings if judgments else of_judgments:
        raise ValueError(
            f"--{next(iter(wrong))} does not go with {'--judgments' * bool(judgments) or 'ratings'}"
        )
    console = output()
    if judgments:
        instance = _from_judgments(
            console, judgments, out.stem, test or [], users or "navigational", sizes
        )
    else:
        assert data is not None
        ratings = read_ratings(data)
        say(console, f"read {len(ratings):,} ratings of {ratings['user'].n_unique():,} users")
        instance = contextual_instance(
            ratings,
            name=out.stem,
            origin=f"made by clickgym from {data.name}",
            **sizes,
            **of_ratings,
        )
        if left_out := instance.estimation["left_out"]:
            say(console, f"left out {left_out:,} users with fewer ratings than candidates")
    instance.save(out)
    say(console, f"{out}: {instance.description}")


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value not in (None, [])}


def _from_judgments(
    console: Console, files: list[Path], name: str, test_files: list[Path], users: str, sizes: Any
) -> Instance:
    """Read judged queries and say what they are; return their instance."""
    judged = read_judgments(files)
    n, d = judged.features.shape
    say(console, f"read {n:,} documents of {len(judged.queries):,} queries, {d:,} features")
    test = read_judgments(test_files, n_features=d) if test_files else None
    if test is not None:
        n += len(test.grades)
        say(
            console,
            f"read {len(test.grades):,} documents of {len(test.queries):,} held-out queries",
        )
    if n * d > LARGEST:
        raise ValueError(
            f"a JSON instance would have {n * d:,} numbers: make it in Python with judged_instance"
        )
    origin = f"made by clickgym from {', '.join(file.name for file in files)}"
    say(
        console,
        f"features are divided by {judged.scale:.4g}: a learning rate of the literature, such as "
        "0.1, is PDGD:eta=0.1",
    )
    return judged_instance(judged, users, test=test, name=name, origin=origin, **sizes)
