"""The policy that earns most: scorers of candidates, and the gradients that train them.

A policy draws lists by the Plackett-Luce law of the scores f(x) of the candidates. Its gradient is by draws (REINFORCE), with
credit to go:

    ∇U = E Σ_k (G_k - b_k) ∇ log π(d_k | d_1 ... d_{k-1}),  G_k = Σ_{j >= k} χ_j R(d_j).

1. ⚠ The choice at position k has the credit of k and of all positions below. Its own reward alone is biased also in a
   position-based model: an item that is taken now is gone below.
2. The baseline b_k is the mean of G_k over the other lists that were drawn for the same candidates. It depends on no choice of
   this list, so the gradient is unbiased.
3. `PlackettLuceDistribution` has the same law for torch. Here it is written for NumPy, so that linear scorers need no torch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Layers = list[tuple[Floats, Floats]]
"""Weights ``(inputs, outputs)`` and biases ``(outputs,)`` of each layer; ReLU between them."""

EVERY = 100
"""Steps between two looks at the held-out part."""
PATIENCE = 8
"""Looks without progress, after which it ends."""
RATES = {"linear": 0.02, "network": 3e-3}
"""Learning rates of Adam."""


def scores_of(layers: Layers, x: Floats) -> Floats:
    """``(n,)`` the scores of scaled features ``(n, d)``."""
    for weights, biases in layers[:-1]:
        x = np.maximum(x @ weights + biases, 0.0)
    weights, biases = layers[-1]
    return (x @ weights + biases)[:, 0]


class Scorer(Protocol):
    """What gives scores to candidates, and is trained by gradients in these."""

    def forward(self, x: Floats) -> Floats: ...
    def ascend(self, gradient: Floats) -> None: ...
    def layers(self) -> Layers: ...
    def load(self, layers: Layers) -> None: ...


class Linear:
    """A linear scorer, trained by Adam in NumPy."""

    def __init__(self, n_features: int, rng: np.random.Generator) -> None:
        self._moments = np.zeros((2, n_features + 1))
        self._weights, self._steps = np.zeros(n_features + 1), 0

    def forward(self, x: Floats) -> Floats:
        self._x = x
        return x @ self._weights[:-1] + self._weights[-1]

    def ascend(self, gradient: Floats) -> None:
        slope, self._steps = np.append(gradient @ self._x, gradient.sum()), self._steps + 1
        for moment, share, value in zip(self._moments, (0.9, 0.999), (slope, slope**2), strict=True):
            moment += (1.0 - share) * (value - moment)
        first, second = self._moments[0] / (1 - 0.9**self._steps), self._moments[1] / (1 - 0.999**self._steps)
        self._weights += RATES["linear"] * first / (np.sqrt(second) + 1e-8)

    def layers(self) -> Layers:
        return [(self._weights[:-1, None].copy(), self._weights[-1:].copy())]

    def load(self, layers: Layers) -> None:
        self._weights = np.concatenate([layers[0][0][:, 0], layers[0][1]])


class Network:
    """A network with ReLU, trained by torch in one thread; all random numbers are NumPy's.

    Raises:
        ImportError: torch is not installed.
    """

    def __init__(self, n_features: int, rng: np.random.Generator, hidden: tuple[int, ...]) -> None:
        try:
            import torch
        except ImportError as error:
            raise ImportError(
                f"a network needs torch: pip install 'clickgym[rl]'; a linear scorer does not ({error})"
            ) from None
        self._torch = torch
        self._parameters: list[Any] = []
        for inputs, outputs in itertools.pairwise((n_features, *hidden, 1)):
            for shape in ((inputs, outputs), (outputs,)):
                values = (rng.uniform(-1, 1, shape) / np.sqrt(inputs)).astype(np.float32)
                self._parameters.append(torch.tensor(values, requires_grad=True))
        self._optimiser = torch.optim.Adam(self._parameters, lr=RATES["network"])

    def forward(self, x: Floats) -> Floats:
        signal = self._torch.from_numpy(x.astype(np.float32))
        for index in range(0, len(self._parameters), 2):
            signal = self._torch.addmm(self._parameters[index + 1], signal, self._parameters[index])
            signal = self._torch.relu(signal) if index < len(self._parameters) - 2 else signal
        self._scores = signal[:, 0]
        return self._scores.detach().numpy().astype(np.float64)

    def ascend(self, gradient: Floats) -> None:
        self._optimiser.zero_grad()
        self._scores.backward(self._torch.from_numpy(-gradient.astype(np.float32)))
        self._optimiser.step()

    def layers(self) -> Layers:
        values = [parameter.detach().numpy().astype(np.float64) for parameter in self._parameters]
        return list(zip(values[::2], values[1::2], strict=True))

    def load(self, layers: Layers) -> None:
        for parameter, values in zip(self._parameters, itertools.chain(*layers), strict=True):
            parameter.data.copy_(self._torch.from_numpy(values))


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
    step: Callable[[Scorer], Floats],
    held_out: Callable[[Layers], float],
    steps: int,
    on_progress: Callable[[int, int], None],
) -> float:
    """Follow gradients, and return to where the held-out part was best; returns its value there.

    Args:
        scorer: changes.
        step: draws a batch, asks the scorer for its scores, and returns the gradient in these.
        held_out: the value of a scorer, larger is better.
        steps: the most steps.
        on_progress: called with how many of how many steps are done.
    """
    best, kept, without = -np.inf, scorer.layers(), 0
    for done in range(steps + 1):
        if done % EVERY == 0:
            value, without = held_out(scorer.layers()), without + 1
            if value > best:
                best, kept, without = value, scorer.layers(), 0
            on_progress(done, steps)
            if without == PATIENCE:
                break
        scorer.ascend(step(scorer))
    scorer.load(kept)
    on_progress(steps, steps)
    return best
