"""Features from data by a truncated, randomised singular value decomposition."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from clickgym.core.checks import check_count, check_seed, numbers

Floats: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = ArrayLike | sparse.sparray

OVERSAMPLING = 10  # columns of the random projection beyond those asked for


class TruncatedSVD:
    """The leading singular vectors of a matrix, ``M ≈ U diag(s) Vᵀ``, by a randomised range finder.

    Args:
        n_components: how many.
        n_iterations: of the power iteration, which sharpens the range where singular values decay
            slowly.
        seed: of the random projection.

    Attributes:
        users_: ``(M, n_components)`` U, a row for each row of the matrix (a user).
        singular_values_: ``(n_components,)`` s, decreasing.
        items_: ``(N, n_components)`` V, a row for each column (an item). The entry of largest
            absolute value in each of its columns is positive.

    Raises:
        ValueError: naming what was expected.

    Source: Halko, Martinsson, Tropp, *Finding structure with randomness: probabilistic algorithms
    for constructing approximate matrix decompositions*, SIAM Review 2011, algorithms 4.4 and 5.1;
    for features in He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for
    large-scale online mobile recommendation*, RecSys 2020, section 6.3.

    Example:
        >>> matrix = np.outer([1.0, 2.0], [3.0, 0.0, 4.0])
        >>> svd = TruncatedSVD(1, seed=0).fit(matrix)
        >>> svd.singular_values_.round(6), svd.items_.round(6).ravel()
        (array([11.18034]), array([0.6, 0. , 0.8]))
        >>> bool(np.allclose(svd.transform(matrix), svd.users_))
        True
    """

    def __init__(self, n_components: int = 10, *, n_iterations: int = 7, seed: int = 0) -> None:
        self.n_components = check_count("n_components", n_components)
        self.n_iterations = check_count("n_iterations", n_iterations, 0)
        self.seed = check_seed(seed)

    def fit(self, matrix: Matrix) -> TruncatedSVD:
        """Decompose ``(M, N)`` numbers, sparse or not.

        Raises:
            ValueError: the matrix has fewer rows or columns than components, or its rank is lower.
        """
        cells = _matrix(matrix)
        if self.n_components > min(cells.shape):
            raise ValueError(
                f"n_components is {self.n_components}; expected at most {min(cells.shape)}, for {cells.shape} numbers"
            )
        rng = np.random.default_rng(self.seed)
        width = min(self.n_components + OVERSAMPLING, *cells.shape)
        basis = np.linalg.qr(cells @ rng.standard_normal((cells.shape[1], width)))[0]
        for _ in range(
            self.n_iterations
        ):  # orthonormal in between, lest all columns turn into the first singular vector
            basis = np.linalg.qr(cells @ np.linalg.qr(cells.T @ basis)[0])[0]
        rotation, values, right = np.linalg.svd((cells.T @ basis).T, full_matrices=False)
        values = values[: self.n_components]
        if values[-1] <= values[0] * 1e-10:
            rank = int((values > values[0] * 1e-10).sum())
            raise ValueError(
                f"the matrix has the rank {rank}; expected at least n_components = {self.n_components}"
            )
        items = right[: self.n_components].T
        signs = np.sign(items[np.abs(items).argmax(axis=0), np.arange(self.n_components)])
        self.users_: Floats = (basis @ rotation)[:, : self.n_components] * signs
        self.singular_values_: Floats = values
        self.items_: Floats = items * signs
        return self

    def transform(self, matrix: Matrix) -> Floats:
        """The coordinates ``M V / s`` of rows over the same columns, ``(rows, n_components)``: U
        for the rows of the fit.
        """
        return _matrix(matrix) @ self.items_ / self.singular_values_


def _matrix(values: Matrix) -> Any:
    """A two-dimensional array of finite numbers, sparse if it was."""
    if not sparse.issparse(values):
        return numbers("matrix", values, ("rows", "columns"), copy=False)
    matrix: Any = sparse.csr_array(values, dtype=np.float64)
    if 0 in matrix.shape:
        raise ValueError(
            f"matrix has shape {matrix.shape}; expected two dimensions, none of them empty"
        )
    if not np.isfinite(matrix.data).all():
        raise ValueError("matrix has entries that are not finite numbers")
    return matrix
