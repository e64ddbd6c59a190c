"""Networks that score candidates by their features: evaluated in kernels, trained by PyTorch.

A network is one array of P weights: of each layer a matrix ``(n_in, n_out)``, row by row, and a bias ``(n_out,)``. Hidden
units are rectified, the last layer has one output. All random numbers are NumPy's, so a seed reproduces a training.

Letters: L candidates in a session, K positions, d features, P weights of the network.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import integers
from ..core.kernels import inner
from ..core.state import Floats, Ints
from .agent import ANY_LIST, checked_features
from .generic_rl import one_thread
from .growing import GrowingAgent
from .hyperparameters import above, at_least, count, hyperparameter
from .search_space import Range
from .streams import new_stream


class NetworkState(NamedTuple):
    network: Floats  # (P,) the weights
    sizes: Ints  # of the layers: d, the hidden ones, 1
    units: Floats  # working memory: the values of all layers for one candidate
    stream: NDArray[np.uint64]  # (1,) seeds the trainings
    training: Floats  # learning rate, epochs and batch size
    n_fitted: Annotated[Ints, "1"]  # samples or pairs at the last training
    n_learned: Annotated[Ints, "1"]  # sessions
    growth: float
    scores: Annotated[Floats, "L"]  # of the last display's candidates
    order: Annotated[Ints, "L", range]  # working memory


@inner
def evaluate(network, sizes, x, units):  # type: ignore[no-untyped-def]
    """Return the score of a candidate with features x; the values of all layers are written into ``units``."""
    for j in range(len(x)):
        units[j] = x[j]
    begin, place = 0, 0  # of the layer's inputs and weights
    for layer in range(1, len(sizes)):
        n, m = sizes[layer - 1], sizes[layer]
        inputs, outputs = units[begin : begin + n], units[begin + n : begin + n + m]
        bias = network[place + n * m : place + (n + 1) * m]
        for j in range(m):
            outputs[j] = bias[j]
        for i in range(n):
            row, value = network[place + i * m : place + (i + 1) * m], inputs[i]
            if value != 0.0:
                for j in range(m):
                    outputs[j] += value * row[j]
        if layer < len(sizes) - 1:
            for j in range(m):
                outputs[j] = max(outputs[j], 0.0)
        begin, place = begin + n, place + (n + 1) * m
    return units[begin]


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


def train(
    network: NDArray[np.float64], loss: Callable[[Any, NDArray[np.int64]], Any], count: int, rng: np.random.Generator,
    training: NDArray[np.float64], weight_decay: float = 0.0, decay: float = 1.0, most: int | None = None, drop: bool = False,
) -> None:  # fmt: skip
    """Train a network in place by Adam.

    Args:
        network: ``(P,)`` the weights.
        loss: of the weights, a tensor, and the numbers of a batch.
        count: how many samples there are; each epoch puts them into batches at random.
        rng: for these batches.
        training: learning rate, epochs and batch size.
        weight_decay: times the weights, is added to the gradient.
        decay: multiplies the learning rate after each epoch.
        most: batches of an epoch at most; None: all.
        drop: whether a last batch of less than half the size is left out if there are others.
    """
    import torch

    learning_rate, epochs, batch_size = float(training[0]), int(training[1]), int(training[2])
    with one_thread(), torch.enable_grad():
        weights = torch.from_numpy(network).requires_grad_()
        optimizer = torch.optim.Adam([weights], learning_rate, weight_decay=weight_decay)
        for _ in range(epochs):
            order = rng.permutation(count)
            batches = [order[start : start + batch_size] for start in range(0, count, batch_size)]
            if drop and len(batches) > 1 and 2 * len(batches[-1]) < batch_size:
                del batches[-1]
            for batch in batches[:most]:
                optimizer.zero_grad()
                loss(weights, batch).backward()
                optimizer.step()
            optimizer.param_groups[0]["lr"] *= decay


def check_widths(name: str, widths: Any) -> tuple[int, ...]:
    """Return the checked widths of the hidden layers."""
    return tuple(integers(name, widths, (None,), 1, 10_001).tolist())


class NetworkAgent(GrowingAgent):
    """Base class of the agents that score candidates by a network. Their state is that of `NetworkState` and more."""

    learns_from = ANY_LIST

    hidden: ArrayLike = hyperparameter(default=(64, 64), check=check_widths)
    learning_rate: float = hyperparameter(default=0.003, check=above(0), search=Range(1e-4, 0.03, log=True))
    epochs: int = hyperparameter(default=10, check=count())
    batch_size: int = hyperparameter(default=512, check=count())
    growth: float = hyperparameter(default=0.2, check=at_least(0), search=Range(0.05, 1.0, log=True))

    def _initial_state(self) -> Any:
        try:
            importlib.import_module("torch")
        except ImportError as error:
            what = f'{type(self).__name__} trains a network by PyTorch; install it: pip install "clickgym[rl]"'
            raise ImportError(what, name=error.name) from None
        return super()._initial_state()

    @property
    def sizes(self) -> list[int]:
        """Of the layers: d, the hidden ones, 1."""
        return [self.n_features, *self.hyperparameters["hidden"], 1]

    def best(self, features: ArrayLike) -> NDArray[np.int64]:  # type: ignore[override]  # as ContextualAgent has it
        rows = checked_features(features, (None, self.n_features))
        return np.argsort(-self._scores(rows), kind="stable")

    def _scores(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """The estimates by which `best` orders candidates."""
        return outputs(layers(self.state.network, self.sizes), features)[-1][:, 0]

    def _state_sizes(self) -> dict[str, int]:
        sizes = self.sizes
        n_weights = sum((n + 1) * m for n, m in pairwise(sizes))
        return super()._state_sizes() | {"U": sum(sizes), "P": n_weights, "H": sizes[-2] + 1}

    def _first_values(self) -> dict[str, Any]:
        sizes = self.sizes
        return {
            "network": first_network(sizes, self.rng),
            "sizes": np.array(sizes),
            "units": np.zeros(sum(sizes)),
            "stream": new_stream(self.rng),
            "training": np.array([self.hyperparameters[name] for name in ("learning_rate", "epochs", "batch_size")]),
        }
