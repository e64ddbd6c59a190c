"""``clickgym features``: contextual instances from ratings and judged documents."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...core.console import bold, output
from ...core.terminal import say
from ...envs import CLICK_MODELS, DEFAULT_INSTANCE, GRADED_USERS
from ..contextual import contextual_instance
from ..judgements import read_judgements

# Labels and features tell the attraction of items, and nothing else of them.
ATTRACTION_ONLY = [name for name, model in CLICK_MODELS.items() if len(model.item_parameters()) == 1]


def features(
    data: Annotated[Path, typer.Argument(
        metavar="DATA", show_default=False,
        help="Ratings: a [bold].csv[/] file with the columns userId, movieId, rating. Or judged documents: a file in the "
        "SVMlight format of LETOR, with qid or with a file of query sizes beside it ([bold]NAME.query[/]). Either may be "
        "gzipped.",
    )],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The instance file, [bold]name.json[/].")],
    model: Annotated[list[str] | None, typer.Option(
        "--model", "-m", metavar="MODEL...", help=f"One or more of {', '.join(map(bold, ATTRACTION_ONLY))}.",
        show_default="UBM",
    )] = None,
    users: Annotated[str | None, typer.Option(
        metavar="|".join(GRADED_USERS), help="Simulated users (DBN) whose clicks and stops depend on the relevance grade of a "
        "document (0 to 4).",
        show_default=False,
    )] = None,
    candidates: Annotated[int, typer.Option(
        metavar="L", help="Candidate items per session. Users with fewer ratings and queries with fewer documents are left "
        "out.",
    )] = 10,
    positions: Annotated[int, typer.Option(metavar="K", help="Positions of a list.")] = 5,
    linear: Annotated[bool, typer.Option(
        "--linear", help="Replace the attraction probabilities by their best linear fit from the features.",
    )] = False,
    floor: Annotated[float, typer.Option(metavar="P", help="Attraction of items with label 0.")] = 0.05,
    normalise: Annotated[str, typer.Option(
        metavar="largest|query", help="Divide each feature of documents by its largest value, or scale it to 0..1 within each "
        "query.",
    )] = "largest",
    reduce: Annotated[str, typer.Option(
        metavar="none|svd|autoencoder", help="Reduce the dimension of the features of documents.",
    )] = "none",
    dimension: Annotated[int, typer.Option(
        metavar="N", help="Number of features after the reduction; for ratings, N features of the user and N of the item.",
    )] = 10,
    interactions: Annotated[str, typer.Option(
        metavar="none|products|outer", help="Add products of features: of the user's with the item's at the same place, or all "
        "of them; of documents their squares, or all products of two.",
    )] = "none",
    items: Annotated[int | None, typer.Option(
        metavar="N", help="Use only the N items with most ratings.", show_default="all",
    )] = None,
    examination: Annotated[str, typer.Option(
        metavar="NAME|FILE", help="The instance from which the examination parameters are taken.",
    )] = DEFAULT_INSTANCE,
    held_out: Annotated[str, typer.Option(
        "--held-out", metavar="SHARE|FILE", help="Queries held out as a test set: a share of the queries, or a file of judged "
        "documents. Needs --users; the test set is used from Python only.",
    )] = "0",
    seed: Annotated[int, typer.Option(
        metavar="N", help="Seed of the decomposition, the autoencoder and the choice of held-out queries.",
    )] = 0,
) -> None:  # fmt: skip
    """Make a contextual instance (items with features) from ratings or from judged documents.

    [bold]Examples[/]

    Films as candidates, with features from a singular value decomposition (He et al. 2020):

      clickgym features ml-latest-small/ratings.csv --out movielens.json

      clickgym run ContextualUBMRank-v0 --instance movielens.json --agents UBMLinUCB C2UCB --horizon 1e5 --out films

    The same with products of user's and film's features, so that linear agents can learn what each user prefers:

      clickgym features ml-latest-small/ratings.csv --interactions products --out movielens-products.json

    Documents of queries, with their features reduced to ten:

      clickgym features rank.train.gz --reduce svd --dimension 10 --out letor.json

    Simulated users who click by the grade of a document, and held-out queries:

      clickgym features rank.train.gz --users navigational --normalise query --held-out rank.test.gz --out nav.json

      clickgym run ContextualDBNRank-v0 --instance nav.json --agents PDGD LinearTS --horizon 1e5 --out nav

    An item with label y has the attraction floor + (1 - floor) (2^y - 1) / 2^(largest label).
    """
    if out.suffix != ".json" or not out.absolute().parent.is_dir() or out.is_dir():
        raise ValueError(f"--out is {out}; expected the name of a .json file in a folder that exists")
    apart = read_judgements(held_out) if Path(held_out).is_file() else _share(held_out)
    judgements = read_judgements(data)
    instance = contextual_instance(
        judgements, model, users=users, n_items=candidates, n_positions=positions, linear=linear, floor=floor,
        normalise=normalise, reduce=reduce, dimension=dimension, interactions=interactions, most_rated=items, held_out=apart,
        examination=examination, seed=seed, name=out.stem, origin=f"made by clickgym from {data.name}",
    )  # fmt: skip
    instance.save(out)
    console, left_out = output(), instance.estimation["left_out"]
    whose = "users" if judgements.features is None else "queries"
    say(console, f"read {len(judgements):,} judgements of {len(judgements.user_labels):,} {whose}")
    if left_out:
        say(console, f"left out {left_out:,} {whose} with fewer than {candidates} candidates")
    say(console, f"{out}: {instance.description}")


def _share(held_out: str) -> float:
    try:
        return float(held_out)
    except ValueError:
        raise ValueError(f"--held-out is {held_out}; expected a share of the queries, or a file that exists") from None
