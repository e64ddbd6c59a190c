"""Products of features as additional features of a candidate: the pairs, the scale, the features.

A candidate of user u and item v has the features ``c [1, u, v]``, whose first is the constant c.
The product of two features is divided by c, so the additional features are c times products of
entries of u and v.

⚠ One number c scales all candidates. A separate scale for each candidate would give all features
the same norm, and hide the information in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import integers, numbers

ROWS = 4096
"""Rows that are worked on at once."""
INTERACTIONS = ("products", "outer")
"""The kinds of products: of features at the same place (u∘v), or of all pairs (u ⊗ v)."""


def interaction_pairs(kind: str, first: ArrayLike, second: ArrayLike) -> NDArray[np.int64]:
    """Return the pairs of features whose products are additional features.

    Args:
        kind: one of `INTERACTIONS`; any other value gives no pairs.
        first, second: the indices of the features u and v among all features. If both are the same,
            ``"outer"`` has each unordered pair once.

    Returns:
        ``(P, 2)`` int64; in ``"outer"`` the pair (u_a, v_b) is row ``a len(v) + b``.

    Raises:
        ValueError: ``"products"`` with different numbers of features, or an index that is none.

    Example:
        >>> interaction_pairs("outer", [1, 2], [3, 4]).tolist()
        [[1, 3], [1, 4], [2, 3], [2, 4]]
        >>> interaction_pairs("outer", [1, 2], [1, 2]).tolist()
        [[1, 1], [1, 2], [2, 2]]
    """
    first = integers("first", first, (None,), empty=True)
    second = integers("second", second, (None,), empty=True)
    if kind == "products" and len(first) != len(second):
        sizes = f"{len(first)} and {len(second)}"
        raise ValueError(f"products require as many features of users as of items, not {sizes}")
    if kind == "products":
        return np.column_stack([first, second])
    if kind != "outer":
        return np.zeros((0, 2), np.int64)
    pairs = np.column_stack([np.repeat(first, len(second)), np.tile(second, len(first))])
    return pairs[pairs[:, 0] <= pairs[:, 1]] if np.array_equal(first, second) else pairs


def with_products(features: ArrayLike, pairs: ArrayLike) -> NDArray[np.float64]:
    """Return ``(n, d)`` features, followed by the products of P pairs: ``(n, d + P)``.

    Raises:
        ValueError: the features are not finite numbers, or a pair names a feature that does not
            exist.

    Example:
        >>> with_products(np.array([[0.5, 0.2, 0.1]]), np.array([[1, 2]]))
        array([[0.5 , 0.2 , 0.1 , 0.04]])
    """
    features = numbers("features", features, (None, None), empty=True, copy=False)
    pairs = integers("pairs", pairs, (None, 2), 0, features.shape[1], empty=True)
    if not len(pairs):
        return features
    return np.hstack(
        [features, features[:, pairs[:, 0]] * features[:, pairs[:, 1]] / features[:, :1]]
    )


def squared_norms(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return ``(n,)`` the squared norms of rows, in doubles; of float32 no whole copy is made."""
    totals = np.empty(len(rows))
    for first in range(0, len(rows), ROWS):
        part = rows[first : first + ROWS].astype(np.float64, copy=False)
        totals[first : first + ROWS] = (part**2).sum(axis=1)
    return totals


def largest_norm(
    users: NDArray[np.float64],
    items: NDArray[np.float64],
    pairs: NDArray[np.int64],
    candidates: Sequence[NDArray[np.int64]] | None = None,
) -> float:
    """Return the largest norm of the features, products included, over the candidates of
    all users; the products are not stored.

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
