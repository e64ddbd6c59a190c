"""References of the agents that rank by random draws: Thompson sampling and ranked bandits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .bounds import exploration, upper_bound
from .indices import CascadeReference, IndexReference, PositionReference
from .reference import Reference, Remembering, any_lists, is_close, lists_by

# -------------------------------------------------------------------------------- Thompson sampling


class Sampled(IndexReference):
    """Base class of the references of Thompson sampling agents: a list shows the items with the
    largest draws, the k-th largest at the k-th place.
    """

    def draws(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return ``(n, L)`` draws from the posterior of each item."""
        raise NotImplementedError

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> np.ndarray:
        return lists_by(self.draws(rng, n), self.places())

    def allows(self, ranking: Sequence[int], drawn: Any = None, features: Any = None) -> bool:
        draws = drawn.draws.tolist()
        by_merit = [draws[ranking[place]] for place in self.places()]
        rest = [draws[item] for item in range(self.n_items) if item not in ranking]
        in_order = all(
            a >= b for a, b in zip(by_merit, [*by_merit[1:], max(rest, default=0.0)], strict=True)
        )
        return (
            Reference.allows(self, ranking) and in_order and all(0 <= draw <= 1 for draw in draws)
        )


class CascadeTSReference(Sampled, CascadeReference):
    """Reference of CascadeTS: an item's posterior is Beta(1 + clicks, 1 + examined - clicks)."""

    def draws(self, rng: np.random.Generator, n: int) -> np.ndarray:
        clicks, examined = np.array(self.clicks), np.array(self.seen)
        return rng.beta(1 + clicks, 1 + examined - clicks, (n, self.n_items))


class PBMTSReference(Sampled, PositionReference):
    """Reference of PBM-TS: the posterior of an item is proportional to θ^S Π (1 - κ_l θ)^{N_l -
    S_l}.
    """

    def draws(self, rng: np.random.Generator, n: int) -> np.ndarray:
        """Return draws from the posterior, approximated on a grid of 10,000 attractions."""
        grid = (np.arange(10_000) + 0.5) / 10_000
        misses = np.subtract(self.shown, self.clicked)
        log_density = np.outer(self.clicks, np.log(grid)) + misses @ np.log1p(
            -np.outer(self.kappa, grid)
        )
        density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
        return np.transpose([rng.choice(grid, n, p=each / each.sum()) for each in density])

    def holds(self) -> dict[str, Any]:
        return {"clicks": self.clicks, "misses": np.subtract(self.shown, self.clicked)}


class BCMPTSReference(Sampled, PositionReference):
    """Reference of BC-MPTS: the posterior of an item is Beta(1 + S, 1 + max(0, Ñ - S))."""

    def draws(self, rng: np.random.Generator, n: int) -> np.ndarray:
        clicks, weights = np.array(self.clicks), np.array(self.weights())
        return rng.beta(1 + clicks, 1 + np.maximum(0, weights - clicks), (n, self.n_items))

    def holds(self) -> dict[str, Any]:
        return {"clicks": self.clicks, "weight": self.weights()}


# ----------------------------------------------------------------------------------- ranked bandits


class RankedReference(Remembering):
    """Base class of the references of ranked bandits: Radlinski et al. 2008, Algorithm 2. Each
    position shows its bandit's choice, unless that item is already higher in the list.
    """

    def __init__(self, n_items: int, n_positions: int) -> None:
        super().__init__(n_items, n_positions)
        self.rewards = [[0] * n_items for _ in range(n_positions)]
        self.pulls = [[0] * n_items for _ in range(n_positions)]

    def may_choose(self, k: int, item: int) -> bool:
        """Return whether the bandit of position k may choose the item."""
        index = [
            self.index(rewards, n) if n else math.inf
            for rewards, n in zip(self.rewards[k], self.pulls[k], strict=True)
        ]
        return is_close(index[item], max(index))

    def index(self, rewards: int, pulls: int) -> float:
        raise NotImplementedError

    def show(self, ranking: list[int], state: Any) -> Any:
        choice = state.choice.tolist()
        is_allowed = all(
            (ranking[k] == item) == (item not in ranking[:k]) and self.may_choose(k, item)
            for k, item in enumerate(choice)
        )
        if not is_allowed:
            return None
        return [(k, item, self.chance(k, item)) for k, item in enumerate(choice)]

    def chance(self, k: int, item: int) -> float:
        """Return the probability of a choice, for bandits that weight rewards by it."""
        return 1.0

    def chances(self, k: int) -> Any:
        """Return the probability that the bandit of position k chooses each item. Tied items are
        equally likely.
        """
        may_be = [self.may_choose(k, item) for item in range(self.n_items)]
        return np.array(may_be) / sum(may_be)

    def lists(self, rng: np.random.Generator, n: int, agent: Any, features: Any) -> np.ndarray:
        L, found = self.n_items, np.empty((n, self.n_positions), int)
        for k in range(self.n_positions):
            found[:, k] = rng.choice(L, n, p=self.chances(k))
            for ranking, others in zip(found, any_lists(rng, n, L, L).tolist(), strict=True):
                if ranking[k] in ranking[:k]:
                    ranking[k] = next(item for item in others if item not in ranking[:k])
        return found

    def learn(self, ranking: Sequence[int], clicks: Sequence[int]) -> None:
        super().learn(ranking, clicks)
        for k, item, chance in self.memory:
            self.reward(k, item, clicks[k] if ranking[k] == item else 0, chance)

    def reward(self, k: int, item: int, reward: int, chance: float) -> None:
        self.pulls[k][item] += 1
        self.rewards[k][item] += reward


class RankedKLUCBReference(RankedReference):
    """Reference of RankedKL-UCB: the index is kl_upper(mean, (log t + 3 log log t) / pulls)."""

    def index(self, rewards: int, pulls: int) -> float:
        return upper_bound(rewards / pulls, exploration(self.t) / pulls)

    def holds(self) -> dict[str, Any]:
        return {"clicks": self.rewards, "examined": self.pulls}


class RankedExp3Reference(RankedReference):
    """Reference of RankedExp3: p = (1-γ) w/Σw + γ/L, and w ← w exp(γ (reward/p) / L) for the
    choice. Weights are stored as logarithms.
    """

    def __init__(self, n_items: int, n_positions: int, horizon: int, gamma: float | None) -> None:
        super().__init__(n_items, n_positions)
        default = min(
            1.0, math.sqrt(n_items * math.log(max(n_items, 2)) / ((math.e - 1) * horizon))
        )
        self.gamma = default if gamma is None else gamma
        self.log_weight = np.zeros((n_positions, n_items))

    def shares(self) -> np.ndarray:
        """Return the weight of each item divided by the sum of all weights, w / Σw."""
        weight = np.exp(self.log_weight - self.log_weight.max(axis=1, keepdims=True))
        return weight / weight.sum(axis=1, keepdims=True)

    def chances(self, k: int) -> Any:
        return (1 - self.gamma) * self.shares()[k] + self.gamma / self.n_items

    def chance(self, k: int, item: int) -> float:
        return float(self.chances(k)[item])

    def may_choose(self, k: int, item: int) -> bool:
        return self.chance(k, item) > 0

    def reward(self, k: int, item: int, reward: int, chance: float) -> None:
        self.log_weight[k, item] += self.gamma * reward / chance / self.n_items

    def agrees(self, state: Any) -> bool:
        shares = state.weight / state.total[:, None]
        return np.allclose(state.log_weight, self.log_weight, rtol=1e-9, atol=0) and np.allclose(
            shares, self.shares(), rtol=1e-9, atol=1e-12
        )
