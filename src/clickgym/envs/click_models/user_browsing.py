"""The user browsing model (UBM): its parameters, its kernels, and the class `UserBrowsingModel`."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import browsing_probabilities, check_positions, probabilities
from ...core.kernels import kernel
from ..simulation.task import CLICKS
from .click_model import ClickModel, ranks_of


class Parameters(NamedTuple):
    attraction: NDArray[np.float64]  # α, (L,)
    # γ, (K, K), with a row for each position. Column 0 is for no click yet, and column j is for a
    # last click at the j-th position.
    examination: NDArray[np.float64]


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):
    last = 0  # the position k' of the last click, counted from 1; 0 before the first click
    for k in range(len(ranking)):
        examination = parameters.examination[k, last]
        examined[k] = uniforms[k] < examination
        clicks[k] = uniforms[k] < examination * parameters.attraction[ranking[k]]
        if clicks[k]:
            last = k + 1
    return -1


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):
    # In this forward recursion, scratch[j] is the probability that the last click above k was at j.
    scratch[0] = 1.0
    for k in range(len(ranking)):
        attraction = parameters.attraction[ranking[k]]
        examination[k] = 0.0
        for j in range(k + 1):
            examined = scratch[j] * parameters.examination[k, j]
            examination[k] += examined
            scratch[j] -= examined * attraction
        clicks[k] = examination[k] * attraction
        scratch[k + 1] = clicks[k]


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):
    n_clicks = 0.0
    scratch[0] = 1.0
    for k in range(cutoff):
        attraction = parameters.attraction[ranking[k]]
        click = 0.0
        for j in range(k + 1):
            clicked = scratch[j] * parameters.examination[k, j] * attraction
            click += clicked
            scratch[j] -= clicked
        n_clicks += click
        scratch[k + 1] = click
    return n_clicks if reward == CLICKS else 1.0 - scratch[0]


class UserBrowsingModel(ClickModel):
    """User browsing model (UBM): the probability that users examine a position depends on this
    position and on the position of the last click above it.

    Users pass all positions from top to bottom. They examine position k with probability γ_{k,k'},
    where k' is the position of their last click above it. For example, they may often look at the
    position right below a click, and rarely at positions far below it. Users click an examined
    item i with probability α(i), so a session can have several clicks, and each click changes how
    likely users are to examine the positions below it. If γ does not depend on k', the model is a
    PBM.

    Click law:
        ::

            P(c_k = 1 | R, k') = γ_{k,k'} α(d_k)

        Here k' is the position of the last click above position k, and 0 if there is none.

    User:
        position k, last click k' → examine: γ_{k,k'}
        position k, last click k' → position k + 1, last click k': 1 - γ_{k,k'}
        examine → click: α(d_k)
        examine → position k + 1, last click k': 1 - α(d_k)
        click → position k + 1, last click k: 1

    Args:
        attraction: ``(L,)`` probabilities α(i) that an examined item is clicked.
        examination: ``(K, K)`` probabilities γ_{k,k'}. The row is the position, counted from 0.
            Column 0 is for no click yet, and column ``j`` is for a last click at the j-th position,
            counted from 1. Row ``k`` uses the columns ``0..k``; the other entries are ignored and
            stored as 0.

    Raises:
        ValueError: an argument is invalid; the message names the parameter, the entry and what was
            expected.

    Source:
        Dupret, Piwowarski, *A user browsing model to predict search engine click data from past
        observations*, SIGIR 2008. He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing
        bandits for large-scale online mobile recommendation*, RecSys 2020, section 3.

    Example:
        >>> model = UserBrowsingModel(attraction=[0.5, 0.4], examination=[[1.0, 0.0], [0.5, 0.9]])
        >>> model.click_probabilities([0, 1])
        array([0.5 , 0.28])
    """

    short = "UBM"
    title = "user browsing model"
    behaviour = (
        "the probability that users examine a position depends on this position and on the "
        "position of the last click above it"
    )
    paper = "Dupret and Piwowarski 2008"
    bibtex_keys = ["userbrowsing", "ubmlinucb"]
    default_instance = "yandex-9982"
    shapes: ClassVar = {"attraction": "L", "examination": "KK"}
    sample_kernel = sample
    marginals_kernel = marginals
    expected_kernel = expected

    def __init__(self, attraction: ArrayLike, examination: ArrayLike) -> None:
        self.parameters = Parameters(
            probabilities("attraction", attraction, (None,)),
            browsing_probabilities(examination),
        )
        self.n_positions = check_positions(len(self.examination), self.n_items)

    @property
    def examination(self) -> NDArray[np.float64]:
        """``(K, K)`` examination probability by position and last click."""
        return self.parameters.examination

    def browsing_weights(self) -> NDArray[np.float64]:
        """Return the examination probabilities by position and last click, ``(K, K)``."""
        return self.examination

    def best_ranks(self, reward: int, cutoff: int) -> NDArray[np.int64] | None:
        # For clicks, no sorting rule is optimal, because a click changes the examination below it.
        return None if reward == CLICKS else ranks_of(self.examination[:cutoff, 0])

    def _examination_bounds(self) -> NDArray[np.float64]:
        return self.examination.max(axis=1)
