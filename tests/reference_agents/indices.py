"""References of the agents that rank by an index: cascade agents, agents for the position-based
model, and EpsilonGreedy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .bounds import exploration, upper_bound
from .reference import Reference, any_lists, examined_positions, is_close, lists_by


class IndexReference(Reference):
    """Base class of the references that rank items by decreasing index. Items with equal indices
    may be in any order.
    """

    def __init__(self, n_items: int, n_positions: int) -> None:
        super().__init__(n_items, n_positions)
        self.clicks: list[float] = [0] * n_items
        self.seen: list[float] = [0] * n_items

    def index(self, item: int) -> float:
        raise NotImplementedError

    def indices(self) -> list[float]:
        """Return the indices of all items. An item that was never seen has the largest index;
        references of agents with a prior override this method.
        """
        return [
            math.inf if self.seen[item] == 0 else self.index(item) for item in range(self.n_items)
        ]

    def places(self) -> list[int]:
        """Return the positions of the best item, the second best item, and so on."""
        return list(range(self.n_positions))

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        index = self.indices()
        by_merit = [index[ranking[place]] for place in self.places()]
        best = sorted(index, reverse=True)[: self.n_positions]
        return super().allows(ranking) and all(map(is_close, by_merit, best))

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        super().learn(ranking, clicks)
        for k in self.examined(clicks):
            self.seen[ranking[k]] += 1
            self.clicks[ranking[k]] += clicks[k]

    def examined(self, clicks: Sequence[int]) -> range:
        return range(self.n_positions)


class GreedyReference(IndexReference):
    """Reference of EpsilonGreedy: items are sorted by clicks per display; with ε > 0, any list is
    allowed.
    """

    edges = {"epsilon": (0.0, 0.7)}

    def __init__(self, n_items: int, n_positions: int, epsilon: float = 0.0) -> None:
        super().__init__(n_items, n_positions)
        self.epsilon = epsilon

    def index(self, item: int) -> float:
        return self.clicks[item] / self.seen[item]

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        return Reference.allows(self, ranking) if self.epsilon > 0 else super().allows(ranking)

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> np.ndarray:
        greedy = lists_by(np.tile(self.indices(), (n, 1)), self.n_positions)
        is_random = rng.random((n, 1)) < self.epsilon
        return np.where(is_random, any_lists(rng, n, self.n_items, self.n_positions), greedy)

    def holds(self) -> dict[str, Any]:
        return {"clicks": self.clicks, "displays": self.seen}


# ------------------------------------------------------------------------------------------ cascade


class CascadeReference(IndexReference):
    """Reference of CascadeKL-UCB: Kveton et al. 2015, Algorithm 1."""

    def __init__(self, n_items: int, n_positions: int, feedback: str, c: float = 3.0) -> None:
        super().__init__(n_items, n_positions)
        self.feedback, self.c = feedback, c

    def index(self, item: int) -> float:
        n = self.seen[item]
        return self.optimistic(self.clicks[item] / n, n)

    def optimistic(self, mean: float, n: float) -> float:
        """Return the index after n observations, the highest plausible attraction."""
        term = exploration(self.t, self.c)
        return upper_bound(mean, term / n) if term > 0 else mean

    def examined(self, clicks: Sequence[int]) -> range:
        return examined_positions(clicks, self.feedback)

    def holds(self) -> dict[str, Any]:
        return {"clicks": self.clicks, "examined": self.seen}


class UCB1Reference(CascadeReference):
    """Reference of CascadeUCB1: Kveton et al. 2015, Algorithm 1, with the index of UCB1."""

    def optimistic(self, mean: float, n: float) -> float:
        return mean + math.sqrt(1.5 * math.log(self.t) / n)


class DCMReference(CascadeReference):
    """Reference of dcmKL-UCB: Katariya et al. 2016, Algorithm 1. The item with the k-th largest
    index is shown at the position where a click is k-th most likely to end the session.
    """

    edges = {"position_order": ([2, 0, 1],)}

    def __init__(
        self, n_items: int, n_positions: int, position_order: Sequence[int] | None, c: float
    ) -> None:
        super().__init__(n_items, n_positions, "last_click", c)
        self.order = list(range(n_positions)) if position_order is None else list(position_order)

    def places(self) -> list[int]:
        return self.order


def doubled(t: int) -> int:
    """Return 2^k for 2^k ≤ t < 2^{k+1}, with k ≥ 1."""
    return 2 ** max(t.bit_length() - 1, 1)


class WithIndices(CascadeReference):
    """Base class of the references that also compare indices, which reveal more than lists do."""

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        index = self.indices()
        return super().allows(ranking, drawn) and all(
            is_close(drawn.indices[item], index[item]) for item in range(self.n_items)
        )


class VarianceReference(WithIndices):
    """Reference of CascadeUCB-V: Vial et al. 2022. The index is that of UCB-V, with the variance of
    a Bernoulli distribution.
    """

    edges = {"variance": (2.0, 0.0), "bias": (0.1, 0.0)}

    def __init__(
        self, n_items: int, n_positions: int, variance: float, bias: float, feedback: str
    ) -> None:
        super().__init__(n_items, n_positions, feedback)
        self.variance, self.bias = variance, bias

    def optimistic(self, mean: float, n: float) -> float:
        level = math.log(self.t) / n
        return mean + math.sqrt(self.variance * mean * (1 - mean) * level) + self.bias * level


class DiscountedReference(WithIndices):
    """Reference of CascadeDUCB: Li and de Rijke 2019, Algorithm 1 with eq. 5 and 6. Every count is
    multiplied by γ at every step.
    """

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        gamma: float | None,
        epsilon: float,
        horizon: int | None,
        feedback: str,
    ) -> None:
        super().__init__(n_items, n_positions, feedback)
        self.gamma, self.epsilon, self.horizon = gamma, epsilon, horizon

    def discount(self) -> float:
        n = self.horizon or doubled(self.t)
        return 1 - 0.25 / math.sqrt(n) if self.gamma is None else self.gamma

    def index(self, item: int) -> float:
        gamma, t = self.discount(), self.t
        # N_t(γ) = 1 + γ + ... + γ^{t-1}; the quotient loses digits if γ is close to 1.
        log_time = math.log(
            math.fsum(gamma**s for s in range(t)) if t < 100 else (1 - gamma**t) / (1 - gamma)
        )
        width = 2 * math.sqrt(self.epsilon * log_time) / math.sqrt(self.seen[item])
        return self.clicks[item] / self.seen[item] + width

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        gamma = self.discount()
        self.clicks = [gamma * x for x in self.clicks]
        self.seen = [gamma * n for n in self.seen]
        super().learn(ranking, clicks)

    def agrees(self, state: Any) -> bool:
        """Return whether the agent's counts, which are stored divided by `scale`, equal the
        reference's counts. Counts that underflow are not compared.
        """
        pairs = ((state.examined, self.seen), (state.clicks, self.clicks))
        return all(
            abs(have * state.scale[0] - want) <= max(1e-9 * want, 1e-290)
            for stored, plain in pairs
            for have, want in zip(stored, plain, strict=True)
        )


class WindowReference(WithIndices):
    """Reference of CascadeSWUCB: eq. 7 and 8, with examined items in both. Every session computes
    the sums again from the last τ sessions.
    """

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        tau: int | None,
        epsilon: float,
        horizon: int | None,
        feedback: str,
    ) -> None:
        super().__init__(n_items, n_positions, feedback)
        self.tau, self.epsilon, self.horizon = tau, epsilon, horizon
        self.samples: list[tuple[int, int, int]] = []  # session, item, click
        # a session that has left the window does not return when the window grows
        self.forgotten = 0

    def length(self) -> int:
        n = self.horizon or doubled(self.t)
        return max(math.ceil(2 * math.sqrt(n * math.log(n))), 1) if self.tau is None else self.tau

    def index(self, item: int) -> float:
        log_time = math.log(min(self.t, self.length()))
        width = math.sqrt(self.epsilon * log_time / self.seen[item])
        return self.clicks[item] / self.seen[item] + width

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        self.samples += [(self.t, ranking[k], clicks[k]) for k in self.examined(clicks)]
        self.forgotten = max(self.forgotten, self.t - self.length())
        self.samples = [sample for sample in self.samples if sample[0] > self.forgotten]
        self.clicks, self.seen = [0] * self.n_items, [0] * self.n_items
        for _, item, click in self.samples:
            self.clicks[item] += click
            self.seen[item] += 1
        Reference.learn(self, ranking, clicks)


# ----------------------------------------------------------------------------- position-based model


class PositionReference(IndexReference):
    """Base class of the references that know κ. They count clicks and displays by item and
    position.
    """

    def __init__(self, n_items: int, n_positions: int, examination: Sequence[float]) -> None:
        super().__init__(n_items, n_positions)
        self.kappa = list(examination)
        self.shown = [[0] * len(self.kappa) for _ in range(n_items)]  # N_{i,l}
        self.clicked = [[0] * len(self.kappa) for _ in range(n_items)]  # S_{i,l}

    def weight(self, item: int) -> float:
        """Return Ñ, the sum of κ over an item's displays."""
        return math.fsum(
            kappa * count for kappa, count in zip(self.kappa, self.shown[item], strict=True)
        )

    def weights(self) -> list[float]:
        return [self.weight(item) for item in range(self.n_items)]

    def index(self, item: int) -> float:
        return self.clicks[item] / self.weight(item)

    def places(self) -> list[int]:
        return sorted(range(self.n_positions), key=lambda position: -self.kappa[position])

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        super().learn(ranking, clicks)
        for position, item in enumerate(ranking):
            self.shown[item][position] += 1
            self.clicked[item][position] += clicks[position]


