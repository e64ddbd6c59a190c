"""Networks: NeuralGreedy, NeuralLinearTS, OLRankNet and OLLambdaRank, from section 14 of the specification.

Gradients and Adam are written out. What was drawn is read from the agent's state: the first weights, and the number that seeds
a training. The draws of a training are those of a NumPy generator with this seed: the weights, layer by layer, if they are
drawn afresh, and the order of the samples in each epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import expit

from .rankers import TIE, PairRankReference
from .reference import Reference, examined_positions, is_in_order

TRAINED = 1e-6  # what rounding may make of equal weights in a training
Gradient = list[tuple[np.ndarray, np.ndarray]]


class Network:
    """Layers, each a matrix ``(n, m)`` and a bias ``(m,)``."""

    def __init__(self, sizes: Sequence[int], flat: np.ndarray) -> None:
        self.sizes, self.layers, rest = sizes, [], np.array(flat)
        for n, m in pairwise(sizes):
            self.layers.append((rest[: n * m].reshape(n, m), rest[n * m : (n + 1) * m]))
            rest = rest[(n + 1) * m :]

    @staticmethod
    def drawn(sizes: Sequence[int], rng: np.random.Generator) -> Network:
        bounds = [(1 / math.sqrt(n), (n + 1) * m) for n, m in pairwise(sizes)]
        return Network(sizes, np.concatenate([rng.uniform(-bound, bound, count) for bound, count in bounds]))

    def flat(self) -> np.ndarray:
        return np.concatenate([part.ravel() for layer in self.layers for part in layer])

    def values(self, x: np.ndarray) -> list[np.ndarray]:
        """The inputs, the hidden layers, the scores ``(n, 1)``."""
        values = [np.atleast_2d(x)]
        for number, (matrix, bias) in enumerate(self.layers, 1):
            inner = values[-1] @ matrix + bias
            values.append(np.maximum(inner, 0) if number < len(self.layers) else inner)
        return values

    def scores(self, x: np.ndarray) -> np.ndarray:
        return self.values(x)[-1][:, 0]

    def phi(self, x: np.ndarray) -> np.ndarray:
        hidden = self.values(x)[-2]
        return np.hstack([hidden, np.ones((len(hidden), 1))])

    def gradient(self, x: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """Of the sum of slope times score over the rows of x."""
        values, back, parts = self.values(x), slopes[:, None], []
        for (matrix, _), inputs in zip(self.layers[::-1], values[-2::-1], strict=True):
            parts += [back.sum(axis=0), (inputs.T @ back).ravel()]
            back = (back @ matrix.T) * (inputs > 0)
        return np.concatenate(parts[::-1])


def train(
    network: Network,
    slope: Callable[[Network, np.ndarray], np.ndarray],
    count: int,
    rng: np.random.Generator,
    *,
    rate: float,
    epochs: int,
    size: int,
    ridge: float = 0.0,
    decay: float = 1.0,
    most: int | None = None,
    drop: bool = False,
) -> Network:
    """Adam (Kingma and Ba 2015) with its usual constants; ``ridge`` times the weights is added to the gradient."""
    weights = network.flat()
    first, second, step = np.zeros_like(weights), np.zeros_like(weights), 0
    for _ in range(epochs):
        order = rng.permutation(count)
        batches = [order[at : at + size] for at in range(0, count, size)]
        if drop and len(batches) > 1 and len(batches[-1]) < 0.5 * size:
            batches.pop()
        for batch in batches[:most]:
            step += 1
            gradient = slope(Network(network.sizes, weights), batch) + ridge * weights
            first = 0.9 * first + 0.1 * gradient
            second = 0.999 * second + 0.001 * gradient**2
            root = np.sqrt(second / (1 - 0.999**step)) + 1e-8
            weights = weights - rate * first / (1 - 0.9**step) / root
        rate *= decay
    return Network(network.sizes, weights)


STEP = 0x9E3779B97F4A7C15


def last_seed(stream: int) -> int:
    """SplitMix64's last number, as a uniform one of 53 bits."""
    top = 2**64 - 1
    x = stream & top
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & top
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & top
    return (x ^ (x >> 31)) >> 11


