"""PDGD (Oosterhuis and de Rijke 2018), an agent that learns a linear score by pairwise
differentiable gradient descent.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.checks import check_number
from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ...core.sums import weighted_sum
from ..agent import Seed
from ..common.ranking import rank_by_draw, show
from ..compiled_agent import ContextualAgent

MAX_EXPONENT = 700.0
"""The largest exponent x for which the agent computes e^x. For larger x, e^x could exceed the range
of floats.
"""


class PDGDState(NamedTuple):
    weights: Annotated[Floats, "d"]  # w, the weights of the features
    scores: Annotated[Floats, "L"]  # f = wᵀx
    draws: Annotated[Floats, "L"]  # each score plus a draw from the Gumbel distribution
    order: Annotated[Ints, "L", range]  # working memory
    # for each place, the log of the sum of e^f over the candidates that are not shown above
    log_rest: Annotated[Floats, "K+1"]
    # the factor of each shown candidate's features in the gradient
    share: Annotated[Floats, "K"]
    learning_rate: float  # η


@kernel
def log_add(a, b):
    """Return log(e^a + e^b) without overflow."""
    if a == -np.inf:
        return b
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@kernel
def measure_rests(state, ranking):
    n_positions = len(ranking)
    for item in range(len(state.scores)):
        state.draws[item] = state.scores[item]
    for k in range(n_positions):
        state.draws[ranking[k]] = -np.inf
    rest = -np.inf
    for item in range(len(state.scores)):
        if state.draws[item] > -np.inf:
            rest = log_add(rest, state.draws[item])
    state.log_rest[n_positions] = rest
    for k in range(n_positions - 1, -1, -1):
        rest = log_add(rest, state.scores[ranking[k]])
        state.log_rest[k] = rest


@kernel
def preference(state, ranking, place, other):
    """Return the weight ω of a pair of places: ``P(R') / (P(R) + P(R'))``, where R is the list that
    was shown and R' the list with the candidates at both places exchanged.

    P(R) and P(R') differ only in the sums over the remaining candidates between the two places:
    after the exchange, the upper candidate still remains there, and the lower one does not.
    """
    upper, lower = min(place, other), max(place, other)
    log_ratio = 0.0  # log(P(R') / P(R))
    rest = log_add(state.log_rest[lower + 1], state.scores[ranking[upper]])
    for k in range(lower, upper, -1):
        if k < lower:
            rest = log_add(rest, state.scores[ranking[k]])
        log_ratio += state.log_rest[k] - rest
    return 1.0 / (1.0 + math.exp(min(-log_ratio, MAX_EXPONENT)))


@kernel
def rank(state, rng, ranking, features):
    for item in range(len(features)):
        state.scores[item] = weighted_sum(state.weights, features[item])
        state.draws[item] = state.scores[item] - math.log(-math.log(1.0 - rng.random()))
    rank_by_draw(state.draws, state.order, rng, len(ranking))
    show(state.order, ranking)


@kernel
def update(state, ranking, clicks, features):
    n_positions = len(ranking)
    n_considered = 0  # the places down to one below the last click
    for k in range(n_positions):
        if clicks[k]:
            n_considered = min(k + 2, n_positions)
    if n_considered == 0:
        return
    measure_rests(state, ranking)
    state.share[:] = 0.0
    for k in range(n_considered):
        for other in range(n_considered):
            if clicks[k] == 1 and clicks[other] == 0:
                decay = math.exp(-abs(state.scores[ranking[k]] - state.scores[ranking[other]]))
                step = preference(state, ranking, k, other) * decay / (1.0 + decay) ** 2
                state.share[k] += step
                state.share[other] -= step
    for k in range(n_considered):
        for j in range(len(state.weights)):
            state.weights[j] += state.learning_rate * state.share[k] * features[ranking[k], j]


class PDGD(ContextualAgent):
    """PDGD: an agent that draws lists at random by a linear score, and learns the score from pairs
    of a clicked and an unclicked candidate.

    Idea:
        Users click candidates at high positions more often, partly because they look at these
        positions more often. PDGD (pairwise differentiable gradient descent) learns a linear score,
        and draws every list at random from a Plackett-Luce distribution: candidates with higher
        scores are more likely to be on top. The candidates down to one position below the last
        click count as examined, and each clicked candidate among them counts as preferred to each
        unclicked one. For each such pair, PDGD changes the feature weights a little, so that the
        score of the preferred candidate rises relative to the other score. Each step is weighted by
        the probability of the list with both candidates exchanged, divided by the sum of the
        probabilities of both lists. Preferences that the positions alone can explain therefore
        count little. PDGD needs no click model, but its lists stay random, and no bound on its
        regret is known.

    Algorithm:
        ::

            w = 0, the weights of the features
            for session t = 1, 2, …:
                f(a) = wᵀx_a for each of the L candidates (documents) a, with features x_a
                draw the list R from the top: the next candidate is a with probability
                    e^{f(a)} / Σ_b e^{f(b)}, b over those left
                observe the clicks; without any, learn nothing
                consider the positions down to one below the last click
                ∇ = 0
                for each clicked candidate i and each unclicked candidate j on these positions:
                    R' = R with i and j exchanged
                    ω = P(R') / (P(R) + P(R')), P the probability of drawing these K candidates in
                        this order
                    ∇ += ω e^{f(i)} e^{f(j)} / (e^{f(i)} + e^{f(j)})² (x_i − x_j)
                w += η ∇        (η: the learning rate)

    Args:
        n_items: the number of candidates in each session, L.
        n_positions: the number of positions in a list, K.
        n_features: the number of features of each candidate, d, which ``make_agent`` fills in.
        learning_rate: the constant learning rate η > 0, for features on the scale that the agent
            sees. The default, 0.1, comes from documents with longer features. In clickgym's
            simulated worlds, features have a length of at most 1; where a linear function of them
            ranks the items correctly, 10 loses far fewer clicks.
        eta: the learning rate η > 0 for features on the scale of a file, to use in place of
            ``learning_rate``. If a file holds the features x, the agent sees x/c. With
            ``learning_rate = eta c²``, its scores and steps are the same as those of an agent that
            sees x.
        feature_scale: the factor c between the features in the file and those that the agent sees;
            ``make_agent`` fills in this factor.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``learning_rate``, ``eta`` or ``feature_scale`` is not positive.

    Source: Oosterhuis, de Rijke, *Differentiable unbiased online learning to rank*, CIKM 2018,
        Algorithm 1.

    Deviations from the paper:
        1. ⚠ The probability of a list is the probability that a random ranking of all L candidates
           begins with its K candidates in this order.
        2. The list shows the candidates with the largest ``f + g``, where g is drawn from the
           Gumbel distribution. The distribution of lists is the same as in the paper.

    Example:
        >>> features = [[0.1], [0.2], [0.3], [0.4], [0.5]]
        >>> PDGD(5, 2, n_features=1, seed=0).rank({"features": features}).shape
        (2,)
    """

    paper = "Oosterhuis and de Rijke 2018, Algorithm 1"
    default_advice = (
        "PDGD's default learning rate comes from documents with longer features: in simulated "
        "worlds that are linear in the features, learning_rate=10 loses far fewer clicks; for "
        "judged queries, pass eta=0.1."
    )
    bibtex_keys = ["pdgd"]
    state_type, rank_kernel, update_kernel = PDGDState, rank, update
    weights = "weights"

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        n_features: int,
        learning_rate: float = 0.1,
        eta: float | None = None,
        feature_scale: float = 1.0,
        seed: Seed = None,
    ) -> None:
        super().__init__(
            n_items,
            n_positions,
            n_features,
            seed,
            learning_rate=check_number("learning_rate", learning_rate, above=0),
            eta=None if eta is None else check_number("eta", eta, above=0),
            feature_scale=check_number("feature_scale", feature_scale, above=0),
        )

    def first_values(self) -> dict[str, Any]:
        eta, scale = self.hyperparameters["eta"], self.hyperparameters["feature_scale"]
        return {} if eta is None else {"learning_rate": eta * scale**2}
