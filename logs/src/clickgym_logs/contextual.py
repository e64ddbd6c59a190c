"""Contextual instances from ratings, as in He et al. 2020.

The candidates of a user are the items that the user rated, because nothing is known about other
items. A user with fewer than L ratings is left out. If there are more, each session shows L of
them, drawn at random.

*Attraction* of a rating y: ``floor + (1 - floor) (2^y - 1) / 2^y_max``, y_max the largest rating of
the data. This is the gain of the expected reciprocal rank (Chapelle et al., CIKM 2009), raised by a
floor for clicks on what is irrelevant. Or, ``linear``, the least-squares fit θ* of these
attractions to the features, so that what the agents assume holds exactly; should a fitted
attraction leave [0, 1], all are moved and scaled until they fit.

*Features* begin with a constant, for attractions are not 0 on average, and have a norm of at most
1:
``x = [1, U(i)/‖U(i)‖, V(j)/‖V(j)‖] / √3`` from the singular value decomposition of the matrix of
attractions, 0 where nothing was rated (section 6.3 of the paper, which has neither the constant nor
the lengths 1. Without them the lengths differ by factors of hundreds, and of what was rated little
next to nothing is learned). They are cut after six decimals, which keeps instance files small.

``interactions`` adds *products* of features behind these, and one number scales all so that the
largest norm is 1:
``"products"`` multiplies U_a(i) by V_a(j), as the decomposition does, and ``"outer"`` each U_a(i)
by each V_b(j). Products are not written to the file: environments compute them in every session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from clickgym.core.checks import (
    as_call,
    check_choice,
    check_count,
    check_flag,
    check_kind,
    check_labels,
    check_path,
    check_positions,
    check_seed,
    integers,
    numbers,
    probability,
)
from clickgym.core.formats import one_line
from clickgym.envs import (
    DEFAULT_INSTANCE,
    ClickModel,
    Instance,
    LabelledModel,
    LinearModel,
    load_instance,
)
from clickgym.envs.contextual.interactions import (
    INTERACTIONS,
    interaction_pairs,
    largest_norm,
    with_products,
)

from .distinct import grouped
from .features import TruncatedSVD
from .log import set_checked
from .readers import coded

Floats: TypeAlias = NDArray[np.float64]
Groups: TypeAlias = Sequence[NDArray[np.int64]]
Pairs: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ratings:
    """How users rate items.

    Args:
        users: ``(E,)`` the user of each rating, as an index into ``user_labels``.
        items: ``(E,)`` the item, as an index into ``item_labels``; a user rates an item at most
            once.
        stars: ``(E,)`` numbers from 0, the more the better.
        user_labels, item_labels: what the indices stand for.

    Raises:
        ValueError: naming the array and what was expected.

    Example:
        >>> ratings = Ratings([0, 0, 1], [0, 1, 1], [5, 3, 4], ("ann", "bob"), ("Heat", "Jumanji"))
        >>> len(ratings), ratings.stars.tolist()
        (3, [5.0, 3.0, 4.0])
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    stars: NDArray[np.float64]
    user_labels: tuple[str, ...]
    item_labels: tuple[str, ...]

    def __post_init__(self) -> None:
        checked = partial(set_checked, self)
        n_users, n_items = (
            len(checked(name, check_labels)) for name in ("user_labels", "item_labels")
        )
        shape = checked(
            "users", integers, ("ratings",), 0, n_users, dtype=np.int32, whole=True
        ).shape
        checked("items", integers, shape, 0, n_items, dtype=np.int32, whole=True)
        checked("stars", numbers, shape, 0.0, expected="a finite number from 0", copy=False)
        pairs = self.users.astype(np.int64) * n_items + self.items
        if len(np.unique(pairs)) < len(pairs):
            raise ValueError("a user rates an item twice")

    def __repr__(self) -> str:
        return as_call(
            self, n_ratings=len(self), n_users=len(self.user_labels), n_items=len(self.item_labels)
        )

    def __len__(self) -> int:
        return len(self.users)


