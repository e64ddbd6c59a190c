"""Features of a candidate, and products of them as further features.

A candidate of user u and item v has the features ``[U(u), V(v)]``. With products, its first feature
is a constant c, and each product of two features is divided by c, so that all features are c times
``[1, u, v, u_a v_b, ...]``.

⚠ One number c scales all candidates. A separate scale for each candidate would give all candidates
the same norm, and hide the information in the norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROWS = 4096
"""The number of rows that are processed at once."""
INTERACTIONS = ("products", "outer")
"""The kinds of products: of features at the same place (u∘v), or of all pairs (u ⊗ v)."""


def interaction_pairs(kind: str, first: ArrayLike, second: ArrayLike) -> NDArray[np.int64]:
    """Return the ``(P, 2)`` pairs of features whose products are further features.

    Args:
        kind: one of `INTERACTIONS`; any other value gives no pairs.
        first, second: the indices of the features u and v among all features.

    Example:
        >>> interaction_pairs("outer", [1, 2], [3, 4]).tolist()
        [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    first, second = np.asarray(first, np.int64), np.asarray(second, np.int64)
    if kind == "products":
        if len(first) != len(second):
            sizes = f"{len(first)} and {len(second)}"
            raise ValueError(
                "products require equally many features of users and of items, but the numbers "
                f"are {sizes}"
            )
        return np.column_stack([first, second])
    if kind == "outer":
        return np.column_stack([np.repeat(first, len(second)), np.tile(second, len(first))])
    return np.zeros((0, 2), np.int64)


def with_products(features: NDArray[np.float64], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return ``(n, d)`` features, followed by the products of P pairs: ``(n, d + P)``.

    Example:
        >>> with_products(np.array([[0.5, 0.2, 0.1]]), np.array([[1, 2]]))
        array([[0.5 , 0.2 , 0.1 , 0.04]])
    """
    if not len(pairs):
        return features
    products = features[:, pairs[:, 0]] * features[:, pairs[:, 1]] / features[:, :1]
    return np.hstack([features, products])


def squared_norms(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the squared norms ``(n,)`` of rows, in double precision, without a full copy of a
    float32 array.
    """
    parts = [rows[first : first + ROWS] for first in range(0, len(rows), ROWS)]
    return np.concatenate([(part.astype(np.float64) ** 2).sum(axis=1) for part in parts])


def largest_norm(
    users: NDArray[np.float64],
    items: NDArray[np.float64],
    pairs: NDArray[np.int64],
    candidates: Sequence[NDArray[np.int64]] | None = None,
) -> float:
    """Return the largest norm of the features, products included, of all users and candidates.

    Args:
        users, items: ``(M, d_u)`` and ``(N, d_v)`` features.
        pairs: as returned by `interaction_pairs`.
        candidates: for each user the numbers of its items; None: all items.

    Example:
        >>> largest_norm(np.ones((1, 2)), np.array([[0.0], [1.0]]), np.array([[1, 2]]))
        2.0
    """
    largest = 0.0
    for user, user_features in enumerate(users):
        item_features = items if candidates is None else items[candidates[user]]
        squares = np.hstack([np.tile(user_features, (len(item_features), 1)), item_features]) ** 2
        totals = squares.sum(axis=1)
        if len(pairs):
            columns = squares.T.copy()
            totals += sum(columns[a] * columns[b] for a, b in pairs.tolist()) / columns[0]
        largest = max(largest, float(totals.max()))
    return largest**0.5
