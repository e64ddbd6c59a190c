"""Sums of products that are added in the same order on every processor.

BLAS and LAPACK do not guarantee such an order, but the sums decide lists, clicks and rewards.
Environments and agents therefore use the functions of this module instead of ``@``, ``dot``,
``einsum`` and ``linalg``. Each function adds the terms of a sum from the first to the last.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .kernels import kernel
from .state import Floats


@kernel
def weighted_sum(weights, values):  # type: ignore[no-untyped-def]
    """Return the sum of the values, each multiplied by its weight: ``Σ w_i v_i``."""
    total = 0.0
    for i in range(len(weights)):
        total += weights[i] * values[i]
    return total


def weighted_sums(rows: ArrayLike, weights: ArrayLike) -> Floats:
    """Return the weighted sum ``Σ_j r_j w_j`` of each row, along the last axis.

    Args:
        rows: ``(..., n)`` numbers, with the rows along the last axis.
        weights: ``(n,)`` numbers, or an array of any shape that broadcasts against ``rows``.

    Returns:
        ``(...)`` float64 sums. If n is 0, all sums are 0.

    Example:
        >>> weighted_sums([[1.0, 2.0], [3.0, 4.0]], [0.5, 0.25])
        array([1. , 2.5])
    """
    terms = np.multiply(rows, weights, dtype=np.float64)
    # The order in which `sum` adds depends on the layout in memory; the order of `cumsum` does not.
    return terms.cumsum(axis=-1)[..., -1] if terms.shape[-1] else terms.sum(axis=-1)


def products_of_rows(first: Floats, second: Floats) -> Floats:
    """Multiply each row of an ``(n, k)`` array with each row of an ``(m, k)`` array, and return the
    ``(n, m)`` products ``Σ_j a_j b_j``.

    Example:
        >>> products_of_rows(np.eye(2), np.array([[1.0, 2.0]]))
        array([[1.],
               [2.]])
    """
    total = np.zeros((len(first), len(second)))
    for column in range(first.shape[1]):
        total += first[:, column, None] * second[:, column]
    return total


def solve(matrix: Floats, target: Floats) -> Floats:
    """Solve the linear equations ``matrix x = target`` for x, by Gaussian elimination with partial
    pivoting.

    Args:
        matrix: ``(n, n)`` coefficients, of full rank.
        target: ``(n,)`` right-hand side.

    Example:
        >>> solve(np.array([[0.0, 2.0], [1.0, 1.0]]), np.array([2.0, 3.0]))
        array([2., 1.])
    """
    rows = np.column_stack([matrix, target])
    n = len(rows)
    for i in range(n):
        pivot = i + int(np.abs(rows[i:, i]).argmax())
        rows[[i, pivot]] = rows[[pivot, i]]
        rows[i + 1 :] -= np.multiply.outer(rows[i + 1 :, i] / rows[i, i], rows[i])
    x = rows[:, -1].copy()
    for i in range(n - 1, -1, -1):
        x[i] /= rows[i, i]
        x[:i] -= rows[:i, i] * x[i]
    return x