class PBMUCBReference(PositionReference):
    """Reference of PBM-UCB: Lagrée et al. 2016, section 4, computed from the counts by item and
    position.
    """

    def __init__(
        self, n_items: int, n_positions: int, examination: Sequence[float], epsilon: float
    ) -> None:
        super().__init__(n_items, n_positions, examination)
        self.epsilon = epsilon

    def index(self, item: int) -> float:
        n, weighted = sum(self.shown[item]), self.weight(item)
        delta = (1 + self.epsilon) * math.log(self.t)
        width = math.sqrt(n / weighted) * math.sqrt(delta / (2 * weighted))
        return self.clicks[item] / weighted + width

    def holds(self) -> dict[str, Any]:
        return {"clicks": self.clicks, "displays": self.seen, "weight": self.weights()}


class PBMPIEReference(PositionReference):
    """Reference of PBM-PIE: Lagrée et al. 2016, Algorithm 1, after a cyclic start."""

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        examination: Sequence[float],
        horizon: int,
        epsilon: float,
    ) -> None:
        super().__init__(n_items, n_positions, examination)
        self.bound = (1 + epsilon) * math.log(horizon)

    def might_reach(self, item: int, x: float) -> bool:
        """Return whether U_i ≥ x, that is, whether x is at most the minimiser of Φ_i(q) = Σ N
        KL(S/N, κ q), or Φ_i(x) ≤ bound. If rounding decides, the result is True.
        """
        if x <= 0:
            return True
        slope, phi = 0.0, 0.0
        for kappa, s, n in zip(self.kappa, self.clicked[item], self.shown[item], strict=True):
            hit = min(kappa * x, 1.0)
            if s < n and hit == 1.0:
                return kappa * x < 1 + 1e-9 and kappa * x > 1 - 1e-9
            if s < n:
                slope += (n - s) * kappa / (1 - hit)
                phi += (n - s) * (math.log((n - s) / n) - math.log1p(-hit))
            if s > 0:
                slope -= s / x
                phi += s * (math.log(s / n) - math.log(kappa) - math.log(x))
        return slope <= 1e-9 * sum(self.clicked[item]) / x or phi <= self.bound * (1 + 1e-9) + 1e-9

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        if not Reference.allows(self, ranking):
            return False
        if self.t <= self.n_items:
            start = drawn.start.tolist()
            cyclic = [start[(self.t - 1 + k) % self.n_items] for k in range(self.n_positions)]
            return sorted(start) == list(range(self.n_items)) and list(ranking) == cyclic
        means = self.indices()
        by_merit = [means[ranking[place]] for place in self.places()]
        best = sorted(means, reverse=True)[: self.n_positions]
        if not all(map(is_close, by_merit[:-1], best[:-1])):
            return False
        if is_close(by_merit[-1], best[-1]):
            return True
        return by_merit[-1] < best[-1] <= 1 + 1e-9 and self.might_reach(
            ranking[self.places()[-1]], best[-1]
        )

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> np.ndarray:
        means, places = np.array(self.indices()), self.places()
        order = np.argsort(-means)
        last = means[order[self.n_positions - 1]]
        rivals = [i for i in order[self.n_positions :] if last <= 1 and self.might_reach(i, last)]
        found = lists_by(np.tile(means, (n, 1)), places)
        explores = rng.random(n) < (0.5 if rivals else 0.0)
        found[explores, places[-1]] = rng.choice(rivals, explores.sum()) if rivals else 0
        return found

    def holds(self) -> dict[str, Any]:
        return {"clicks": self.clicked, "displays": self.shown, "weight": self.weights()}
