"""DBGD (Yue and Joachims 2009) and MGD (Schuth et al. 2016): a linear ranker that moves towards rankers that beat it.

In every session the present ranker and variations of it order the candidates. One list is made of all these orders, and each
click counts for the ranker that placed the candidate.

Letters: L candidates in a session, K positions, d features, n rankers beside the present one, which is ranker 0.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import Choices
from ..core.kernels import inner, kernel
from ..core.state import Flags, Floats, Ints
from .agent import ITS_DISPLAYS, ContextualAgent
from .hyperparameters import above, between, count, hyperparameter, one_of
from .kernels import shuffle_front
from .linear import dot, show_largest
from .search_space import Range
from .streams import draw_direction

LEAVING = Choices(("team", "probabilistic"))
WIN = 1e-12  # what rounding may make of equal probabilities to win and to lose


class State(NamedTuple):
    weights: Annotated[Floats, "d"]  # w
    rate: Floats  # (1,) the learning rate now
    # Of the display.
    drawn: Annotated[Ints, "1"]  # the number from which its directions are drawn
    credit: Annotated[Floats, "K n+1"]  # how likely a click on each position is each ranker's
    directions: Annotated[Floats, "n d"]  # u
    present: Annotated[Ints, "1", -1]  # from which number they are
    stream: Annotated[NDArray[np.uint64], "1"]  # working memory
    base: Annotated[Floats, "L"]  # scores of ranker 0
    scores: Annotated[Floats, "L"]  # of one ranker
    order: Annotated[Ints, "L", range]  # working memory
    lists: Ints  # (n + 1, K or L) each ranker's order, as far as it is needed
    share: Annotated[Floats, "n+1 L"]  # each ranker's weight of each candidate, in proportion
    left: Annotated[Flags, "L", True]  # candidates that have no position yet
    turns: Annotated[Ints, "n+1", range]  # the rankers, in the order of a round
    chance: Annotated[Floats, "2K+1"]  # of each difference of clicks
    gain: Annotated[Floats, "d"]  # the mean direction of the winners
    weight_of_rank: Floats  # (L,) in proportion
    is_team: bool
    unit: float
    decay: float


# -------------------------------------------------------------------------------------------------------- a list of many


@inner
def draw_directions(state):  # type: ignore[no-untyped-def]
    """Draw the directions of the display, unless they are present."""
    if state.present[0] == state.drawn[0]:
        return
    state.stream[0] = np.uint64(state.drawn[0])
    for r in range(len(state.directions)):
        draw_direction(state.stream, state.directions[r])
    state.present[0] = state.drawn[0]


@inner
def sort_by_rankers(state, rng, features):  # type: ignore[no-untyped-def]
    n_items = len(features)
    for a in range(n_items):
        state.base[a] = dot(state.weights, features[a])
    for r in range(len(state.lists)):
        for a in range(n_items):
            state.scores[a] = state.base[a]
            if r > 0:
                state.scores[a] += state.unit * dot(state.directions[r - 1], features[a])
        show_largest(state.scores, state.order, rng, state.lists[r])


@inner
def is_common(state, k):  # type: ignore[no-untyped-def]
    """Whether all rankers have the same candidate on a position."""
    common = True
    for r in range(1, len(state.lists)):
        common &= state.lists[r, k] == state.lists[0, k]
    return common


@inner
def draft(state, rng, ranking):  # type: ignore[no-untyped-def]
    """Team draft: in each round every ranker, in random order, places its best candidate of those that are left."""
    n_positions, n_rankers, k = len(ranking), len(state.lists), 0
    while k < n_positions and is_common(state, k):
        ranking[k] = state.lists[0, k]
        state.left[ranking[k]] = False
        k += 1
    turn = n_rankers
    while k < n_positions:
        if turn == n_rankers:
            for r in range(n_rankers):
                state.turns[r] = r
            shuffle_front(rng, state.turns, 0, n_rankers, n_rankers)
            turn = 0
        r, place = state.turns[turn], 0
        while not state.left[state.lists[r, place]]:
            place += 1
        ranking[k] = state.lists[r, place]
        state.left[ranking[k]] = False
        state.credit[k, r] = 1.0
        k += 1
        turn += 1


@inner
def share_left(state, r):  # type: ignore[no-untyped-def]
    total = 0.0
    for a in range(len(state.left)):
        if state.left[a]:
            total += state.share[r, a]
    return total


@inner
def multileave(state, rng, ranking):  # type: ignore[no-untyped-def]
    """Probabilistic multileaving: each position draws a ranker, which draws among the candidates left by their ranks."""
    n_items, n_rankers = len(state.left), len(state.lists)
    for r in range(n_rankers):
        for place in range(n_items):
            state.share[r, state.lists[r, place]] = state.weight_of_rank[place]
    for k in range(len(ranking)):
        r = int(rng.random() * n_rankers)
        threshold, chosen = rng.random() * share_left(state, r), -1
        for a in range(n_items):
            if state.left[a]:
                if chosen < 0 or threshold >= 0.0:
                    chosen = a
                threshold -= state.share[r, a]
        ranking[k] = chosen
        every = 0.0
        for r in range(n_rankers):
            state.credit[k, r] = state.share[r, chosen] / share_left(state, r)
            every += state.credit[k, r]
        for r in range(n_rankers):
            state.credit[k, r] /= every
        state.left[chosen] = False


@kernel
def rank(state, rng, features, ranking):  # type: ignore[no-untyped-def]
    state.drawn[0] = int(rng.random() * 2.0**53)
    draw_directions(state)
    sort_by_rankers(state, rng, features)
    state.left[:] = True
    state.credit[:] = 0.0
    if state.is_team:
        draft(state, rng, ranking)
    else:
        multileave(state, rng, ranking)


# ------------------------------------------------------------------------------------------------------------ the winners


@inner
def advantage(state, clicks, r):  # type: ignore[no-untyped-def]
    """``P(N_r > N_0) - P(N_r < N_0)``, N the numbers of clicks that are each ranker's."""
    middle, n_clicks = len(clicks), 0
    state.chance[:] = 0.0
    state.chance[middle] = 1.0
    for k in range(len(clicks)):
        if clicks[k] != 1:
            continue
        n_clicks += 1
        up, down, below = state.credit[k, r], state.credit[k, 0], 0.0
        for i in range(middle - n_clicks, middle + n_clicks + 1):
            here, above = state.chance[i], state.chance[i + 1] if i < middle + n_clicks else 0.0
            state.chance[i] = here * (1.0 - up - down) + below * up + above * down
            below = here
    result = 0.0
    for i in range(1, n_clicks + 1):
        result += state.chance[middle + i] - state.chance[middle - i]
    return result


