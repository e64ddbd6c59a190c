"""Make simulated users, and films with features, from ratings as in He et al. 2020, section 6.3.

    python examples/movielens.py ml-latest-small/ratings.csv --out movielens.json

A user's candidates are the films that this user rated, because the data say nothing about the
user's taste in other films. Users with fewer than L ratings are left out. If a user rated more than
L films, each session draws L of them.

*Attraction*: a film with the rating y has the attraction ``.05 + .95 (2^y - 1) / 2^y_max``, the
gain in the expected reciprocal rank (Chapelle et al., CIKM 2009) above a floor. With ``--linear``,
attraction is a linear function of the features, fitted to these values by least squares, then
shifted and scaled into [0, 1].

*Features*: for user i and film j, ``[1, U(i)/‖U(i)‖, V(j)/‖V(j)‖] / √3``, from the singular value
decomposition of the matrix of attractions, with 0 for films that a user did not rate. The paper
neither adds the constant nor scales the vectors to length 1. ``--interactions products`` adds the
products ``U_a(i) V_a(j)``, and ``--interactions outer`` adds each ``U_a(i)`` times each ``V_b(j)``;
all features are then divided by 2.

*Examination*: the examination probabilities of a real search query. Ratings: Harper, Konstan, *The
MovieLens datasets: history and context*, TiiS 2015.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse
from scipy.sparse.linalg import svds

from clickgym.envs import (
    DEFAULT_INSTANCE,
    ContextualModel,
    Instance,
    interaction_pairs,
    load_instance,
    with_products,
)

FLOOR, DIMENSION = 0.05, 10


def films(
    ratings: pl.DataFrame,
    n_items: int = 10,
    n_positions: int = 5,
    linear: bool = False,
    interactions: str = "none",
    dimension: int = DIMENSION,
) -> Instance:
    """Return the instance for a table with the columns ``userId``, ``movieId`` and ``rating``."""
    ratings = ratings.unique(["userId", "movieId"], keep="last", maintain_order=True)
    users, items = (numbered(ratings[name]) for name in ("userId", "movieId"))
    stars = ratings["rating"].to_numpy().astype(np.float64)
    attraction = FLOOR + (1 - FLOOR) * (np.exp2(stars - stars.max()) - np.exp2(-stars.max()))

    # The features of all users and items, truncated to keep the file small.
    matrix = sparse.csr_array((attraction, (users, items)))
    left, _, right = svds(matrix, k=dimension, v0=np.ones(min(matrix.shape)))
    left, right = left[:, ::-1], right[::-1].T  # the largest singular values first
    signs = np.sign(right[np.abs(right).argmax(axis=0), np.arange(dimension)])
    length = np.sqrt(3.0) if interactions == "none" else 2.0
    of_users, of_items = (
        table * signs / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-300)
        for table in (left, right)
    )
    of_users = np.hstack([np.ones((len(left), 1)), of_users])
    of_users, of_items = (np.trunc(table / length * 1e6) / 1e6 for table in (of_users, of_items))

    # The candidates of each user who rated enough films.
    groups = [np.flatnonzero(users == user) for user in range(len(of_users))]
    enough = np.array([len(group) >= n_items for group in groups])
    groups = [group for group in groups if len(group) >= n_items]
    if not groups:
        raise SystemExit(f"no user has {n_items} ratings; ask for fewer --candidates")
    attractions = [attraction[group] for group in groups]
    contents: dict[str, Any] = {
        "items": of_items,
        "users": of_users[enough],
        "candidates": [items[group] for group in groups],
    }
    base = load_instance(DEFAULT_INSTANCE).model("UBM", n_positions)
    base = base.with_items(attraction=np.zeros(n_items))
    pairs = interaction_pairs(
        interactions, range(1, 1 + dimension), range(1 + dimension, 1 + 2 * dimension)
    )
    theta, fitted = linear_fit(contents, attractions, pairs)
    if linear and not len(pairs):
        model = ContextualModel(base, theta=theta, **contents)
    else:
        contents |= {"attraction": fitted if linear else attractions, "interactions": pairs}
        model = ContextualModel(base, **contents)
    described = f"{len(groups):,} users, {len(of_items):,} items, {model.n_features} features"
    origin = "made by examples/movielens.py of clickgym from ratings"
    return Instance("films", {model.kind: model}, n_positions, described, origin)


def numbered(labels: pl.Series) -> np.ndarray:
    """Return a number for each label, counting from 0 in the order of first appearance."""
    labels = labels.cast(pl.String)
    return labels.cast(pl.Enum(labels.unique(maintain_order=True))).to_physical().to_numpy()


def linear_fit(
    contents: dict[str, Any], attractions: list[np.ndarray], pairs: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the coefficients of the least-squares fit and the fitted attractions.

    Both are shifted and scaled so that the fitted attractions lie in [0, 1].
    """
    sizes = list(map(len, attractions))
    of_items = contents["items"][np.concatenate(contents["candidates"])]
    x = with_products(np.hstack([np.repeat(contents["users"], sizes, axis=0), of_items]), pairs)
    theta = np.linalg.lstsq(x, np.concatenate(attractions), rcond=None)[0]
    fitted = x @ theta
    least, most = min(float(fitted.min()), 0.0), max(float(fitted.max()), 1.0)
    theta /= most - least
    theta[0] -= least / (most - least) / x[0, 0]  # the first feature is the constant
    return theta, np.split((x @ theta).clip(0.0, 1.0), np.cumsum(sizes)[:-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Make simulated users and films from ratings.")
    parser.add_argument("ratings", type=Path, help="CSV with the columns userId, movieId, rating")
    parser.add_argument("--out", type=Path, required=True, help="the instance file, name.json")
    parser.add_argument("--candidates", type=int, default=10, help="candidates per session, L")
    parser.add_argument("--positions", type=int, default=5, help="positions of the list, K")
    parser.add_argument(
        "--linear", action="store_true", help="make attraction linear in the features"
    )
    parser.add_argument("--interactions", choices=("none", "products", "outer"), default="none")
    given = parser.parse_args()
    ratings = pl.read_csv(given.ratings, columns=["userId", "movieId", "rating"])
    instance = films(ratings, given.candidates, given.positions, given.linear, given.interactions)
    instance.save(given.out)
    print(f"{given.out}: {instance.description}")


if __name__ == "__main__":
    main()
