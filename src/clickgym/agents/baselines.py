"""Baselines: three agents that do not learn (Fixed, Oracle and Random), and EpsilonGreedy, the
simplest agent that learns.
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
from .common.ranking import rank_by_index, show, show_any
from .compiled_agent import CompiledAgent, rates


class FixedState(NamedTuple):
    items: Annotated[Ints, "K"]


class ListState(NamedTuple):
    items: Annotated[Ints, "L", range]


@kernel
def rank_fixed(state, rng, ranking):
    show(state.items, ranking)


@kernel
def learn_nothing(state, ranking, clicks):
    pass


class Fixed(CompiledAgent):
    """Fixed: an agent that shows the production list in every session (called *Baseline* in Li et
    al. 2019).

    Idea:
        Fixed represents a system that does not learn online, such as a search engine with a fixed
        production ranking. It keeps only this list: the initial ranking of the instance, or the
        list that you pass. It shows the list in every session and ignores all clicks, so misleading
        clicks cannot harm it. A comparison with Fixed shows after how many sessions another agent's
        learning has paid for its exploration. Its regret grows by the same amount in every session,
        and is 0 only if the production list is optimal.

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
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        ranking: the list to show, with at least K distinct items; items after the first K are
            ignored. ``make_agent`` fills in the instance's production list.
        seed: unused; every agent accepts this argument.

    Raises:
        ValueError: ``ranking`` has fewer than K items, repeats an item or contains an unknown item.

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
    rank_kernel = rank_fixed
    update_kernel = learn_nothing

    def __init__(
        self, n_items: int, n_positions: int, *, ranking: ArrayLike, seed: Seed = None
    ) -> None:
        n_positions = check_positions(n_positions, check_count("n_items", n_items))
        if not isinstance(ranking, list | tuple):
            ranking = np.atleast_1d(as_array("ranking", ranking))
        super().__init__(
            n_items,
            n_positions,
            seed,
            ranking=check_ranking(ranking[:n_positions], n_items, n_positions),
        )

    def best(self) -> NDArray[np.int64]:
        return self.state.items[: self.n_positions].copy()

    def first_values(self) -> dict[str, Any]:
        return {"items": self.hyperparameters["ranking"].copy()}


class Oracle(Fixed):
    """Oracle: an agent that shows the best list in every session, for tests and plots.
    ``make_agent`` fills in the best list.

    Idea:
        Oracle receives the best list before the first session and shows this list in every session.
        The environment computes the list from the true parameters of its click model. Oracle learns
        nothing from clicks, and its regret is 0 as long as users do not change. Use it to check an
        environment, and to plot the best result that any agent can reach. If users change, Oracle
        still shows the list that was best in the first session, and its regret grows. No real
        system knows the best list.

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
        n_items, n_positions, ranking, seed: the same as for `Fixed`.

    Source: a baseline.

    Example:
        >>> from clickgym.agents import Oracle
        >>> Oracle(3, 2, ranking=[2, 0]).rank()
        array([2, 0])
    """

    paper = "the optimal list"
    bibtex_keys = []
    requires = {"ranking": "optimal_ranking"}


@kernel
def rank_random(state, rng, ranking):
    show_any(state.items, rng, ranking)


class Random(CompiledAgent):
    """Random: an agent that shows a uniformly random list in every session.

    Idea:
        Random assumes nothing about users and shows a list drawn uniformly from all lists of K
        distinct items. It keeps no statistics and learns nothing from clicks. Each item appears at
        each position equally often, so a click log of Random has no bias toward a production list.
        Many tables in this documentation give another agent's regret as a percentage of the regret
        of Random. Use Random to collect data, and as the lower end of a comparison. Its regret
        grows linearly with the number of sessions, and it should never serve real users.

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
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        seed: the seed of the agent's own random generator.

    Source: a baseline.

    Example:
        >>> from clickgym.agents import Random
        >>> agent = Random(4, 2, seed=0)
        >>> set(agent.rank().tolist()) <= {0, 1, 2, 3}
        True
    """

    paper = "uniform exploration"
    state_type = ListState
    rank_kernel = rank_random
    update_kernel = learn_nothing

    def __init__(self, n_items: int, n_positions: int, *, seed: Seed = None) -> None:
        super().__init__(n_items, n_positions, seed)


class GreedyState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    displays: Annotated[Ints, "L"]
    rate: Annotated[Floats, "L", np.inf]  # clicks per display; infinite before the first display
    order: Annotated[Ints, "L", range]  # items, sorted by decreasing rate
    random: Annotated[Ints, "L", range]  # the permutation from which random lists are drawn
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
    """EpsilonGreedy: an agent that shows a random list with probability ε, and otherwise the items
    with the most clicks per display.

    Idea:
        EpsilonGreedy treats each item as an arm of a bandit whose reward is a click. It counts the
        clicks and the displays of each item over all positions together. In most sessions it shows
        the K items with the most clicks per display; items that were never shown come first. With
        probability ε it shows a uniformly random list instead, which lets a good item with few
        early clicks recover. This exploration never stops, so the regret of EpsilonGreedy grows
        linearly, by about ε times the regret of random lists. Users look less often at low
        positions, but every display counts the same, so EpsilonGreedy cannot tell an unattractive
        item from an item at a low position.

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
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        epsilon: the probability ε of a random list, in ``[0, 1]``.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``epsilon`` is not in ``[0, 1]``.

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
