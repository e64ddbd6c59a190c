"""Baselines: the agents that do not learn (Fixed, Oracle, Random), and EpsilonGreedy, the simplest
agent that learns.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array, check_count, check_number, check_positions
from ..core.kernels import kernel
from ..core.state import Floats, Ints
from ..envs.spaces import check_ranking
from .agent import Seed
from .compiled_agent import CompiledAgent, rates
from .shared_kernels import rank_by_index, show, show_any


class FixedState(NamedTuple):
    items: Annotated[Ints, "K"]


class ListState(NamedTuple):
    items: Annotated[Ints, "L", range]


@kernel
def show_front(state, rng, ranking):
    show(state.items, ranking)


@kernel
def ignore(state, ranking, clicks):
    pass


class Fixed(CompiledAgent):
    """Fixed: show the same list in every session, the production list (*Baseline* in Li et al.
    2019).

    Idea:
        Fixed represents a system that does not learn online, such as a search engine with a fixed
        production ranking. It keeps only this list: the initial ranking of the instance, or the
        list that you pass. It shows the list in every session and ignores all clicks. Therefore no
        click can harm it. A comparison with Fixed shows after how many sessions the learning of
        another agent has paid for its exploration. Its regret grows by the same amount in every
        session, and is 0 only if the production list is optimal.

    Algorithm:
        ::

            input: the production list R_0 of K items; r(R) is the expected reward of a list R,
                and R* the best list
            R ← R_0
            for t = 1, 2, ..., T:
                show R
                observe the clicks c_t(1), ..., c_t(K)
                for k = 1, ..., K:
                    ignore c_t(k)
                the expected regret grows by r(R*) - r(R_0)

    Args:
        n_items: L.
        n_positions: K.
        ranking: the list, at least K distinct items; items after the first K are ignored.
            ``make_agent`` fills in the production list of the instance.
        seed: unused; all agents have this argument.

    Raises:
        ValueError: fewer than K items, or a bad list.

    Source: a baseline, as in Li, Kveton, Lattimore, Markov, de Rijke, Szepesvári, Zoghi,
    *BubbleRank: safe online learning to re-rank via implicit click feedback*, UAI 2019, section
    5.1.

    Example:
        >>> Fixed(4, 2, ranking=[3, 1]).rank(None)
        array([3, 1])
    """

    paper = "Li et al. 2019 (BubbleRank), Baseline"
    bibtex_keys = ["bubblerank"]
    requires = {"ranking": "initial_ranking"}
    state_type = FixedState
    rank_kernel = show_front
    update_kernel = ignore

    def __init__(
        self, n_items: int, n_positions: int, *, ranking: ArrayLike, seed: Seed = None
    ) -> None:
        n_positions = check_positions(n_positions, check_count("n_items", n_items))
        items = (
            ranking
            if isinstance(ranking, list | tuple)
            else np.atleast_1d(as_array("ranking", ranking))
        )
        super().__init__(
            n_items,
            n_positions,
            seed,
            ranking=check_ranking(items[:n_positions], n_items, n_positions),
        )

    def best(self) -> NDArray[np.int64]:
        return self.state.items[: self.n_positions].copy()

    def first_values(self) -> dict[str, Any]:
        return {"items": self.hyperparameters["ranking"].copy()}


class Oracle(Fixed):
    """Oracle: show the optimal list in every session, for tests and plots; ``make_agent`` fills in
    this list.

    Idea:
        Oracle gets the best list before the first session and shows it in every session. It
        keeps only this list, which the environment computes from the true parameters of its click
        model. Its regret is 0 as long as users do not change, and it learns nothing from clicks. It
        is useful to check an environment and to draw the best result that any agent can reach. If
        users change, it still shows the best list of the first session, and its regret grows. No
        real system has this knowledge.

    Algorithm:
        ::

            input: R* = argmax_R r(R), the list of the largest expected reward r under the true
                parameters at the first session
            R ← R*
            for t = 1, 2, ..., T:
                show R
                observe the clicks c_t(1), ..., c_t(K)
                for k = 1, ..., K:
                    ignore c_t(k)
                the expected regret grows by 0, as long as R* stays the best list

    Args:
        n_items, n_positions, ranking, seed: as in `Fixed`.

    Source: a baseline.
    """

    paper = "the optimal list"
    bibtex_keys = []
    requires = {"ranking": "optimal_ranking"}


@kernel
def rank_random(state, rng, ranking):
    show_any(state.items, rng, ranking)


class Random(CompiledAgent):
    """Random: show a uniformly random list in every session.

    Idea:
        Random assumes nothing about users and shows a list drawn uniformly from all lists of K
        distinct items. It keeps no statistics and learns nothing from clicks. Each item appears at
        each position equally often, and therefore a log of its clicks has no bias from a production
        list. Many tables of this documentation give the regret of other agents in percent of its
        regret. Use it to collect data and as the lower end of a comparison.
        Its regret grows linearly with the number of sessions, and it should never serve real users.

    Algorithm:
        ::

            for t = 1, 2, ..., T:
                A ← {1, ..., L}, the items that are not in the list yet
                for k = 1, ..., K:
                    draw an item d uniformly from A
                    R_t(k) ← d, the item at position k of the list R_t
                    A ← A without d
                show R_t
                observe the clicks and ignore them

    Args:
        n_items: L.
        n_positions: K.
        seed: seeds the agent's own generator.

    Source: a baseline.
    """

    paper = "uniform exploration"
    state_type = ListState
    rank_kernel = rank_random
    update_kernel = ignore

    def __init__(self, n_items: int, n_positions: int, *, seed: Seed = None) -> None:
        super().__init__(n_items, n_positions, seed)


class GreedyState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    displays: Annotated[Ints, "L"]
    rate: Annotated[Floats, "L", np.inf]  # clicks / displays; infinite before the first display
    order: Annotated[Ints, "L", range]  # items by rate
    random: Annotated[Ints, "L", range]  # a permutation to draw random lists from
    epsilon: float


@kernel
def rank_greedy(state, rng, ranking):
    if rng.random() < state.epsilon:
        show_any(state.random, rng, ranking)
    else:
        rank_by_index(state.rate, state.order, rng, len(ranking))
        show(state.order, ranking)


@kernel
def update_greedy(state, ranking, clicks):
    for k in range(len(ranking)):
        item = ranking[k]
        state.clicks[item] += clicks[k]
        state.displays[item] += 1
        state.rate[item] = state.clicks[item] / state.displays[item]


class EpsilonGreedy(CompiledAgent):
    """EpsilonGreedy: show a random list with probability ε, otherwise the items by clicks per
    display, items never shown first.

    Idea:
        EpsilonGreedy treats each item as an arm of a bandit whose reward is a click. It counts the
        clicks and the displays of each item over all positions together. In most sessions it shows
        the K items with the highest rates of clicks per display, and items never shown come first.
        With probability ε it shows a uniformly random list instead, which lets a good item with few
        early clicks recover. This exploration never stops, and therefore its regret grows linearly,
        by about ε times the regret of random lists. Users look less often at low positions, but
        every display counts the same, so EpsilonGreedy cannot tell an unattractive item from an
        item at a low position.

    Algorithm:
        ::

            S(i) ← 0, the clicks, and N(i) ← 0, the displays, for each item i;
                ε is the share of random lists
            for t = 1, 2, ...:
                draw u uniformly from [0, 1]
                if u < ε:
                    R_t ← K distinct items, uniformly at random
                else:
                    ŵ(i) ← S(i) / N(i), the click rate, for each item i, and ∞ where N(i) = 0
                    R_t ← the K items of largest ŵ, in decreasing order, ties at random
                show R_t and observe the clicks c(1), ..., c(K), each 0 or 1
                for k = 1, ..., K:
                    S(R_t(k)) ← S(R_t(k)) + c(k), with R_t(k) the item at position k
                    N(R_t(k)) ← N(R_t(k)) + 1

    Args:
        n_items: L.
        n_positions: K.
        epsilon: ε in ``[0, 1]``.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: if epsilon is not in ``[0, 1]``.

    ⚠ Ties are broken uniformly at random.

    Source: a baseline: the ε-greedy method of Sutton, Barto, *Reinforcement learning: an
        introduction*, MIT Press 2018, section 2.2, applied to each item.

    Example:
        >>> agent = EpsilonGreedy(4, 2, epsilon=0.0, seed=1)
        >>> ranking = agent.rank(None)
        >>> agent.update(None, ranking, [1, 0], reward=1.0)
    """

    paper = "Sutton and Barto 2018, section 2.2, per item"
    bibtex_keys = ["suttonbarto"]
    state_type = GreedyState
    rank_kernel = rank_greedy
    update_kernel = update_greedy

    def __init__(
        self, n_items: int, n_positions: int, *, epsilon: float = 0.1, seed: Seed = None
    ) -> None:
        epsilon = check_number("epsilon", epsilon, 0, 1)
        super().__init__(n_items, n_positions, seed, epsilon=epsilon)

    def best(self) -> NDArray[np.int64]:
        return self._best_by(rates(self.state.clicks, self.state.displays))
