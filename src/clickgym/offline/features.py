"""Features from data: truncated randomised singular value decomposition, and a denoising autoencoder.

Both are estimators in the style of scikit-learn: the constructor keeps its arguments, `fit` estimates, and what is estimated
ends with an underscore.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..agents.generic_rl import one_thread
from ..agents.networks import outputs
from ..core.checks import check_at_least, check_count, check_seed, check_share, is_sequence, numbers, short

Floats: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = ArrayLike | sparse.sparray

OVERSAMPLING = 10  # columns of the random projection beyond those asked for


class TruncatedSVD:
    """The leading singular vectors of a matrix, ``M ≈ U diag(s) Vᵀ``, by a randomised range finder.

    Args:
        n_components: how many.
        n_iterations: of the power iteration, which sharpens the range where singular values decay slowly.
        seed: of the random projection.

    Attributes:
        users_: ``(M, n_components)`` U, a row for each row of the matrix (a user).
        singular_values_: ``(n_components,)`` s, decreasing.
        items_: ``(N, n_components)`` V, a row for each column (an item). The entry of largest absolute value in each of its
            columns is positive.

    Raises:
        ValueError: naming what was expected.

    Source: Halko, Martinsson, Tropp, *Finding structure with randomness: probabilistic algorithms for constructing approximate
    matrix decompositions*, SIAM Review 2011, algorithms 4.4 and 5.1; for features in He, An, Li, Chen, Guo, Li, Wang,
    *Contextual user browsing bandits for large-scale online mobile recommendation*, RecSys 2020, section 6.3.

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
        for _ in range(self.n_iterations):  # orthonormal in between, lest all columns turn into the first singular vector
            basis = np.linalg.qr(cells @ np.linalg.qr(cells.T @ basis)[0])[0]
        rotation, values, right = np.linalg.svd((cells.T @ basis).T, full_matrices=False)
        values = values[: self.n_components]
        if values[-1] <= values[0] * 1e-10:
            rank = int((values > values[0] * 1e-10).sum())
            raise ValueError(f"the matrix has the rank {rank}; expected at least n_components = {self.n_components}")
        items = right[: self.n_components].T
        signs = np.sign(items[np.abs(items).argmax(axis=0), np.arange(self.n_components)])
        self.users_: Floats = (basis @ rotation)[:, : self.n_components] * signs
        self.singular_values_: Floats = values
        self.items_: Floats = items * signs
        return self

    def transform(self, matrix: Matrix) -> Floats:
        """The coordinates ``M V / s`` of rows over the same columns, ``(rows, n_components)``: U for the rows of the fit."""
        return _matrix(matrix) @ self.items_ / self.singular_values_


class DenoisingAutoencoder:
    """A neural network that restores features from noisy ones through a narrow layer; the output of this layer is the code.

    The input is ``(1 - noise) x + noise · u``, u uniform on [0, 1] and drawn anew in each epoch; hidden layers are ReLU, the
    output is linear, and the loss is the mean squared error between x and the output. The optimiser is Adam.

    Args:
        hidden: units of the hidden layers; the output of the second is the code.
        noise: in [0, 1).
        epochs: passes over the data.
        batch_size: rows of one step.
        learning_rate: of Adam.
        seed: of weights, noise and the order of rows: the same seed gives the same codes.

    Attributes:
        weights_, biases_: of the layers, ``(inputs, outputs)`` and ``(outputs,)``.
        losses_: ``(epochs,)`` the mean squared error over each epoch.

    Raises:
        ValueError: naming what was expected.
        ImportError: `fit` needs torch, which the extra ``rl`` brings; `transform` does not.

    Source: He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for large-scale online mobile recommendation*,
    RecSys 2020, section 6.4.1, with 56 features and the hidden layers 25, 10, 10, 25. The paper does not tell optimiser, epochs
    or batch size.

    Example:
        >>> coder = DenoisingAutoencoder(epochs=50, seed=1)
        >>> coder.fit(features).transform(features)  # doctest: +SKIP
        >>> coder.hidden[1]
        10
    """

    def __init__(
        self,
        hidden: Sequence[int] = (25, 10, 10, 25),
        *,
        noise: float = 0.05,
        epochs: int = 100,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        seed: int = 0,
    ) -> None:
        if not is_sequence(hidden) or len(hidden) < 2:
            raise ValueError(
                f"hidden is {short(hidden)}; expected the units of two layers or more, the second of which is the code"
            )
        self.hidden = tuple(check_count("hidden", units) for units in hidden)
        self.noise = check_share("noise", noise)
        self.epochs = check_count("epochs", epochs)
        self.batch_size = check_count("batch_size", batch_size)
        self.learning_rate = check_at_least("learning_rate", learning_rate, 0.0, strictly=True)
        self.seed = check_seed(seed)

    def fit(self, features: Matrix) -> DenoisingAutoencoder:
        """Train on ``(N, d)`` features, best between 0 and 1 as the noise is."""
        try:
            import torch
        except ImportError as error:
            raise ImportError(f"the autoencoder needs torch: pip install 'clickgym[rl]' ({error})") from None
        x = _matrix(features)
        with one_thread():  # and sums do not depend on the number of threads
            return self._fit(torch, x.toarray() if sparse.issparse(x) else x)

    def _fit(self, torch: Any, x: Floats) -> DenoisingAutoencoder:
        # Every random number is NumPy's, so that the global generator of torch is neither used nor moved.
        rng = np.random.default_rng(self.seed)
        layers: list[tuple[Any, Any]] = []
        for n, m in itertools.pairwise((x.shape[1], *self.hidden, x.shape[1])):
            drawn = (rng.uniform(-1, 1, shape) / np.sqrt(n) for shape in ((n, m), (m,)))
            layers.append(tuple(torch.tensor(values, requires_grad=True) for values in drawn))
        optimiser = torch.optim.Adam(itertools.chain(*layers), lr=self.learning_rate)
        losses = np.zeros(self.epochs)
        for epoch in range(self.epochs):
            order = rng.permutation(len(x))
            for start in range(0, len(x), self.batch_size):
                clean = x[order[start : start + self.batch_size]]
                noisy = torch.from_numpy((1 - self.noise) * clean + self.noise * rng.random(clean.shape))
                loss = torch.mean((outputs(layers, noisy)[-1] - torch.from_numpy(clean)) ** 2)
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                losses[epoch] += loss.item() * len(clean) / len(x)
        self.weights_: list[Floats] = [weights.detach().numpy() for weights, _ in layers]
        self.biases_: list[Floats] = [biases.detach().numpy() for _, biases in layers]
        self.losses_: Floats = losses
        return self

    def transform(self, features: Matrix) -> Floats:
        """The codes of ``(rows, d)`` features, undisturbed: ``(rows, hidden[1])`` numbers from 0."""
        code: Any = _matrix(features)
        for weights, biases in zip(self.weights_[:2], self.biases_[:2], strict=True):
            code = np.maximum(code @ weights + biases, 0.0)
        return code


def _matrix(values: Matrix) -> Any:
    """A two-dimensional array of finite numbers, sparse if it was."""
    if not sparse.issparse(values):
        return numbers("matrix", values, ("rows", "columns"), copy=False)
    matrix: Any = sparse.csr_array(values, dtype=np.float64)
    if 0 in matrix.shape:
        raise ValueError(f"matrix has shape {matrix.shape}; expected two dimensions, none of them empty")
    if not np.isfinite(matrix.data).all():
        raise ValueError("matrix has entries that are not finite numbers")
    return matrix