@kernel
def update(state, features, ranking, clicks):  # type: ignore[no-untyped-def]
    n_winners, d = 0, len(state.weights)
    state.gain[:] = 0.0
    for r in range(1, len(state.lists)):
        if advantage(state, clicks, r) > WIN:
            if n_winners == 0:
                draw_directions(state)
            n_winners += 1
            for j in range(d):
                state.gain[j] += state.directions[r - 1, j]
    if n_winners == 0:
        return
    for j in range(d):
        state.weights[j] += state.rate[0] * state.unit * (state.gain[j] / n_winners)
    state.rate[0] *= state.decay


class _DuelingAgent(ContextualAgent):
    """Base class of both agents: their common arguments, and the state."""

    stands: ClassVar = {"late clicks": "its rule"}
    judged_documents = True
    state_type = State
    rank_kernel = rank
    update_kernel = update
    weights = "weights"
    learns_from = ITS_DISPLAYS
    remembered = ("drawn", "credit")

    learning_rate: float = hyperparameter(default=0.01, check=above(0), search=Range(3e-4, 1.0, log=True))
    decay: float = hyperparameter(default=1.0, check=between(0, 1, closed=True))
    unit: float = hyperparameter(default=1.0, check=above(0), search=Range(0.03, 30.0, log=True))
    leaving: str = hyperparameter(default="team", check=one_of(LEAVING), search=LEAVING)
    tau: float = hyperparameter(default=3.0, check=between(0, 50, closed=True), search=Range(0.5, 10.0, log=True))

    def _n_candidates(self) -> int:
        """The number n of rankers beside the present one."""
        return 1

    def _state_sizes(self) -> dict[str, int]:
        return super()._state_sizes() | {"n": self._n_candidates()}

    def _first_values(self) -> dict[str, Any]:
        n, k, hyperparameters = self.n_items, self.n_positions, self.hyperparameters
        is_team = hyperparameters["leaving"] == "team"
        return {
            "rate": np.array([hyperparameters["learning_rate"]]),
            "lists": np.zeros((self._n_candidates() + 1, k if is_team else n), np.int64),
            "weight_of_rank": (k / np.arange(1.0, n + 1)) ** hyperparameters["tau"],
            "is_team": is_team,
        }


