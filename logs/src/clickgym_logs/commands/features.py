"""``clickgym features``: contextual instances from ratings, clicks or judged queries."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from clickgym.envs import Instance
from clickgym.runner.console import output
from clickgym.runner.terminal import say

from ..contextual import ATTRACTION_ONLY, click_attraction, contextual_instance, read_ratings
from ..judgments import GRADED_USERS, judged_instance, read_judgments
from ..readers import log_name, read_log
from .logs import Columns, names

DATA, INSTANCE = "Your data, one of three kinds", "The instance"
RATED, JUDGED = "With ratings or a click log", "With judged queries"
"""The sections of the help text."""
LARGEST = 5_000_000
"""Numbers in an instance file."""
USERS = ", ".join(GRADED_USERS[2])


def features(
    data: Annotated[
        Path | None,
        typer.Argument(
            rich_help_panel=DATA,
            metavar="DATA",
            show_default=False,
            help="Ratings: a CSV or Parquet file with the columns userId, movieId and rating.",
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            rich_help_panel=INSTANCE,
            metavar="FILE",
            help="The instance file, name.json.",
            show_default=False,
        ),
    ] = ...,  # type: ignore[assignment]
    judgments: Annotated[
        list[Path] | None,
        typer.Option(
            rich_help_panel=DATA,
            metavar="FILE...",
            help="Instead of DATA: judged queries in SVMlight format.",
            show_default=False,
        ),
    ] = None,
    clicks: Annotated[
        list[str] | None,
        typer.Option(
            rich_help_panel=DATA,
            metavar="LOG...",
            help="Instead of DATA: a click log with a column user. Its clicks tell what attracts "
            "each user.",
            show_default=False,
        ),
    ] = None,
    columns: Columns = "",
    candidates: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=INSTANCE,
            metavar="L",
            help="Candidate items of a session. Users with fewer ratings are left out, and queries "
            "with fewer documents get blank rows.",
            show_default="10, with --judgments the largest query",
        ),
    ] = None,
    positions: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=INSTANCE,
            metavar="K",
            help="Positions of a list.",
            show_default="5, with --judgments 10",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            rich_help_panel=RATED,
            metavar="MODEL...",
            help=f"How users click: one or more of {', '.join(map(str, ATTRACTION_ONLY))}.",
            show_default="UBM",
        ),
    ] = None,
    linear: Annotated[
        bool | None,
        typer.Option(
            "--linear",
            rich_help_panel=RATED,
            help="Replace the attraction probabilities by their best linear fit from the features.",
            show_default=False,
        ),
    ] = None,
    dimension: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=RATED,
            metavar="N",
            help="Features of the user, and as many of the item.",
            show_default="10",
        ),
    ] = None,
    interactions: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=RATED,
            metavar="none|products|outer",
            help="Add products of the user's and the item's features: those at the same place, or "
            "all of them.",
            show_default="none",
        ),
    ] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(
            rich_help_panel=JUDGED,
            metavar="FILE...",
            help="Queries that no user sees, for the metric held_out_ndcg@k.",
            show_default=False,
        ),
    ] = None,
    users: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=JUDGED,
            metavar="USERS",
            help=f"Who clicks: one of {USERS}.",
            show_default="navigational",
        ),
    ] = None,
    grades: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=JUDGED,
            metavar="2|3|5",
            help="The number of grades.",
            show_default="the least that holds the largest grade",
        ),
    ] = None,
) -> None:
    """Make users of items with features, from ratings, clicks or judged queries.

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

    Items of your own click log, which has a column user:

    clickgym features --clicks log.csv --out shop.json

    Documents with relevance grades, and users who click by grade:

    clickgym features --judgments train.txt --test test.txt --out letor.json

    \b
    clickgym run ContextualDBNRank-v0 --instance letor.json \\
        --agents PDGD:eta=0.1 LinearTS --metrics ndcg@10 held_out_ndcg@10 \\
        --horizon 1e4 --out letor

    The features of users and items come from a singular value decomposition of the ratings (He et
    al. 2020). An item with rating y has the attraction .05 + .95 (2^y - 1) / 2^(largest rating).
    With --clicks, the attraction follows equation 12 of the same paper.
    """
    if out.suffix != ".json" or not out.absolute().parent.is_dir() or out.is_dir():
        raise ValueError(
            f"--out is {out}; expected the name of a .json file in a folder that exists"
        )
    sizes = _given(n_items=candidates, n_positions=positions)
    of_ratings = _given(model=model, linear=linear, dimension=dimension, interactions=interactions)
    of_judgments = _given(users=users, grades=grades, test=test)
    if (data is not None) + bool(judgments) + bool(clicks) != 1:
        raise ValueError("expected one of DATA, a file of ratings, --judgments and --clicks")
    if columns and not clicks:
        raise ValueError("--columns: only for --clicks")
    wrong, kind = (of_ratings, "ratings") if judgments else (of_judgments, "--judgments")
    if wrong:
        raise ValueError(f"{', '.join(f'--{name}' for name in wrong)}: only for {kind}")
    console = output()
    if judgments:
        instance = _from_judgments(console, judgments, out.stem, sizes, of_judgments)
        instance.save(out)
        say(console, f"{out}: {instance.description}")
        return
    if clicks:
        named = names(columns)
        log = read_log(clicks, columns={"query": named.pop("user", "user"), **named})
        ratings, source = click_attraction(log), log_name(clicks)
        read = f"read {len(log):,} sessions of {len(log.query_labels):,} users"
    else:
        assert data is not None
        ratings, source = read_ratings(data), data.name
        read = f"read {len(ratings):,} ratings of {ratings['user'].n_unique():,} users"
    n_candidates = sizes.setdefault("n_items", 10)
    with warnings.catch_warnings(record=True) as cautions:
        warnings.simplefilter("always", UserWarning)
        instance = contextual_instance(
            ratings,
            of_ratings.pop("model", ["UBM"]),
            name=out.stem,
            origin=f"made by clickgym from {source}",
            **sizes,
            **of_ratings,
        )
    instance.save(out)
    left_out = instance.estimation["left_out"]
    say(console, read)
    if left_out:
        say(console, f"left out {left_out:,} users with fewer than {n_candidates} candidates")
    say(console, f"{out}: {instance.description}")
    for caution in cautions:
        say(console, f"Caution: {caution.message}")


def _given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value not in (None, [])}


def _from_judgments(
    console: Console, files: list[Path], name: str, sizes: Any, options: Any
) -> Instance:
    """Read judged queries and say what they are; return their instance."""
    judged = read_judgments(files)
    n, d = judged.features.shape
    say(console, f"read {n:,} documents of {len(judged.queries):,} queries, {d:,} features")
    if "test" in options:
        test = options["test"] = read_judgments(options["test"], n_features=d)
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
    if "grades" in options:
        options["n_grades"] = options.pop("grades")
    instance = judged_instance(judged, name=name, origin=origin, **sizes, **options)
    say(
        console,
        f"features are divided by {judged.scale:.4g}: a learning rate of the literature, such as "
        "0.1, is PDGD:eta=0.1",
    )
    if instance.estimation["blank"]:
        say(console, "Blank rows make Random worse: compare with shuffled documents instead")
    return instance