class _Trained(Reference):
    """What the references share: a network that is taken over from the agent if it is the same up to rounding."""

    sizes: list[int]
    network: Network | None = None
    stream: int
    was_trained = False
    fit: Callable[[np.ndarray], Network]
    table: np.ndarray

    def train_with(self, table: np.ndarray, fit: Callable[[np.ndarray], Network]) -> None:
        self.was_trained, self.table, self.fit, self.network = True, table, fit, fit(table)

    def look(self, drawn: Any) -> None:
        self.stream = int(drawn.stream[0])
        if self.network is None:
            self.network = Network(self.sizes, drawn.network)
            for matrix, bias in self.network.layers:
                assert max(np.abs(matrix).max(), np.abs(bias).max()) <= 1 / math.sqrt(len(matrix))

    def network_agrees(self, state: Any) -> bool:
        assert self.network is not None
        want = self.network.flat()
        if not self.was_trained:
            return state.network.tolist() == want.tolist()
        self.was_trained, self.network = False, Network(self.sizes, state.network)
        return self.is_close(state.network, want) or not all(self.is_close(each, want) for each in self.shaken())

    def is_close(self, weights: np.ndarray, want: np.ndarray) -> bool:
        size = max(1.0, float(np.abs(want).max()), float(np.abs(self.table).max()))
        return bool(np.allclose(weights, want, rtol=TRAINED, atol=TRAINED * size))

    def shaken(self) -> Iterator[np.ndarray]:
        """The same training where all that it reads is rounded otherwise: it may be that rounding decides.

        Several times: where scores lie on the edge between two decimals, one such training in two decides as the first.
        """
        rng = np.random.default_rng(0)
        for _ in range(20):
            yield self.fit(self.table * (1 + rng.choice([-1e-15, 0.0, 1e-15], self.table.shape))).flat()


class NeuralBanditReference(_Trained):
    """NeuralGreedy, and with a scale NeuralLinearTS."""

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_features: int,
        *,
        hidden: Sequence[int],
        examination: Any,
        feedback: str,
        learning_rate: float,
        epochs: int,
        batch_size: int,
        growth: float,
        epsilon: float | None = None,
        scale: float | None = None,
    ) -> None:
        super().__init__(n_items, n_positions)
        self.sizes = [n_features, *hidden, 1]
        self.kappa = None if examination is None else np.asarray(examination)
        self.feedback, self.growth, self.epsilon, self.scale = feedback, growth, epsilon, scale
        self.training: dict[str, Any] = {"rate": learning_rate, "epochs": epochs, "size": batch_size}
        self.samples: list[list[float]] = []
        self.n_fitted = 0
        self.gram, self.moment = np.eye(hidden[-1] + 1), np.zeros(hidden[-1] + 1)

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.features = np.array(features, np.float64)
        self.look(drawn)
        assert self.network is not None
        if not super().allows(ranking) or not self.n_fitted or self.epsilon:
            return super().allows(ranking)
        scores = self.network.scores(self.features)
        if self.scale is not None:
            scores = self.network.phi(self.features) @ drawn.draw
            if self.scale == 0:  # then the draw is the mean
                assert np.allclose(self.gram @ drawn.draw, self.moment, rtol=1e-6, atol=1e-6 * np.abs(self.moment).max())
        return is_in_order(ranking, scores, 2 * TIE + 1e-9 * np.abs(scores).max())

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        assert self.network is not None
        positions = range(self.n_positions) if self.kappa is not None else examined_positions(clicks, self.feedback)
        new = [[*self.features[ranking[k]], 1.0 if self.kappa is None else self.kappa[k], clicks[k]] for k in positions]
        self.samples += new
        n = len(self.samples)
        if n >= 100 and n >= (1 + self.growth) * self.n_fitted:
            self.n_fitted, before, (*_, kappas, chosen) = n, self.network, np.array(self.samples).T

            def fit(features: np.ndarray) -> Network:
                def slope(network: Network, batch: np.ndarray) -> np.ndarray:
                    x, kappa, click = features[batch], kappas[batch], chosen[batch]
                    share, rest = expit(network.scores(x)), expit(-network.scores(x))
                    of_loss = -click * rest + (1 - click) * kappa * share * rest / ((1 - kappa) + kappa * rest)
                    return network.gradient(x, of_loss / len(batch))

                return train(before, slope, n, np.random.default_rng(last_seed(self.stream + STEP)), **self.training)

            self.train_with(np.array(self.samples)[:, :-2], fit)
        else:
            self.add(new)
        super().learn(ranking, clicks)

    def add(self, samples: Sequence[Sequence[float]]) -> None:
        assert self.network is not None
        for *x, kappa, click in samples:
            phi = self.network.phi(np.array(x))[0]
            self.gram = self.gram + kappa**2 * np.outer(phi, phi)
            self.moment = self.moment + kappa * click * phi

    def agrees(self, state: Any) -> bool:
        was_trained = self.was_trained
        good = self.network_agrees(state)
        if was_trained:  # all samples, with the new φ
            self.gram, self.moment = np.eye(len(self.gram)), np.zeros(len(self.moment))
            self.add(self.samples)
        counts = int(state.n_samples[0]), int(state.n_fitted[0])
        good &= counts == (len(self.samples), self.n_fitted) and state.samples[: counts[0]].tolist() == self.samples
        if self.scale is not None:
            for have, want in ((state.gram, self.gram), (state.moment, self.moment)):
                good &= bool(np.allclose(have, want, rtol=1e-9, atol=1e-9 * np.abs(want).max()))
        return good


