"""Agents that do not learn, and the simplest one that does."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array, check_positions, probability
from ..core.kernels import inner, kernel
from ..envs.spaces import check_ranking
from .agent import ANY_LIST, CompiledAgent, Seed, rates
from .kernels import rank_available, rank_by_index, show, shuffle_front
from .search_space import Range

__all__ = ["EpsilonGreedy", "Fixed", "Oracle", "Random"]


class ListState(NamedTuple):
    items: NDArray[np.int64]


@kernel
def show_front(state, rng, ranking):  # type: ignore[no-untyped-def]
    show(state.items, ranking)


@kernel
def ignore(state, ranking, clicks):  # type: ignore[no-untyped-def]
    pass


@kernel
def nothing_to_forget(state, rng, item):  # type: ignore[no-untyped-def]
    pass


@inner
def show_random(items, rng, available, ranking):  # type: ignore[no-untyped-def]
    """Write a uniformly random list of the available items."""
    count = 0
    for place in range(len(items)):
        if available[items[place]]:
            items[count], items[place] = items[place], items[count]
            count += 1
    shuffle_front(rng, items, 0, count, len(ranking))
    show(items, ranking)


class Fixed(CompiledAgent):
    """Always the same list: the *Baseline* of Li et al. 2019, the production list.

    Args:
        n_items: L.
        n_positions: K.
        ranking: the list; more than K items are cut. ``make_agent`` fills in the initial list of the instance.
        seed: unused; every agent takes one.

    Raises:
        ValueError: on fewer than K items, or a bad list.

    Source: a baseline, the one of Li, Kveton, Lattimore, Markov, de Rijke, Szepesvári, Zoghi, *BubbleRank: safe online learning
    to re-rank via implicit click feedback*, UAI 2019, section 5.1.

    Example:
        >>> Fixed(4, 2, ranking=[3, 1]).rank(None)
        array([3, 1])
    """

    paper = "Li et al. 2019 (BubbleRank), Baseline"
    stands: ClassVar = {"late clicks": ""}  # it learns nothing
    told: ClassVar = {"ranking": "initial_ranking"}
    learns_from = ANY_LIST
    rank_kernel = show_front
    update_kernel = ignore
    replace_kernel: ClassVar[Callable[..., None] | None] = nothing_to_forget

    def __init__(self, n_items: int, n_positions: int, *, ranking: ArrayLike, seed: Seed = None) -> None:
        n_positions = check_positions(n_positions, n_items)
        given = ranking if isinstance(ranking, list | tuple) else np.atleast_1d(as_array("ranking", ranking))
        super().__init__(n_items, n_positions, seed, ranking=check_ranking(given[:n_positions], n_items, n_positions))

    def best(self) -> NDArray[np.int64]:
        return self.state.items[: self.n_positions].copy()

    def _initial_state(self) -> ListState:
        return ListState(self.hyperparameters["ranking"].copy())


class Oracle(Fixed):
    """Always the optimal list, which it is told: for tests and plots. ``make_agent`` fills it in.

    Args:
        n_items, n_positions, ranking, seed: as in `Fixed`.

    Source: a baseline.
    """

    paper = "told the optimum"
    told: ClassVar = {"ranking": "optimal_ranking"}
    replace_kernel: ClassVar = None


@kernel
def rank_random(state, rng, ranking):  # type: ignore[no-untyped-def]
    shuffle_front(rng, state.items, 0, len(state.items), len(ranking))
    show(state.items, ranking)


@kernel
def rank_random_available(state, rng, available, ranking):  # type: ignore[no-untyped-def]
    show_random(state.items, rng, available, ranking)


class Random(CompiledAgent):
    """A uniformly random list every time.

    Args:
        n_items: L.
        n_positions: K.
        seed: seeds the agent's own generator.

    Source: a baseline.
    """

    paper = "uniform exploration"
    stands: ClassVar = {"late clicks": ""}  # it learns nothing
    learns_from = ANY_LIST
    rank_kernel = rank_random
    rank_available_kernel = rank_random_available
    update_kernel = ignore
    replace_kernel = nothing_to_forget

    def __init__(self, n_items: int, n_positions: int, *, seed: Seed = None) -> None:
        super().__init__(n_items, n_positions, seed)

    def _initial_state(self) -> ListState:
        return ListState(np.arange(self.n_items))


class GreedyState(NamedTuple):
    clicks: NDArray[np.int64]  # (L,)
    displays: NDArray[np.int64]  # (L,)
    rate: NDArray[np.float64]  # (L,) clicks / displays, infinite before the first display
    scores: NDArray[np.float64]  # (L,) working memory
    order: NDArray[np.int64]  # (L,) items by rate
    random: NDArray[np.int64]  # (L,) a permutation to draw random lists from
    epsilon: float


@kernel
def rank_greedy(state, rng, ranking):  # type: ignore[no-untyped-def]
    if rng.random() < state.epsilon:
        shuffle_front(rng, state.random, 0, len(state.random), len(ranking))
        show(state.random, ranking)
    else:
        rank_by_index(state.rate, state.order, rng, len(ranking))
        show(state.order, ranking)


@kernel
def rank_greedy_available(state, rng, available, ranking):  # type: ignore[no-untyped-def]
    if rng.random() < state.epsilon:
        show_random(state.random, rng, available, ranking)
    else:
        for item in range(len(state.rate)):
            state.scores[item] = state.rate[item]
        rank_available(state.scores, state.order, rng, available, len(ranking))
        show(state.order, ranking)


@kernel
def update_greedy(state, ranking, clicks):  # type: ignore[no-untyped-def]
    for k in range(len(ranking)):
        if clicks[k] > 1:
            continue
        item = ranking[k]
        state.clicks[item] += clicks[k]
        state.displays[item] += 1
        state.rate[item] = state.clicks[item] / state.displays[item]


@kernel
def replace_greedy(state, rng, item):  # type: ignore[no-untyped-def]
    state.clicks[item], state.displays[item], state.rate[item] = 0, 0, np.inf


class EpsilonGreedy(CompiledAgent):
    """With probability ε a uniformly random list, else the items by clicks per display, never-shown items first.

    Args:
        n_items: L.
        n_positions: K.
        epsilon: ε in ``[0, 1]``.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: if epsilon is not in ``[0, 1]``.

    ⚠ Ties are broken uniformly at random.

    Source: a baseline; Sutton, Barto, *Reinforcement learning: an introduction*, MIT Press 2018, section 2.2, for each item.

    Example:
        >>> agent = EpsilonGreedy(4, 2, epsilon=0.0, seed=1)
        >>> ranking = agent.rank(None)
        >>> agent.update(None, ranking, [1, 0], reward=1.0)
    """

    paper = "Sutton and Barto 2018, section 2.2, per item"
    learns_from = ANY_LIST
    rank_kernel = rank_greedy
    rank_available_kernel = rank_greedy_available
    update_kernel = update_greedy
    replace_kernel = replace_greedy

    search_space: ClassVar = {"epsilon": Range(0.001, 0.5, log=True)}

    def __init__(self, n_items: int, n_positions: int, *, epsilon: float = 0.1, seed: Seed = None) -> None:
        super().__init__(n_items, n_positions, seed, epsilon=probability("epsilon", epsilon))

    def best(self) -> NDArray[np.int64]:
        return self._best_by(rates(self.state.clicks, self.state.displays))

    def _initial_state(self) -> GreedyState:
        n = self.n_items
        return GreedyState(
            clicks=np.zeros(n, np.int64),
            displays=np.zeros(n, np.int64),
            rate=np.full(n, np.inf),
            scores=np.zeros(n),
            order=np.arange(n),
            random=np.arange(n),
            epsilon=self.hyperparameters["epsilon"],
        )
