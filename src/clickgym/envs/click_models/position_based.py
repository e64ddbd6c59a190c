"""The position-based model (PBM): its parameters, kernels, and the class `PositionBasedModel`."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_positions, probabilities
from ...core.kernels import kernel
from ..simulation.task import CLICKS
from .click_model import ClickModel, ranks_of


class Parameters(NamedTuple):
    attraction: NDArray[np.float64]  # α, (L,)
    examination: NDArray[np.float64]  # χ, (K,)


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):
    for k in range(len(ranking)):
        # One number decides both: below χ_k the position is examined, below χ_k α also clicked.
        examined[k] = uniforms[k] < parameters.examination[k]
        clicks[k] = uniforms[k] < parameters.examination[k] * parameters.attraction[ranking[k]]
    return -1


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):
    for k in range(len(ranking)):
        examination[k] = parameters.examination[k]
        clicks[k] = parameters.examination[k] * parameters.attraction[ranking[k]]


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):
    n_clicks, no_click = 0.0, 1.0
    for k in range(cutoff):
        click = parameters.examination[k] * parameters.attraction[ranking[k]]
        n_clicks += click
        no_click *= 1.0 - click
    return n_clicks if reward == CLICKS else 1.0 - no_click


class PositionBasedModel(ClickModel):
    """Position-based model (PBM): users examine each position with a fixed probability, which
    depends neither on the list nor on other clicks.

    An examined item i is clicked with probability α(i). Users usually look at the top positions
    most often, so an attractive item at a low position gets few clicks; this effect is called
    position bias. Users do not stop after a click, so a session can have several clicks, and a
    click at one position gives no information about clicks at other positions. The best list has
    the most attractive items at the positions that are examined most often.

    Click law:
        ::

            P(c_k = 1 | R) = χ_k α(d_k)

    User:
        position k → examine: χ_k
        position k → position k + 1: 1 - χ_k
        examine → click: α(d_k)
        examine → position k + 1: 1 - α(d_k)
        click → position k + 1: 1

    Args:
        attraction: ``(L,)`` probabilities α(i) that an examined item is clicked.
        examination: ``(K,)`` probabilities χ_k that a position is examined; they need not decrease.

    Raises:
        ValueError: an argument is invalid; the message names the parameter, the entry and what was
            expected.

    Source:
        Richardson, Dominowska, Ragno, *Predicting clicks: estimating the click-through rate for new
        ads*, WWW 2007. Lagrée, Vernade, Cappé, *Multiple-play bandits in the position-based model*,
        NIPS 2016, section 2 (κ for χ, θ for α).

    Example:
        >>> model = PositionBasedModel(attraction=[0.5, 0.2, 0.1], examination=[1.0, 0.5])
        >>> model.expected_reward([0, 1])
        0.6
        >>> model.optimal_ranking()
        array([0, 1])
    """

    short = "PBM"
    title = "position-based model"
    behaviour = (
        "users examine each position with a fixed probability, which depends neither on the list "
        "nor on other clicks"
    )
    paper = "Richardson et al. 2007"
    bibtex_keys = ["predictingclicks", "pbmbandits"]
    default_instance = "yandex-9982"
    shapes: ClassVar = {"attraction": "L", "examination": "K"}
    sample_kernel = sample
    marginals_kernel = marginals
    expected_kernel = expected

    def __init__(self, attraction: ArrayLike, examination: ArrayLike) -> None:
        self.parameters = Parameters(
            probabilities("attraction", attraction, (None,)),
            probabilities("examination", examination, (None,)),
        )
        self.n_positions = check_positions(len(self.parameters.examination), self.n_items)

    @property
    def examination(self) -> NDArray[np.float64]:
        """``(K,)`` examination probability of each position."""
        return self.parameters.examination

    def position_weights(self) -> NDArray[np.float64]:
        """Return the examination probability of each position, ``(K,)``."""
        return self.examination

    def browsing_weights(self) -> NDArray[np.float64]:
        """Return the examination probabilities ``(K, K)``, which are the same for every position of
        the last click.
        """
        return np.tril(np.tile(self.examination[:, None], self.n_positions))

    def best_ranks(self, reward: int, cutoff: int) -> NDArray[np.int64]:
        # The rearrangement inequality proves this for clicks, Σ χα. For any_click, the reward grows
        # with Σ -log(1 - χα), which is supermodular in χ and α.
        return ranks_of(self.parameters.examination[:cutoff])
