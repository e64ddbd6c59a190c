"""Networks that score candidates by their features.

A network is one array of weights: of each layer a matrix ``(n_in, n_out)``, row by row, and a bias ``(n_out,)``. Hidden units
are rectified.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray


def first_network(sizes: Sequence[int], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return random weights, uniform on ±1/√n for each layer with n inputs."""
    return np.concatenate([rng.uniform(-(n**-0.5), n**-0.5, (n + 1) * m) for n, m in pairwise(sizes)])


def layers(network: Any, sizes: Sequence[int]) -> list[tuple[Any, Any]]:
    """Return the weights ``(n, m)`` and biases ``(m,)`` of each layer, where the network has them; of NumPy or PyTorch."""
    ends = np.cumsum([0, *((n + 1) * m for n, m in pairwise(sizes))]).tolist()
    rows = [network[start:end].reshape(-1, m) for (start, end), m in zip(pairwise(ends), sizes[1:], strict=True)]
    return [(each[:-1], each[-1]) for each in rows]


def outputs(layers: Sequence[tuple[Any, Any]], x: Any) -> list[Any]:
    """Return what each layer makes of inputs ``(..., d)``; arrays of NumPy or tensors of PyTorch."""
    values = [x]
    for weights, biases in layers[:-1]:
        sums = values[-1] @ weights + biases
        values.append(sums * (sums > 0))
    return [*values[1:], values[-1] @ layers[-1][0] + layers[-1][1]]