class DBGD(_DuelingAgent):
    """DBGD, dueling bandit gradient descent: moves a linear ranker towards a random variation of it that gets more clicks.

    Idea:
        The numbers of clicks on two lists hardly tell which ranker is better, but clicks on one list that both rankers made do.
        DBGD (dueling bandit gradient descent) keeps one linear ranker, and in every session tries a second one, a step away in
        a random direction. It makes one list from the orders of both rankers, and each click counts for the ranker that placed
        the candidate. If the second ranker wins, the weights move a small step towards it, and on average these steps follow
        the gradient of quality. It needs neither a click model nor examination probabilities, because both rankers share the
        positions fairly. With many features a random direction rarely points the right way, so it learns slowly, and its
        constant step keeps it moving around the best ranker.

    Algorithm:
        ::

            w = 0, the weights of the features
            for session t = 1, 2, …:
                draw u uniformly from the unit sphere
                ranker 0 sorts the candidates by wᵀx, ranker 1 by (w + δu)ᵀx        (x: features;  δ: unit)
                leaving="team":
                    as long as both agree from the top on, candidates belong to nobody
                    then in rounds each ranker, in random order, places and owns its best one left
                leaving="probabilistic":
                    for each position: draw a ranker, then a candidate left with p ∝ (its rank there)^−tau
                    a click there belongs to each ranker in proportion to its own p
                observe the clicks;  N_0, N_1 = the clicks that belong to each ranker
                if P(N_1 > N_0) > P(N_1 < N_0):        (team: simply N_1 > N_0)
                    w += η δ u;  η, the learning rate, is multiplied by decay

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        learning_rate: η > 0.
        decay: in ``(0, 1]``, the factor of the learning rate after each change of w.
        unit: δ > 0, the distance of the other ranker.
        leaving: how the list is made. ``"team"``, team draft: as long as both orders agree from the top on, clicks count for
            nobody. Then in rounds each ranker, in random order, places its best candidate that is left, and a click there
            counts for it. ``"probabilistic"``: for each position a ranker is drawn, and it draws a candidate of those left
            with probability in proportion to ``rank^-tau``. A click counts for each ranker in proportion to its probability
            of this candidate, and the probability that a ranker has more clicks is computed exactly.
        tau: in ``(0, 50]``; how strongly probabilistic multileaving prefers candidates that a ranker ranks high.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a learning rate, decay, unit or tau out of its range, or an unknown way to make lists.

    Source: Yue, Joachims, *Interactively optimizing information retrieval systems as a dueling bandits problem*, ICML 2009,
    Algorithm 1; the lists as for `MGD`.

    Deviations from the paper:
        1. The paper's comparison of two rankers is any; lists are those of multileaving, of two rankers.
        2. ⚠ Who wins in probabilistic multileaving is computed, not estimated by 10,000 samples, as in the code that the
           authors of multileaving released: there equal rankers win by chance. A win is an advantage of more than 1e-12.
        3. ⚠ Scores closer than 1e-10 are ordered at random, by each ranker anew.
        4. w is not projected onto a ball.

    Example:
        >>> DBGD(5, 2, n_features=1, seed=0).rank({"features": [[0.1], [0.2], [0.3], [0.4], [0.5]]}).shape
        (2,)
    """

    paper = "Yue and Joachims 2009, Algorithm 1"