def read_ratings(path: str | PathLike[str]) -> Ratings:
    """Read a table of ratings in the format of MovieLens.

    Args:
        path: CSV file, gzipped if its name ends with ``.gz``, or Parquet, with the columns
            ``userId``, ``movieId`` and ``rating`` (a number from 0); others are not read.

    Raises:
        ValueError: naming the file and what is wrong.

    Source: Harper, Konstan, *The MovieLens datasets: history and context*, TiiS 2015.
    """
    path = check_path("path", path)
    try:
        table = (
            pl.scan_parquet(path)
            if path.suffix == ".parquet"
            else pl.scan_csv(path, infer_schema=False)
        )
        rows = table.select(
            pl.col("userId", "movieId").cast(pl.String), pl.col("rating").cast(pl.Float64)
        ).collect()
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path}: {one_line(str(error))}") from None
    for name in rows.columns:
        if rows[name].null_count():
            raise ValueError(
                f"{path}: row {rows[name].is_null().arg_true()[0] + 1} has no value in the column {name!r}"
            )
    users, user_labels = coded(rows["userId"])
    items, item_labels = coded(rows["movieId"])
    try:
        return Ratings(users, items, rows["rating"].to_numpy(), user_labels, item_labels)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def label_attraction(labels: Floats, floor: float = 0.05) -> Floats:
    """The attraction probability of ratings, by the formula in the module's docstring.

    Args:
        labels: numbers from 0.
        floor: the attraction of the label 0, in [0, 1].

    Returns:
        Probabilities; the largest label's is ``1 - (1 - floor) 2^-y_max``.

    Example:
        >>> label_attraction(np.array([0.0, 1.0, 4.0]), floor=0.0)
        array([0.    , 0.0625, 0.9375])
    """
    labels, floor = numbers("labels", labels, (None,), 0.0), probability("floor", floor)
    most = labels.max()
    return floor + (1.0 - floor) * (np.exp2(labels - most) - np.exp2(-most))


def contextual_instance(
    ratings: Ratings,
    models: Sequence[str] = ("UBM",),
    *,
    n_items: int = 10,
    n_positions: int = 5,
    linear: bool = False,
    floor: float = 0.05,
    dimension: int = 10,
    interactions: str = "none",
    most_rated: int | None = None,
    examination: str = DEFAULT_INSTANCE,
    seed: int = 0,
    name: str = "contextual",
    origin: str = "",
) -> Instance:
    """Make a contextual instance from ratings.

    Args:
        ratings: as `read_ratings` returns them.
        models: click models of the instance ``examination`` in which only attraction belongs to
        items: UBM, PBM, CM, DCM.
        n_items: L, the number of candidates in each session.
        n_positions: K.
        linear: replace the attraction of the ratings by the linear function of the features that
            fits it best.
        floor: attraction of the rating 0.
        dimension: of the singular value decomposition; there are twice as many features and a
            constant.
        interactions: ``"none"``, or which products of features are further features, ``"products"``
            or ``"outer"``.
        most_rated: keep only so many items, those with the most ratings; None keeps all.
        examination: the instance whose users' examination is taken: a name or a file.
        seed: of the decomposition.
        name, origin: of the instance.

    Returns:
        The instance; its ``estimation`` says how many users were left out, and how much of the
        variance of the attraction the best linear function explains.

    Raises:
        ValueError: naming what does not fit together.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> users, items = (part.ravel() for part in np.indices((8, 12)))
        >>> names = tuple(map(str, range(12)))
        >>> ratings = Ratings(users, items, rng.integers(1, 6, 96), names[:8], names)
        >>> instance = contextual_instance(ratings, n_items=6, n_positions=3, dimension=2)
        >>> instance.model("LabelledModel of UBM").n_features
        5
    """
    check_positions(n_positions, check_count("n_items", n_items))
    probability("floor", floor)
    check_count("dimension", dimension)
    check_seed(seed)
    check_flag("linear", linear)
    check_choice("interactions", interactions, ("none", *INTERACTIONS))
    check_kind("origin", origin, str, "text")
    check_kind("ratings", ratings, Ratings, "ratings, as read_ratings returns them")
    source, bases = _bases(models, examination, n_items, n_positions)
    ratings = _of_most_rated(ratings, most_rated)
    users, items = _features(ratings, dimension, floor, seed)
    raters, groups = _groups(ratings.users, n_items)
    places = _places(ratings)
    shared: dict[str, Any] = {
        "items": items,
        "users": users[raters],
        "candidates": [places[group] for group in groups],
    }
    pairs = _pairs(interactions, shared)
    shared = _scaled(shared, pairs)
    contents, explained, words = _users(
        bases, linear, label_attraction(ratings.stars, floor), groups, shared, pairs
    )
    n_candidates = len(np.unique(np.concatenate(shared["candidates"])))
    return Instance(
        name,
        {model.kind: model for model in contents},
        n_positions,
        description=(
            f"{len(groups):,} users, {n_candidates:,} items, {contents[0].n_features} features; attraction {words}"
        ),
        origin="; ".join(filter(None, (origin, f"examination: {source.origin}"))),
        estimation={
            "left_out": len(np.unique(ratings.users)) - len(groups),
            "attraction": "linear" if linear else "floor + (1 - floor) (2^label - 1) / 2^largest",
            "floor": floor,
            "explained_by_linear_fit": round(explained, 4),
            "features": "singular value decomposition",
            **({"interactions": interactions} if interactions != "none" else {}),
            "seed": seed,
        },
    )


