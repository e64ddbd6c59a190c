"""Functions for the features of candidates: products of features as additional features, and norms.

The candidate for user u and item v has the features ``[U(u), V(v)]``. With products, the first
feature is a constant c, and each product of two features is divided by c. All features are then c
times ``[1, u, v, u_a v_b, ...]``.

⚠ The same number c scales all candidates. A separate scale for each candidate would give all
candidates the same norm, and would hide the information in the norm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

ROWS_AT_ONCE = 4096
"""The number of rows that are converted to double precision at once, to save memory."""
INTERACTIONS = ("products", "outer")
"""The kinds of interactions: products of features with the same index (u∘v), or products of all
pairs (u ⊗ v).
"""


def interaction_pairs(kind: str, first: ArrayLike, second: ArrayLike) -> NDArray[np.int64]:
    """Return the pairs of features whose products are additional features, ``(P, 2)`` indices.

    Args:
        kind: one of `INTERACTIONS`; any other value gives no pairs.
        first: the indices of the user's features u among all features.
        second: the indices of the item's features v among all features.

    Example:
        >>> interaction_pairs("outer", [1, 2], [3, 4]).tolist()
        [[1, 3], [1, 4], [2, 3], [2, 4]]
    """
    first, second = np.asarray(first, np.int64), np.asarray(second, np.int64)
    if kind == "products":
        if len(first) != len(second):
            sizes = f"{len(first)} and {len(second)}"
            raise ValueError(
                "products require the same number of features for users and items, but the numbers "
                f"are {sizes}"
            )
        return np.column_stack([first, second])
    if kind == "outer":
        return np.column_stack([np.repeat(first, len(second)), np.tile(second, len(first))])
    return np.zeros((0, 2), np.int64)


def with_products(features: NDArray[np.float64], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the features with the products of P pairs appended, ``(n, d + P)``.

    Args:
        features: ``(n, d)`` features, the first of which is the constant c.
        pairs: ``(P, 2)`` the result of `interaction_pairs`.

    Example:
        >>> with_products(np.array([[0.5, 0.2, 0.1]]), np.array([[1, 2]]))
        array([[0.5 , 0.2 , 0.1 , 0.04]])
    """
    if not len(pairs):
        return features
    products = features[:, pairs[:, 0]] * features[:, pairs[:, 1]] / features[:, :1]
    return np.hstack([features, products])


def squared_norms(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the squared norm of each row in double precision, ``(n,)``, without converting a whole
    float32 array at once.
    """
    parts = [rows[first : first + ROWS_AT_ONCE] for first in range(0, len(rows), ROWS_AT_ONCE)]
    return np.concatenate([(part.astype(np.float64) ** 2).sum(axis=1) for part in parts])


def largest_norm(
    users: NDArray[np.float64],
    items: NDArray[np.float64],
    pairs: NDArray[np.int64],
    candidates: Sequence[NDArray[np.int64]] | None = None,
) -> float:
    """Return the largest norm of a candidate's features, including products, over all users and
    their candidates.

    Args:
        users, items: ``(M, d_u)`` features of the users and ``(N, d_v)`` features of the items.
        pairs: ``(P, 2)`` the result of `interaction_pairs`.
        candidates: for each user, the numbers of the possible candidates; by default, all items.

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