class MGD(_DuelingAgent):
    """MGD, multileave gradient descent: `DBGD` with many variations of the ranker in one list.

    Idea:
        `DBGD` tries one random direction in each session, and most of these directions lead nowhere. MGD (multileave gradient
        descent) keeps one linear ranker, and in every session tries n rankers, each a step away in a random direction. All
        rankers share one list, and each click counts for the ranker that placed the candidate, or in shares for those that rank
        it high. The weights move by the mean direction of the rankers that win against the present one, and this mean cancels
        part of the noise. One session compares n directions, and the paper finds that MGD learns faster than `DBGD`. However, K
        positions and few clicks must serve all rankers, a team draft with more rankers than positions leaves some out, and time
        grows with n.

    Algorithm:
        ::

            w = 0, the weights of the features
            for session t = 1, 2, …:
                draw u_1 … u_n uniformly from the unit sphere
                ranker 0 sorts the candidates by wᵀx, ranker r by (w + δu_r)ᵀx        (x: features;  δ: unit)
                leaving="team":
                    as long as all agree from the top on, candidates belong to nobody
                    then in rounds each ranker, in random order, places and owns its best one left
                leaving="probabilistic":
                    for each position: draw a ranker, then a candidate left with p ∝ (its rank there)^−tau
                    a click there belongs to each ranker in proportion to its own p
                observe the clicks;  N_0 … N_n = the clicks that belong to each ranker
                W = the rankers r with P(N_r > N_0) > P(N_r < N_0)
                if W is not empty:
                    w += η δ mean_{r∈W} u_r;  η, the learning rate, is multiplied by decay

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        learning_rate: η > 0.
        decay: in ``(0, 1]``, the factor of the learning rate after each change of w.
        unit: δ > 0, the distance of the other rankers.
        leaving: ``"team"`` or ``"probabilistic"``, as for `DBGD`.
        n_candidates: how many other rankers; None takes 9 with team draft, 49 with probabilistic multileaving.
        tau: in ``(0, 50]``; how strongly probabilistic multileaving prefers candidates that a ranker ranks high.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a learning rate, decay, unit, number or tau out of its range, or an unknown way to make lists.

    Source: Schuth, Oosterhuis, Whiteson, de Rijke, *Multileave gradient descent for fast online learning to rank*, WSDM 2016,
    Algorithm 1, with the mean of the winners; Schuth et al., *Probabilistic multileave for online retrieval evaluation*, SIGIR
    2015.

    Deviations from the paper:
        1. ⚠ Ties, and who wins in probabilistic multileaving, as in `DBGD`.

    Time: a list takes ``O(n L d)`` for n rankers, and ``O(n L K)`` more by team draft, ``O(n L²)`` by probabilistic
    multileaving, for which every ranker orders all candidates.

    Example:
        >>> MGD(5, 2, n_features=1, seed=0).rank({"features": [[0.1], [0.2], [0.3], [0.4], [0.5]]}).shape
        (2,)
    """

    paper = "Schuth et al. 2016, Algorithm 1"

    n_candidates: int | None = hyperparameter(default=None, check=count(), search=(None, 2, 4, 9, 19, 49))

    def _n_candidates(self) -> int:
        n = self.hyperparameters["n_candidates"]
        return (9 if self.hyperparameters["leaving"] == "team" else 49) if n is None else n
