"""Contextual instances from ratings, as in He et al. 2020.

The candidates of a user are the items that the user rated, because nothing is known about other
items. A user with fewer than L ratings is left out. If there are more, each session shows L of
them, drawn at random.

*Attraction* of a rating y: ``.05 + .95 (2^y - 1) / 2^y_max``, y_max the largest rating of the data.
This is the gain of the expected reciprocal rank (Chapelle et al., CIKM 2009), raised by a floor for
clicks on what is irrelevant. Or, ``linear``, the least-squares fit θ* of these
attractions to the features, so that what the agents assume holds exactly; should a fitted
attraction leave [0, 1], all are moved and scaled until they fit.

*Features* begin with a constant, for attractions are not 0 on average, and have a norm of at most
1:
``x = [1, U(i)/‖U(i)‖, V(j)/‖V(j)‖] / √3`` from the singular value decomposition of the matrix of
attractions, 0 where nothing was rated (section 6.3 of the paper, which has neither the constant nor
the lengths 1. Without them the lengths differ by factors of hundreds, and of what was rated little
next to nothing is learned). They are cut after six decimals, which keeps instance files small.

``interactions`` adds *products* of features behind these, and divides by 2 instead of √3:
``"products"`` multiplies U_a(i) by V_a(j), as the decomposition does, and ``"outer"`` each U_a(i)
by each V_b(j). Products are not written to the file: environments compute them in every session.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from ..core.checks import (
    check_choice,
    check_count,
    check_flag,
    check_kind,
    check_labels,
    check_positions,
    numbers,
)
from ..core.files import reading
from ..envs import (
    CLICK_MODELS,
    DEFAULT_INSTANCE,
    Instance,
    LabelledModel,
    LinearModel,
    interaction_pairs,
    load_instance,
    with_products,
)
from .distinct import grouped
from .reading import coded

Floats: TypeAlias = NDArray[np.float64]
Pairs: TypeAlias = NDArray[np.int64]

FLOOR = 0.05
"""The attraction of the rating 0."""
LAW = "floor + (1 - floor) (2^label - 1) / 2^largest"
"""How attraction follows from ratings."""
ATTRACTION_ONLY = tuple(
    name for name, model in CLICK_MODELS.items() if len(model.item_parameters()) == 1
)
"""The click models in which only attraction belongs to items: ratings tell nothing else."""


def read_ratings(path: str | PathLike[str]) -> pl.DataFrame:
    """Read a table of ratings in the format of MovieLens.

    Args:
        path: CSV, perhaps gzipped, with the columns ``userId``, ``movieId`` and ``rating`` (a
            number from 0); others are not read.

    Returns:
        These columns as ``user`` and ``item`` (texts) and ``rating``, a row for each rating.

    Raises:
        ValueError: naming the file and what is wrong.

    Source: Harper, Konstan, *The MovieLens datasets: history and context*, TiiS 2015.
    """
    types = {"userId": pl.String, "movieId": pl.String, "rating": pl.Float64}
    with reading(path, "cannot be read", f"expected CSV with the columns {', '.join(types)}"):
        table = pl.read_csv(Path(path), columns=list(types), schema_overrides=types)
        return table.select(user="userId", item="movieId", rating="rating")


def _check_ratings(ratings: pl.DataFrame) -> None:
    for name in ("user", "item", "rating"):
        if name not in ratings.columns or ratings[name].null_count():
            raise ValueError(f"the ratings have no {name}, or not in every row")
    numbers("rating", ratings["rating"].to_numpy(), (None,), 0.0, expected="a number from 0")
    again = ratings.select("user", "item").is_duplicated()
    if again.any():
        user, item, *_ = ratings.select("user", "item").filter(again).row(0)
        raise ValueError(f"the user {user!r} rates the item {item!r} twice")


def label_attraction(labels: Floats) -> Floats:
    """The attraction probability of ratings, by the formula in the module's docstring.

    Example:
        >>> label_attraction(np.array([0.0, 1.0, 4.0])).round(4)
        array([0.05  , 0.1094, 0.9406])
    """
    most = labels.max()
    return FLOOR + (1.0 - FLOOR) * (np.exp2(labels - most) - np.exp2(-most))


def contextual_instance(
    ratings: pl.DataFrame,
    models: Sequence[str] = ("UBM",),
    *,
    n_items: int = 10,
    n_positions: int = 5,
    linear: bool = False,
    dimension: int = 10,
    interactions: str = "none",
    name: str = "contextual",
    origin: str = "",
) -> Instance:
    """Make a contextual instance from ratings.

    Args:
        ratings: as `read_ratings` returns them; a user rates an item at most once.
        models: click models of the real query in which only attraction belongs to items: UBM, PBM,
            CM, DCM, CCM, TPBM. Its examination is taken.
        n_items: L, the number of candidates in each session.
        n_positions: K.
        linear: replace the attraction of the ratings by the linear function of the features that
            fits it best.
        dimension: the dimension of the singular value decomposition. There are twice as many
            features, and a constant.
        interactions: ``"none"``, or which products of features are further features,
            ``"products"`` or ``"outer"``.
        name, origin: of the instance.

    Returns:
        The instance; its ``estimation`` says how many users were left out, and how much of the
        variance of the attraction the best linear function explains.

    Raises:
        ValueError: naming what does not fit together.

    Source: He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for large-scale
        online mobile recommendation*, RecSys 2020, section 6.3.

    Example:
        >>> users, items = (part.ravel() for part in np.indices((8, 12)))
        >>> stars = np.random.default_rng(0).integers(1, 6, 96)
        >>> ratings = pl.DataFrame({"user": users, "item": items, "rating": stars})
        >>> instance = contextual_instance(ratings, n_items=6, n_positions=3, dimension=2)
        >>> instance.model("LabelledModel of UBM").n_features
        5
    """
    check_positions(n_positions, check_count("n_items", n_items))
    check_count("dimension", dimension)
    check_flag("linear", linear)
    check_choice("interactions", interactions, ("none", "products", "outer"))
    check_kind("ratings", ratings, pl.DataFrame, "ratings, as read_ratings returns them")
    _check_ratings(ratings)

    # Click models of the real query, with room for the attractions.
    source = load_instance(DEFAULT_INSTANCE)
    models = check_labels("models", models)
    for model in models or ("",):
        check_choice("model", model, ATTRACTION_ONLY)
    bases = [
        source.model(model, n_positions).with_items(attraction=np.zeros(n_items))
        for model in models
    ]

    # The ratings of each user who has enough of them.
    rows, _ = coded(ratings["user"])
    places, _ = coded(ratings["item"])
    labels = ratings["rating"].to_numpy().astype(np.float64)
    attraction = label_attraction(labels)
    _, groups = grouped(rows)
    enough = np.array([len(group) >= n_items for group in groups])
    if not enough.any():
        raise ValueError(
            f"no user has {n_items} candidates, the most has {max(map(len, groups))}; ask for "
            "fewer items in a session"
        )
    groups = [group for group, kept in zip(groups, enough, strict=True) if kept]

    # Features, and the attractions of the candidates of each user.
    length = np.sqrt(3.0) if interactions == "none" else 2.0
    users, items = _features(rows, places, attraction, dimension, length)
    users, candidates = users[enough], [places[group].astype(np.int64) for group in groups]
    pairs = interaction_pairs(
        interactions, range(1, 1 + dimension), range(1 + dimension, 1 + 2 * dimension)
    )
    shared: dict[str, Any] = {"items": items, "users": users, "candidates": candidates}
    attractions = [attraction[group] for group in groups]
    theta, explained, fitted = _linear_fit(shared, attractions, pairs)

    contents: list[LabelledModel | LinearModel]
    if linear and not len(pairs):
        contents = [LinearModel(base, theta, **shared) for base in bases]
    else:
        shared["attraction"] = fitted if linear else attractions
        contents = [LabelledModel(base, interactions=pairs, **shared) for base in bases]
    n_candidates = len(np.unique(np.concatenate(candidates)))
    what = "linear in them"
    if not linear:
        what = f"from labels, {explained:.0%} of its variance linear in them"
    return Instance(
        name,
        {model.kind: model for model in contents},
        n_positions,
        description=f"{len(groups):,} users, {n_candidates:,} items, {contents[0].n_features} "
        f"features; attraction {what}",
        origin="; ".join(filter(None, (origin, f"examination: {source.origin}"))),
        estimation={
            "left_out": int((~enough).sum()),
            "attraction": "linear" if linear else LAW,
            "floor": FLOOR,
            "explained_by_linear_fit": round(explained, 4),
            "features": "singular value decomposition",
            **({"interactions": interactions} if interactions != "none" else {}),
        },
    )


def _features(
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    attraction: Floats,
    dimension: int,
    length: float,
) -> tuple[Floats, Floats]:
    """The features of users and of items, from ratings by user and item, divided by a length."""
    matrix = sparse.csr_array((attraction, (users, items)))
    if dimension >= min(matrix.shape):
        n_users, n_items = matrix.shape
        expected = f"expected less than {min(matrix.shape)}: {n_users:,} users, {n_items:,} items"
        raise ValueError(f"dimension is {dimension}; {expected}")
    left, values, right = svds(matrix, k=dimension, v0=np.ones(min(matrix.shape)))
    if values.min() <= values.max() * 1e-10:
        raise ValueError(f"the ratings have a rank below dimension = {dimension}")
    # Largest values first; the largest entry of each direction of items is positive.
    left, right = left[:, ::-1], right[::-1].T
    signs = np.sign(right[np.abs(right).argmax(axis=0), np.arange(dimension)])
    tables = [
        vectors * signs / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
        for vectors in (left, right)
    ]
    tables[0] = np.hstack([np.ones((len(left), 1)), tables[0]])
    # Towards 0, so that no norm grows.
    of_users, of_items = (np.trunc(table / length * 1e6) / 1e6 for table in tables)
    return of_users, of_items


def _linear_fit(
    shared: dict[str, Any], attractions: list[Floats], pairs: Pairs
) -> tuple[Floats, float, list[Floats]]:
    """θ* with attractions in [0, 1], the share of the variance explained before it is moved there,
    and these attractions.
    """
    sizes = list(map(len, shared["candidates"]))
    of_items = shared["items"][np.concatenate(shared["candidates"])]
    x = with_products(np.hstack([np.repeat(shared["users"], sizes, axis=0), of_items]), pairs)
    y = np.concatenate(attractions)
    theta: Floats = np.linalg.lstsq(x, y, rcond=None)[0].astype(np.float64, copy=False)
    fitted = x @ theta
    variance = float(((y - y.mean()) ** 2).sum())
    # Of equal attractions the variance is rounding error, or 0.
    explained = 1.0 - float(((y - fitted) ** 2).sum()) / variance if np.ptp(y) else 1.0
    least, most = min(float(fitted.min()), 0.0), max(float(fitted.max()), 1.0)
    theta /= most - least
    theta[0] -= least / (most - least) / x[0, 0]  # the first feature is the constant
    return theta, explained, np.split((x @ theta).clip(0.0, 1.0), np.cumsum(sizes)[:-1])
