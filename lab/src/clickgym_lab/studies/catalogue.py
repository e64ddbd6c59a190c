"""PBM-UCB where candidates change: an attraction for each item of the catalogue, without features.

The agent must know which items the candidates of a session are, which observations do not say. The
compiled loop passes their numbers, so only this engine plays the agent.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickgym.agents import PBMUCB
from clickgym.agents.kernels import rank_by_index, show_at
from clickgym.core.kernels import kernel


@kernel
def rank_candidates(state, rng, ranking, items):  # type: ignore[no-untyped-def]
    radius, n_items = math.sqrt((1.0 + state.epsilon) * math.log(state.t[0] + 1)), len(items)
    for a in range(n_items):
        if items[a] >= len(state.mean):
            raise IndexError("an item is beyond the catalogue")
        state.indices[a] = state.mean[items[a]] + radius * state.width[items[a]]
    rank_by_index(state.indices[:n_items], state.order[:n_items], rng, len(ranking))
    show_at(state.positions, state.order, ranking)


@kernel
def update_candidates(state, ranking, clicks, items):  # type: ignore[no-untyped-def]
    state.t[0] += 1
    for k in range(len(ranking)):
        item = items[ranking[k]]
        state.clicks[item] += clicks[k]
        state.displays[item] += 1
        state.weight[item] += state.examination[k]
        state.mean[item] = state.clicks[item] / state.weight[item]
        state.width[item] = math.sqrt(0.5 * state.displays[item]) / state.weight[item]


class CataloguePBMUCB(PBMUCB):
    """PBM-UCB for contextual environments, the context-free baseline of He et al. 2020.

    Args:
        n_items, n_positions, examination, epsilon, seed: as in `clickgym.agents.PBMUCB`.
        n_catalogue: the number of items of the catalogue, or more.
    """

    observes = ("items",)
    rank_kernel, update_kernel = rank_candidates, update_candidates

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        examination: ArrayLike,
        epsilon: float = 0.0,
        n_catalogue: int = 10_000,
        seed: int | np.random.SeedSequence | None = None,
    ) -> None:
        self.n_catalogue = n_catalogue
        super().__init__(n_items, n_positions, examination=examination, epsilon=epsilon, seed=seed)

    def sizes(self) -> dict[str, int]:
        return super().sizes() | {"L": self.n_catalogue}

    def seen(self, observation: Any) -> tuple[NDArray[np.int64], ...]:
        return (np.array(observation["items"], np.int64),)