def _of_most_rated(ratings: Ratings, most_rated: int | None) -> Ratings:
    """All ratings, or those of the items with the most of them."""
    if most_rated is None:
        return ratings
    check_count("most_rated", most_rated)
    counts = np.bincount(ratings.items, minlength=len(ratings.item_labels))
    kept = np.isin(ratings.items, np.argsort(-counts, kind="stable")[:most_rated])
    return replace(
        ratings, users=ratings.users[kept], items=ratings.items[kept], stars=ratings.stars[kept]
    )


def _places(ratings: Ratings) -> NDArray[np.int64]:
    """The place of each rating's item among those that are rated."""
    return np.unique(ratings.items, return_inverse=True)[1]


def _users(
    bases: Sequence[ClickModel],
    linear: bool,
    attraction: Floats,
    groups: Groups,
    shared: dict[str, Any],
    pairs: Pairs,
) -> tuple[Sequence[LabelledModel | LinearModel], float, str]:
    """The models, the share of their attraction that a linear function explains, and the
    description.
    """
    attractions = [attraction[group] for group in groups]
    theta, explained, fitted = _linear_fit(shared, attractions, pairs)
    words = (
        "linear in them"
        if linear
        else f"from labels, {explained:.0%} of its variance linear in them"
    )
    if linear and not len(pairs):
        return [LinearModel(base, theta, **shared) for base in bases], explained, words
    if linear:
        attractions = fitted
    models = [
        LabelledModel(base, attraction=attractions, interactions=pairs, **shared) for base in bases
    ]
    return models, explained, words


def _bases(
    models: Sequence[str], examination: str, n_items: int, n_positions: int
) -> tuple[Instance, list[ClickModel]]:
    """The instance that says how lists are examined, and its click models before items without
    attraction.
    """
    models = check_labels("models", models)
    source = load_instance(examination)
    # Labels and features tell the attraction of items, and nothing else of them.
    offered = [
        kind
        for kind, model in source.models.items()
        if isinstance(model, ClickModel) and len(model.item_parameters()) == 1
    ]
    for model in models:
        check_choice("model", model, offered)
    if not models or len(set(models)) < len(models):
        raise ValueError(
            f"models are {', '.join(models) or 'none'}; expected one or more of {', '.join(offered)}, each once"
        )
    return source, [
        source.model(model, n_positions).with_items(attraction=np.zeros(n_items))
        for model in models
    ]


def _groups(
    users: NDArray[np.int32], n_items: int
) -> tuple[NDArray[np.int32], list[NDArray[np.int64]]]:
    """The users with enough candidates for a session, and the entries of each."""
    raters, groups = grouped(users)
    enough = [len(group) >= n_items for group in groups]
    if not any(enough):
        raise ValueError(
            f"no user has {n_items} candidates, the most has {max(map(len, groups))}; ask for fewer items in a session"
        )
    return raters[enough], list(compress(groups, enough))


def _features(ratings: Ratings, dimension: int, floor: float, seed: int) -> tuple[Floats, Floats]:
    """The features of users and of items."""
    places = _places(ratings)
    shape = (len(ratings.user_labels), int(places.max()) + 1)
    matrix = sparse.csr_array(
        (label_attraction(ratings.stars, floor), (ratings.users, places)), shape
    )
    svd = TruncatedSVD(dimension, seed=seed).fit(matrix)
    users, items = (
        vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
        for vectors in (svd.users_, svd.items_)
    )
    constant = np.ones((len(users), 1))
    return _cut(np.hstack([constant, users]) / np.sqrt(3.0)), _cut(items / np.sqrt(3.0))


def _cut(features: Floats) -> Floats:
    """Towards 0, so that no norm grows."""
    return np.trunc(features * 1e6) / 1e6


def _pairs(interactions: str, shared: dict[str, Any]) -> Pairs:
    """The pairs of features whose products are added; the first feature is the constant."""
    n_user_features, n_item_features = shared["users"].shape[1], shared["items"].shape[1]
    return interaction_pairs(
        interactions,
        range(1, n_user_features),
        range(n_user_features, n_user_features + n_item_features),
    )


def _scaled(shared: dict[str, Any], pairs: Pairs) -> dict[str, Any]:
    """Features whose largest norm is 1 with the products; the constant is cut first, so that no
    product grows by the cut.
    """
    if not len(pairs):
        return shared
    users, items, candidates = shared["users"], shared["items"], shared["candidates"]
    constant = users[0, 0]
    scaled = _cut(constant / largest_norm(users, items, pairs, candidates))
    tables = {
        "items": _cut(items * (scaled / constant)),
        "users": _cut(users * (scaled / constant)),
    }
    tables["users"][:, 0] = scaled
    return shared | tables


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
