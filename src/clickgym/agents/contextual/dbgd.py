"""DBGD (Yue and Joachims 2009), an agent that learns a linear score by dueling bandit gradient
descent.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from ...core.checks import check_number
from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ...core.sums import weighted_sum
from ..agent import Seed
from ..common.ranking import rank_by_draw
from ..compiled_agent import ContextualAgent

NO_TEAM = -1
"""The team of a candidate that both rankers put at the same position at the top of their lists."""


class DBGDState(NamedTuple):
    weights: Annotated[Floats, "d"]  # w, the weights of the features
    direction: Annotated[Floats, "d"]  # u, the direction of the last list
    scores: Annotated[Floats, "2 L"]  # wᵀx of the ranker, (w + δu)ᵀx of its challenger
    orders: Annotated[Ints, "2 L", range]  # the list of each ranker
    places: Annotated[Ints, "2"]  # where each ranker looks for its next candidate
    # the team that chose the candidate at each position: 0 for the ranker, 1 for its challenger, or
    # NO_TEAM
    teams: Annotated[Ints, "K", NO_TEAM]
    delta: float  # δ
    gamma: float  # γ


@kernel
def draw_direction(direction, rng):
    """Draw a direction uniformly: write a random vector of length 1."""
    for j in range(len(direction)):
        direction[j] = rng.standard_normal()
    length = math.sqrt(weighted_sum(direction, direction))
    for j in range(len(direction)):
        direction[j] /= length


@kernel
def is_among(item, ranking, n_shown):
    for k in range(n_shown):  # noqa: SIM110 (numba cannot compile generators)
        if ranking[k] == item:
            return True
    return False


@kernel
def interleave(state, rng, ranking):
    """Interleave the lists of the ranker and its challenger by team draft. Below the items that
    both lists share at the top, each ranker in turn picks its best remaining candidate; in each
    round of two picks, a fair coin decides who picks first.
    """
    orders, teams, k = state.orders, state.teams, 0
    while k < len(ranking) and orders[0, k] == orders[1, k]:
        ranking[k], teams[k] = orders[0, k], NO_TEAM
        k += 1
    state.places[:] = k
    team, is_second = 0, False
    while k < len(ranking):
        team = 1 - team if is_second else int(rng.random() * 2)
        while is_among(orders[team, state.places[team]], ranking, k):
            state.places[team] += 1
        ranking[k], teams[k] = orders[team, state.places[team]], team
        is_second = not is_second
        k += 1


@kernel
def rank(state, rng, ranking, features):
    draw_direction(state.direction, rng)
    for item in range(len(features)):
        score = weighted_sum(state.weights, features[item])
        state.scores[0, item] = score
        state.scores[1, item] = score + state.delta * weighted_sum(state.direction, features[item])
    for team in range(2):
        rank_by_draw(state.scores[team], state.orders[team], rng, len(ranking))
    interleave(state, rng, ranking)


@kernel
def update(state, ranking, clicks, features):
    lead = 0  # the challenger's clicks minus the ranker's clicks
    for k in range(len(ranking)):
        if clicks[k] == 1 and state.teams[k] != NO_TEAM:
            lead += 2 * state.teams[k] - 1
    if lead > 0:
        for j in range(len(state.weights)):
            state.weights[j] += state.gamma * state.direction[j]


class DBGD(ContextualAgent):
    """DBGD: an agent that compares its linear ranker with a slightly different challenger in every
    session, and moves towards the challenger if the challenger gets more clicks.

    Idea:
        Clicks show which of two rankings is better more reliably than they show how good a single
        ranking is. DBGD (dueling bandit gradient descent) keeps the weights of a linear score. In
        every session it draws a random direction and creates a challenger, whose weights lie one
        step in this direction. The user sees the two rankings interleaved in one list. If the
        challenger's candidates get more clicks, the weights move a little in its direction; on
        average, this follows the gradient of the probability that a challenger wins. DBGD needs no
        click model. It learns slowly, because with many features most random directions carry
        little information. DBGD is the standard baseline in online learning to rank.

    Algorithm:
        ::

            w = 0, the weights of the features
            for session t = 1, 2, …:
                draw u uniformly from the vectors of length 1
                rank the L candidates x_a by wᵀx_a: the list of the ranker
                rank them by (w + δu)ᵀx_a: the list of the challenger
                show the candidates that both lists have in common at their tops
                until K candidates are shown:
                    a fair coin says whether the ranker or the challenger is first
                    the first shows the best of its candidates that are left, then the other does
                observe the clicks
                if the challenger's candidates have more clicks than the ranker's:
                    w += γu

    Args:
        n_items: the number of candidates in each session, L.
        n_positions: the number of positions in a list, K.
        n_features: the number of features of each candidate, d, which ``make_agent`` fills in.
        delta: the distance δ > 0 between the weights of the ranker and the challenger.
        gamma: the distance γ > 0 by which the weights w move after the challenger wins. Only the
            ratio γ/δ matters, because w starts at 0 and lists do not depend on the scale of w. For
            the same reason, the scale of the features does not matter.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``delta`` or ``gamma`` is not positive.

    Source: Yue, Joachims, *Interactively optimizing information retrieval systems as a dueling
        bandits problem*, ICML 2009, Algorithm 1.

    Deviations from the paper:
        1. ⚠ The paper allows any comparison of two rankers. Here a comparison is one session with a
           list from team-draft interleaving (Radlinski, Kurup, Joachims, *How does clickthrough
           data reflect retrieval quality?*, CIKM 2008), as is usual in later experiments. Clicks on
           the candidates that both lists share at the top count for neither ranker, and after a tie
           the weights stay the same.
        2. The weights are not projected to a bounded set.
        3. ⚠ The defaults δ = 1 and γ = 0.01 are usual in later experiments. Each list orders
           candidates with equal scores at random.

    Example:
        >>> features = [[0.1], [0.2], [0.3], [0.4], [0.5]]
        >>> DBGD(5, 2, n_features=1, seed=0).rank({"features": features}).shape
        (2,)
    """

    paper = "Yue and Joachims 2009, Algorithm 1"
    bibtex_keys = ["dbgd"]
    state_type, rank_kernel, update_kernel = DBGDState, rank, update
    weights = "weights"

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        n_features: int,
        delta: float = 1.0,
        gamma: float = 0.01,
        seed: Seed = None,
    ) -> None:
        super().__init__(
            n_items,
            n_positions,
            n_features,
            seed,
            delta=check_number("delta", delta, above=0),
            gamma=check_number("gamma", gamma, above=0),
        )
