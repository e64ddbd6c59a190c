"""The policy that earns most: scorers of candidates, and the gradients that train them.

A policy draws lists by the Plackett-Luce law of the scores f(x) of the candidates. Its gradient is by draws (REINFORCE), with
credit to go:

    ∇U = E Σ_k (G_k - b_k) ∇ log π(d_k | d_1 ... d_{k-1}),  G_k = Σ_{j >= k} χ_j R(d_j).

1. ⚠ The choice at position k has the credit of k and of all positions below. Its own reward alone is biased also in a
   position-based model: an item that is taken now is gone below.
2. The baseline b_k is the mean of G_k over the other lists that were drawn for the same candidates. It depends on no choice of
   this list, so the gradient is unbiased.
3. `PlackettLuceDistribution` has the same law for torch. Here it is written for NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...agents.networks import first_network, layers, outputs

Floats = NDArray[np.float64]
Layers = list[tuple[Floats, Floats]]
"""Weights ``(inputs, outputs)`` and biases ``(outputs,)`` of each layer; ReLU between them."""

BLOCK = 64
EVERY = 100
"""Steps between two looks at the held-out part."""
PATIENCE = 8
"""Looks without progress, after which it ends."""
RATES = {"linear": 0.02, "network": 3e-3}
"""Learning rates of Adam."""


def blocks(rows: Floats) -> Floats:
    """Rows ``(n, d)`` as ``(N, 64, d)``, zeros behind the last: products of so small blocks are computed in one thread by BLAS,
    which is faster here, and gives the same sums in any number of threads."""
    padded = np.zeros((-(-len(rows) // BLOCK) * BLOCK, rows.shape[1]))
    padded[: len(rows)] = rows
    return padded.reshape(-1, BLOCK, rows.shape[1])


def scores_of(layers: Layers, x: Floats) -> Floats:
    """``(n,)`` the scores of scaled features ``(n, d)``."""
    return outputs(layers, blocks(x))[-1].ravel()[: len(x)]


class Scorer:
    """What gives scores to candidates, a network with ReLU or without hidden layers linear, and Adam that trains it.

    ⚠ It is written for NumPy: so small a network needs no torch, neither to be trained nor to be used.

    Args:
        sizes: of the layers, the number of features first, 1 last.
        rng: for the first weights; those of a linear scorer are 0.
    """

    def __init__(self, sizes: Sequence[int], rng: np.random.Generator) -> None:
        self.rate = RATES["linear" if len(sizes) == 2 else "network"]
        self.network = first_network(sizes, rng) * (len(sizes) > 2)
        self.layers: Layers = layers(self.network, sizes)
        self._first, self._second = np.zeros((2, len(self.network)))
        self._steps, self._values = 0, list[Floats]()

    def forward(self, x: Floats) -> Floats:
        """``(n,)`` the scores of scaled features ``(n, d)``, which `ascend` then remembers."""
        rows = blocks(x)
        self._values = [rows, *outputs(self.layers, rows)]
        return self._values[-1].ravel()[: len(x)]

    def ascend(self, gradient: Floats) -> None:
        """Take a step up a gradient in the scores of the last `forward`."""
        slope, changes = blocks(gradient[:, None]), list[Floats]()
        for (weights, _), x in zip(self.layers[::-1], self._values[-2::-1], strict=True):
            changes += slope.sum(axis=(0, 1)), (x.swapaxes(1, 2) @ slope).sum(axis=0).ravel()
            slope = (slope @ weights.T) * (x > 0)
        change, self._steps = np.concatenate(changes[::-1]), self._steps + 1
        self._first += 0.1 * (change - self._first)
        self._second += 0.001 * (change**2 - self._second)
        deviation = np.sqrt(self._second / (1 - 0.999**self._steps)) + 1e-8
        self.network += self.rate * self._first / (1 - 0.9**self._steps) / deviation


def to_go_gradient(scores: Floats, gains: Floats, examination: Floats, rng: np.random.Generator, draws: int = 4) -> Floats:
    """The gradient in the scores of the expected sum of ``χ_k R(d_k)``, from drawn lists.

    Args:
        scores: ``(B, L)``; minus infinity for what is no candidate.
        gains: ``(B, L)`` R of the candidates.
        examination: ``(K,)`` χ.
        rng: for the lists.
        draws: how many lists for each row, two or more.

    Returns:
        ``(B, L)``.
    """
    n_positions, there = min(len(examination), scores.shape[1]), np.isfinite(scores)
    left = np.repeat(scores[:, None], draws, axis=1)
    noisy = left - np.log(rng.standard_exponential(left.shape))
    lists = np.argsort(-noisy, axis=2)[:, :, :n_positions]
    filled = np.arange(n_positions) < there.sum(axis=1)[:, None, None]
    earned = np.where(filled, np.take_along_axis(gains[:, None], lists, axis=2) * examination[:n_positions], 0.0)
    to_go = earned[:, :, ::-1].cumsum(axis=2)[:, :, ::-1]
    advantage = np.where(filled, (to_go - to_go.mean(axis=1, keepdims=True)) * (draws / (draws - 1)), 0.0)
    gradient = np.zeros(left.shape)
    weights = np.exp(left - left.max(axis=2, keepdims=True))
    for k in range(n_positions):
        place, credit = lists[:, :, k, None], advantage[:, :, k, None]
        gradient -= credit * weights / np.maximum(weights.sum(axis=2, keepdims=True), 1e-300)
        np.put_along_axis(gradient, place, np.take_along_axis(gradient, place, 2) + credit, 2)
        np.put_along_axis(weights, place, 0.0, 2)  # the sum is taken anew: a running difference would cancel
    return gradient.mean(axis=1)


def softmax_gradient(scores: Floats, gains: Floats) -> Floats:
    """The gradient in the scores of ``Σ_d max(R(d), 0) log softmax(f)_d``; arguments as above."""
    wanted = np.maximum(gains, 0.0)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return wanted - wanted.sum(axis=1, keepdims=True) * weights / weights.sum(axis=1, keepdims=True)


def click_gradient(scores: Floats, examination: Floats, clicks: Floats) -> tuple[Floats, Floats]:
    """The log-likelihood of clicks with the probability χ σ(f), and its gradient in the scores; ``(n,)`` each."""
    attraction = 1.0 / (1.0 + np.exp(-scores.clip(-30, 30)))
    skipped = np.maximum(1.0 - examination * attraction, 1e-9)
    likelihood = np.where(clicks > 0, np.log(examination * attraction + 1e-300), np.log(skipped))
    return likelihood, (1.0 - attraction) * np.where(clicks > 0, 1.0, -examination * attraction / skipped)


def climb(
    scorer: Scorer,
    step: Callable[[], Floats],
    held_out: Callable[[], float],
    steps: int,
    on_progress: Callable[[int, int], None],
) -> None:
    """Follow gradients, and return to where the held-out part was best.

    Args:
        scorer: changes.
        step: draws a batch, asks the scorer for its scores, and returns the gradient in these.
        held_out: the value of the scorer as it is, larger is better.
        steps: the most steps.
        on_progress: called with how many of how many steps are done.
    """
    best, kept, without = -np.inf, scorer.network.copy(), 0
    for done in range(steps + 1):
        if done % EVERY == 0:
            value, without = held_out(), without + 1
            if value > best:
                best, kept, without = value, scorer.network.copy(), 0
            on_progress(done, steps)
            if without == PATIENCE:
                break
        scorer.ascend(step())
    scorer.network[...] = kept
    on_progress(steps, steps)
