"""DBGD (Yue and Joachims 2009): dueling bandit gradient descent on a linear score."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

from ..core.checks import check_number
from ..core.kernels import kernel
from ..core.state import Floats, Ints
from ..core.sums import weighted_sum
from .agent import Seed
from .compiled_agent import ContextualAgent
from .shared_kernels import rank_by_draw

NO_TEAM = -1
"""The team of a candidate at the top that both rankers put at the same position."""


class State(NamedTuple):
    weights: Annotated[Floats, "d"]  # w
    direction: Annotated[Floats, "d"]  # u, the direction of the last list
    scores: Annotated[Floats, "2 L"]  # wᵀx of the ranker, (w + δu)ᵀx of its challenger
    orders: Annotated[Ints, "2 L", range]  # the list of each
    places: Annotated[Ints, "2"]  # where each looks for its next candidate
    # who chose the candidate at each position: 0 the ranker, 1 its challenger, or NO_TEAM
    teams: Annotated[Ints, "K", NO_TEAM]
    delta: float  # δ
    gamma: float  # γ


@kernel
def draw_direction(direction, rng):
    """Draw a vector of length 1, uniformly."""
    for j in range(len(direction)):
        direction[j] = rng.standard_normal()
    length = math.sqrt(weighted_sum(direction, direction))
    for j in range(len(direction)):
        direction[j] /= length


@kernel
def is_among(item, ranking, n_shown):
    for k in range(n_shown):  # noqa: SIM110 (numba compiles no generators)
        if ranking[k] == item:
            return True
    return False


@kernel
def interleave(state, rng, ranking):
    """Interleave both lists. Below their common first items, the lists take turns: each chooses its
    best remaining candidate, and a fair coin decides which list goes first in each round of two.
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
    lead = 0  # clicks of the challenger minus those of the ranker
    for k in range(len(ranking)):
        if clicks[k] == 1 and state.teams[k] != NO_TEAM:
            lead += 2 * state.teams[k] - 1
    if lead > 0:
        for j in range(len(state.weights)):
            state.weights[j] += state.gamma * state.direction[j]


class DBGD(ContextualAgent):
    """DBGD: compare a linear ranker with a slightly different one in every session, and step
    towards it if it wins.

    Idea:
        Clicks show more reliably which of two rankings is better than how good a single ranking is.
        DBGD (dueling bandit gradient descent) keeps the weights of a linear score. In every session
        it draws a direction at random, and makes a challenger by a step of the weights in this
        direction. The user sees both rankings interleaved. If the challenger's candidates get more
        clicks, the weights move a little in its direction; on average this follows the gradient of
        the probability to win. It needs no click model. It learns slowly, because with many
        features most random directions carry little information. It is the baseline of online
        learning to rank.

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
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        delta: δ > 0, the step to the challenger.
        gamma: γ > 0, the step of the weights after a win. Only γ/δ matters, because w starts at 0
            and lists do not depend on the scale of w. So the scale of features does not matter.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a step that is not positive.

    Source: Yue, Joachims, *Interactively optimizing information retrieval systems as a dueling
        bandits problem*, ICML 2009, Algorithm 1.

    Deviations from the paper:
        1. ⚠ The paper takes any comparison of two rankers. Here it is one session with a list made
           by team draft (Radlinski, Kurup, Joachims, *How does clickthrough data reflect retrieval
           quality?*, CIKM 2008), usual in later experiments. Clicks on what both lists have in
           common at the top count for neither, and a tie changes nothing.
        2. The weights are not projected to a bounded set.
        3. ⚠ δ = 1 and γ = 0.01 are usual in later experiments. Candidates with equal scores are in
           random order, drawn anew for each list.

    Example:
        >>> features = [[0.1], [0.2], [0.3], [0.4], [0.5]]
        >>> DBGD(5, 2, n_features=1, seed=0).rank({"features": features}).shape
        (2,)
    """

    paper = "Yue and Joachims 2009, Algorithm 1"
    bibtex_keys = ["dbgd"]
    state_type, rank_kernel, update_kernel = State, rank, update
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
