"""Products of features as further features of a candidate: which pairs, their scale, and the
features themselves.

A candidate of user u and item v has the features ``c [1, u, v]``, whose first is the constant c.
The product of two of them is divided by it, so the further features are c times products of the
entries of u and v.

⚠ One number c scales all candidates. A scale for each would make all features equally long, and
hide what their lengths tell.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

INTERACTIONS = ("products", "outer")
"""Which products: those of the features at the same place (u∘v), or all (u ⊗ v)."""


def interaction_pairs(kind: str, first: Sequence[int], second: Sequence[int]) -> NDArray[np.int64]:
    """The pairs of features whose products are further features.

    Args:
        kind: one of `INTERACTIONS`; anything else has none.
        first, second: the places of the features u and v among all. Where they are the same (a
            document's features and themselves), ``"outer"`` has each unordered pair once.

    Returns:
        ``(P, 2)``; in ``"outer"`` the pair (u_a, v_b) has the place ``a len(v) + b``.

    Raises:
        ValueError: ``"products"`` of different numbers of features.

    Example:
        >>> interaction_pairs("outer", [1, 2], [3, 4]).tolist()
        [[1, 3], [1, 4], [2, 3], [2, 4]]
        >>> interaction_pairs("outer", [1, 2], [1, 2]).tolist()
        [[1, 1], [1, 2], [2, 2]]
    """
    if kind == "products" and len(first) != len(second):
        sizes = f"{len(first)} and {len(second)}"
        raise ValueError(f"products need as many features of users as of items, not {sizes}")
    if kind != "outer":
        return np.column_stack([first, second] if kind == "products" else [[], []]).astype(np.int64)
    pairs = np.column_stack([np.repeat(first, len(second)), np.tile(second, len(first))])
    return pairs[pairs[:, 0] <= pairs[:, 1]] if list(first) == list(second) else pairs


def with_products(features: NDArray[np.float64], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """``(n, d)`` features of candidates, followed by the products of the pairs.

    Example:
        >>> with_products(np.array([[0.5, 0.2, 0.1]]), np.array([[1, 2]]))
        array([[0.5 , 0.2 , 0.1 , 0.04]])
    """
    if not len(pairs):
        return features
    return np.hstack(
        [features, features[:, pairs[:, 0]] * features[:, pairs[:, 1]] / features[:, :1]]
    )


def largest_norm(
    users: NDArray[np.float64],
    items: NDArray[np.float64],
    pairs: NDArray[np.int64],
    candidates: Sequence[NDArray[np.int64]] | None = None,
) -> float:
    """The largest norm of the features, products included, over the candidates of all users; the
    products are not kept.

    Args:
        users, items: ``(M, d_u)`` and ``(N, d_v)`` features.
        pairs: as `interaction_pairs` returns them.
        candidates: for each user the numbers of its items; None: all.

    Example:
        >>> largest_norm(np.ones((1, 2)), np.array([[0.0], [1.0]]), np.array([[1, 2]]))
        2.0
    """
    n_features = users.shape[1] + items.shape[1]
    weights, largest = np.zeros((n_features, n_features)), 0.0
    np.add.at(weights, tuple(pairs.T), 1.0)
    for user, of_user in enumerate(users):
        own = items if candidates is None else items[candidates[user]]
        squares = np.hstack([np.tile(of_user, (len(own), 1)), own]) ** 2
        totals = squares.sum(axis=1)
        if len(pairs):
            totals += ((squares @ weights) * squares).sum(axis=1) / squares[:, 0]
        largest = max(largest, float(totals.max()))
    return largest**0.5
