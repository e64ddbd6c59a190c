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

__all__ = ["features"]

# Labels and features tell the attraction of items, and nothing else of them.
ATTRACTION_ONLY = [name for name, model in CLICK_MODELS.items() if len(model.item_parameters()) == 1]


def features(
    data: Annotated[Path, typer.Argument(
        metavar="DATA", show_default=False,
        help="Ratings, [bold].csv[/] with the columns userId, movieId, rating; or documents with labels of relevance in the "
        "SVMlight form of LETOR, with qid or a file of query sizes beside them ([bold]NAME.query[/]). Either may be gzipped.",
    )],
    out: Annotated[Path, typer.Option(metavar="FILE", help="The instance file, [bold]name.json[/].")],
    model: Annotated[list[str] | None, typer.Option(
        "--model", "-m", metavar="MODEL...", help=f"One or more of {', '.join(map(bold, ATTRACTION_ONLY))}.",
        show_default="UBM",
    )] = None,
    users: Annotated[str | None, typer.Option(
        metavar="|".join(GRADED_USERS), help="Simulated users (DBN), who click and stop by the grade of a document (0 to 4).",
        show_default=False,
    )] = None,
    candidates: Annotated[int, typer.Option(
        metavar="L", help="Items to choose from in a session. Users and queries that judged fewer are left out.",
    )] = 10,
    positions: Annotated[int, typer.Option(metavar="K", help="Positions of a list.")] = 5,
    linear: Annotated[bool, typer.Option(
        "--linear", help="Replace the attraction from labels by the linear function of the features that fits it best.",
    )] = False,
    floor: Annotated[float, typer.Option(metavar="P", help="Attraction of what has the label 0.")] = 0.05,
    normalise: Annotated[str, typer.Option(
        metavar="largest|query", help="Divide each feature of documents by its largest value, or take it from 0 to 1 within "
        "each query.",
    )] = "largest",
    reduce: Annotated[str, typer.Option(
        metavar="none|svd|autoencoder", help="Reduce the features of documents to a smaller dimension.",
    )] = "none",
    dimension: Annotated[int, typer.Option(
        metavar="N", help="Of the reduction; for ratings, of the decomposition: N features of the user, N of the item.",
    )] = 10,
    items: Annotated[int | None, typer.Option(
        metavar="N", help="Of ratings, only the N items that were rated most.", show_default="all",
    )] = None,
    examination: Annotated[str, typer.Option(
        metavar="NAME|FILE", help="The instance that says how users examine a list.",
    )] = DEFAULT_INSTANCE,
    held_out: Annotated[str, typer.Option(
        "--held-out", metavar="SHARE|FILE", help="Queries without sessions, on which what was learned is measured in Python: a "
        "share of them, or documents in another file. With --users.",
    )] = "0",
    seed: Annotated[int, typer.Option(
        metavar="N", help="Of the decomposition, the autoencoder and the queries that are held out.",
    )] = 0,
) -> None:  # fmt: skip
    """Make a contextual instance from ratings or from judged documents: users, items, features, attraction.

    [bold]Examples[/]

    Films as candidates, features by singular value decomposition (He et al. 2020):

      clickgym features ml-latest-small/ratings.csv --out movielens.json

      clickgym run ContextualUBMRank-v0 --instance movielens.json --agents UBMLinUCB C2UCB --horizon 1e5 --out films

    Documents of queries, their features reduced to ten:

      clickgym features rank.train.gz --reduce svd --dimension 10 --out letor.json

    Simulated users, who click by the grade of a document, and queries on which what was learned is measured:

      clickgym features rank.train.gz --users navigational --normalise query --held-out rank.test.gz --out nav.json

      clickgym run ContextualDBNRank-v0 --instance nav.json --agents PDGD LinearTS --horizon 1e5 --out nav

    The attraction of a label y is floor + (1 - floor) (2^y - 1) / 2^largest.
    """
    if out.suffix != ".json" or not out.absolute().parent.is_dir() or out.is_dir():
        raise ValueError(f"--out is {out}; expected the name of a .json file in a folder that exists")
    apart = read_judgements(held_out) if Path(held_out).is_file() else _share(held_out)
    judgements = read_judgements(data)
    instance = contextual_instance(
        judgements, model, users=users, n_items=candidates, n_positions=positions, linear=linear, floor=floor,
        normalise=normalise, reduce=reduce, dimension=dimension, most_rated=items, held_out=apart, examination=examination,
        seed=seed, name=out.stem, origin=f"made by clickgym from {data.name}",
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
