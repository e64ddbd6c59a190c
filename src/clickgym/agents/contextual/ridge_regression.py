"""Linear algebra for ridge regression: kernels that work on the arrays of `LinearState`.

The inner loops run along rows and add to separate entries, so the compiler can use vector
instructions without changing the order of any sum.
"""

from __future__ import annotations

import math

from ...core.kernels import kernel
from ...core.sums import weighted_sum

MAX_GROWTH = 100.0  # the rank-one update of A⁻¹ loses digits if w² xᵀA⁻¹x is larger


@kernel
def multiply(matrix, x, product):
    """Write ``matrix @ x`` into ``product``, for a symmetric matrix."""
    d = len(x)
    for j in range(d):
        product[j] = x[0] * matrix[0, j]
    for i in range(1, d):
        for j in range(d):
            product[j] += x[i] * matrix[i, j]


@kernel
def solve_lower(factor, x):
    """Replace x by the solution z of ``F z = x``, where ``factor`` is the lower triangular matrix
    F.
    """
    for i in range(len(x)):
        for k in range(i):
            x[i] -= factor[i, k] * x[k]
        x[i] /= factor[i, i]


@kernel
def solve_upper(factor, x):
    """Replace x by the solution z of ``Fᵀ z = x``, where ``factor`` is the lower triangular matrix
    F.
    """
    for i in range(len(x) - 1, -1, -1):
        x[i] /= factor[i, i]
        for k in range(i):
            x[k] -= factor[i, k] * x[i]


@kernel
def add_sample(state, x, weight, click):
    """Add a sample to the regression: ``A += w² x xᵀ`` and ``b += w c x``. Update ``A⁻¹`` by the
    Sherman-Morrison formula.

    Return whether the formula is accurate enough; if it is not, ``A⁻¹`` stays unchanged.
    """
    d, gain = len(x), state.vector
    multiply(state.inverse, x, gain)
    growth = weight * weight * weighted_sum(x, gain)
    safe = -0.5 < growth < MAX_GROWTH  # rounding may make `growth` negative
    scale = weight / math.sqrt(1.0 + growth) if safe else 0.0
    for i in range(d):
        gain[i] *= scale
    for i in range(d):
        for j in range(d):
            state.inverse[i, j] -= gain[i] * gain[j]
        weighted = weight * weight * x[i]
        for j in range(d):
            state.gram[i, j] += weighted * x[j]
        state.moment[i] += weight * click * x[i]
    return safe


@kernel
def refresh(state):
    """Compute ``A⁻¹`` and θ again, from the `cholesky` factor of A."""
    cholesky(state.gram, state.ridge, state.factor)
    for i in range(len(state.gram)):
        row = state.inverse[i]
        row[:] = 0.0
        row[i] = 1.0
        solve_lower(state.factor, row)
        solve_upper(state.factor, row)


@kernel
def cholesky(matrix, ridge, factor):
    """Write the Cholesky factor F of ``matrix``, with ``F Fᵀ = matrix``, into the lower triangle of
    ``factor``, and Fᵀ into the upper triangle. The eigenvalues of ``matrix`` must be at least
    ``ridge``.

    The square of each diagonal entry of F is then also at least ``ridge``; the kernel replaces it
    by ``ridge / 2`` if rounding errors make it smaller. The loops process whole rows, which the
    compiler turns into vector instructions; each entry subtracts its products in the order of the
    columns.
    """
    for i in range(len(matrix)):
        for j in range(i + 1):
            factor[i, j] = matrix[i, j]
    for k in range(len(matrix)):
        factor[k, k] = math.sqrt(max(factor[k, k], 0.5 * ridge))
        for i in range(k + 1, len(matrix)):
            factor[i, k] /= factor[k, k]
            factor[k, i] = factor[i, k]
        for i in range(k + 1, len(matrix)):
            row, above, scale = factor[i, k + 1 : i + 1], factor[k, k + 1 : i + 1], factor[i, k]
            for j in range(i - k):
                row[j] -= scale * above[j]