class OLRankNetReference(_Trained, PairRankReference):
    """OLRankNet and OLLambdaRank: Jia and Wang 2022 (WWW)."""

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_features: int,
        *,
        hidden: Sequence[int],
        covariance: str,
        learning_rate: float,
        epochs: int,
        batch_size: int,
        max_batches: int | None,
        is_weighted: bool = False,
        **others: Any,
    ) -> None:
        super().__init__(n_items, n_positions, n_features, **others)
        self.sizes, self.is_full, self.is_weighted = [n_features, *hidden, 1], covariance == "full", is_weighted
        self.training: dict[str, Any] = {"rate": learning_rate, "epochs": epochs, "size": batch_size, "most": max_batches}
        n_weights = sum((n + 1) * m for n, m in pairwise(self.sizes))
        self.a = self.l2 * np.eye(n_weights)
        self.documents: list[list[float]] = []
        self.sessions: list[list[int]] = []  # the documents of each
        self.numbers: list[list[int]] = []  # the documents of each pair
        self.clicked: set[int] = set()  # documents

    def gradients(self, network: Network, x: np.ndarray) -> np.ndarray:
        return np.array([network.gradient(row[None], np.ones(1)) for row in x])

    def bounds(self) -> np.ndarray:
        assert self.network is not None
        scores, g = self.network.scores(self.features), self.gradients(self.network, self.features)
        delta = (g[:, None] - g).reshape(self.n_items**2, -1)
        squared = (delta * np.linalg.solve(self.a, delta.T).T).sum(axis=1).reshape(self.n_items, self.n_items)
        return expit(scores[:, None] - scores) - self.alpha * np.sqrt(np.maximum(squared, 0.0))

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        self.look(drawn)
        return super().allows(ranking, drawn, features)

    def weights_of_pairs(self, scores: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """What the exchange of two documents changes, in the order of the present scores."""
        gains = []
        for number in batch:
            pair = self.numbers[number]
            session = next(session for session in self.sessions if pair[0] in session)
            order = sorted(session, key=lambda document: -scores[document])
            upper, lower = (1 / math.log2(order.index(document) + 2) for document in pair)
            n_clicks = sum(document in self.clicked for document in session)
            gains.append(abs(upper - lower) / sum(1 / math.log2(m + 2) for m in range(n_clicks)))
        return np.array(gains)

    def agrees(self, state: Any) -> bool:
        assert self.network is not None
        clicked, others = self.candidates()
        self.session = ([], [])
        n, before = int(state.n_pairs[0]), len(self.numbers)
        new = state.pairs[before:n].tolist()
        count = min(len(clicked), len(others)) if self.disjoint else len(clicked) * len(others)
        good = len(new) == count
        if new:
            first = len(self.documents)
            rows = state.documents[first : int(state.n_documents[0]), :-2]
            good &= sorted(rows.tolist()) == sorted(x.tolist() for x in [*clicked, *others])
            self.documents += rows.tolist()
            self.sessions.append([*range(first, len(self.documents))])
            self.clicked.update(range(first, first + len(clicked)))
            good &= sorted(rows[: len(clicked)].tolist()) == sorted(x.tolist() for x in clicked)
            good &= len({(c, u) for c, u in new}) == len(new)
            good &= all(first <= c < first + len(clicked) <= u < len(self.documents) for c, u in new)
            good &= not self.disjoint or len({c for c, _ in new}) == len({u for _, u in new}) == len(new)
            g = dict(zip(self.sessions[-1], self.gradients(self.network, rows), strict=True))
            for c, u in new:
                delta = g[c] - g[u]
                self.a = self.a + (np.outer(delta, delta) if self.is_full else np.diag(delta**2))
            self.numbers += new
        have = state.factor.T @ state.factor if self.is_full else np.diag(state.diagonal)
        good &= bool(np.allclose(have, self.a, rtol=1e-9, atol=1e-9 * np.abs(self.a).max()))
        if new and n >= (1 + self.growth) * self.n_fitted:
            self.n_fitted, pairs = n, np.array(self.numbers)
            training = {**self.training, "ridge": self.l2 / n, "decay": 0.99999977, "drop": True}

            def fit(x: np.ndarray) -> Network:
                def slope(network: Network, batch: np.ndarray) -> np.ndarray:
                    c, u = x[pairs[batch, 0]], x[pairs[batch, 1]]
                    wrong = expit(network.scores(u) - network.scores(c)) / len(batch)
                    if self.is_weighted:
                        wrong = wrong * self.weights_of_pairs(network.scores(x).round(10), batch)
                    return network.gradient(np.vstack([c, u]), np.concatenate([-wrong, wrong]))

                rng = np.random.default_rng(last_seed(int(state.stream[0])))  # disjoint pairs drew before
                return train(Network.drawn(self.sizes, rng), slope, n, rng, **training)

            self.train_with(np.array(self.documents), fit)
        return good and self.network_agrees(state) and int(state.n_fitted[0]) == self.n_fitted
