"""Rules of a few lines that a trained policy must beat on the board of unseen queries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickgym.agents import Agent

LEAST = 0.05
"""The least second parameter of a posterior: displays with a small examination may have clicks."""
TIES = 1e-6
"""The size of the noise that orders equal items at random."""


class Greedy(Agent):
    """The rule *hand, greedy*: show the items of the largest posterior mean, the best first.

    A display at position k counts as χ_k of a display, and a click as a click. The attraction of
    each item has the posterior Beta(α + clicks, β + displays - clicks).

    Args:
        n_items, n_positions: L and K.
        examination: ``(K,)`` χ, which the agents of the board are told: the mean of the training
            split.
        prior: α and β.
        seed: of the order of equal items.
    """

    requires = {"examination": "examination"}
    learns_from_any_list = True

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        examination: ArrayLike,
        prior: tuple[float, float] = (1.0, 1.0),
        seed: Any = None,
    ) -> None:
        self.n_items, self.n_positions = n_items, n_positions
        self.examination, self.prior = np.asarray(examination, float), prior
        self.clicks, self.displays = np.zeros((2, n_items))
        self.rng = np.random.default_rng(seed)

    def rank(self, observation: Any) -> NDArray[np.int64]:
        first, second = self.posterior()
        noise = TIES * self.rng.random(self.n_items)
        return self.best(first / (first + second) + noise)

    def update(
        self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int8], reward: float
    ) -> None:
        self.clicks[ranking] += clicks
        self.displays[ranking] += self.examination

    def leave(self) -> None:
        self.clicks[:], self.displays[:] = 0.0, 0.0

    def posterior(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the parameters of each item's Beta distribution, ``(L,)`` each."""
        alpha, beta = self.prior
        return alpha + self.clicks, np.maximum(beta + self.displays - self.clicks, LEAST)

    def best(self, worth: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the list of the K items of most worth."""
        return np.argsort(-worth)[: self.n_positions]


class Sampling(Greedy):
    """The rule *hand, sampling*: draw each item's attraction from its posterior, and show the
    largest (Thompson sampling). Its prior has the mean and variance of all items of the training
    split.
    """

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        examination: ArrayLike,
        prior: tuple[float, float] = (0.63, 2.78),
        seed: Any = None,
    ) -> None:
        super().__init__(n_items, n_positions, examination=examination, prior=prior, seed=seed)

    def rank(self, observation: Any) -> NDArray[np.int64]:
        return self.best(self.rng.beta(*self.posterior()))


class Told(Greedy):
    """The mark *told*: it knows the examination of the very query, and a prior with the mean and
    variance of the query's own items. It is an attainable mark, and no bound.

    Args:
        n_items, n_positions, examination, prior, seed: as in `Greedy`, of the query.
        noise: how many standard deviations of the posterior a draw adds to the mean in the first
            session; they fall linearly to 0 in the last one.
        horizon: T.
    """

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        examination: ArrayLike,
        prior: tuple[float, float],
        noise: float,
        horizon: int,
        seed: Any = None,
    ) -> None:
        super().__init__(n_items, n_positions, examination=examination, prior=prior, seed=seed)
        self.noise, self.horizon, self.n_sessions = noise, horizon, 0

    def rank(self, observation: Any) -> NDArray[np.int64]:
        first, second = self.posterior()
        mean = first / (first + second)
        spread = np.sqrt(mean * (1.0 - mean) / (first + second + 1.0))
        size = self.noise * (1.0 - self.n_sessions / self.horizon) * spread + TIES
        return self.best(mean + size * self.rng.standard_normal(self.n_items))

    def update(
        self, observation: Any, ranking: NDArray[np.int64], clicks: NDArray[np.int8], reward: float
    ) -> None:
        super().update(observation, ranking, clicks, reward)
        self.n_sessions += 1


def prior_of(attraction: ArrayLike) -> tuple[float, float]:
    """Return the Beta prior with the mean and the variance of some attractions.

    Example:
        >>> prior_of([0.25, 0.75])
        (1.5, 1.5)
    """
    values = np.asarray(attraction, float)
    mean, variance = values.mean(), values.var()
    size = float(np.clip(mean * (1.0 - mean) / variance - 1.0, 0.5, 1e4))
    return float(mean) * size, float(1.0 - mean) * size
