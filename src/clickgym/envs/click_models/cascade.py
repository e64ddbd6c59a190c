"""The cascade model (CM): its parameters, its kernels, and the class `CascadeModel`."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_positions, probabilities
from ...core.kernels import kernel
from .click_model import ClickModel


class Parameters(NamedTuple):
    attraction: NDArray[np.float64]  # α, (L,)


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):
    looking = 1
    for k in range(len(ranking)):
        examined[k] = looking
        clicks[k] = looking == 1 and uniforms[k] < parameters.attraction[ranking[k]]
        looking -= clicks[k]
    return -1


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):
    looking = 1.0  # χ(R, k) = Π_{i<k} (1 - α(d_i))
    for k in range(len(ranking)):
        examination[k] = looking
        clicks[k] = looking * parameters.attraction[ranking[k]]
        looking *= 1.0 - parameters.attraction[ranking[k]]


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):
    # There is at most one click, so the rewards clicks and any_click are equal.
    no_click = 1.0
    for k in range(cutoff):
        no_click *= 1.0 - parameters.attraction[ranking[k]]
    return 1.0 - no_click


class CascadeModel(ClickModel):
    """Cascade model (CM): the user reads the list from the top, clicks the first attractive item
    and stops.

    A session has at most one click. An attractive item hides the items below it, because a user
    who clicks it never looks further down. A user who finds no attractive item reads the whole
    list. The expected number of clicks depends only on which items are shown, not on their order.

    Click law:
        ::

            χ(R, k) = Π_{i<k} (1 - α(d_i))
            P(c_k = 1 | R) = χ(R, k) α(d_k)

    User:
        examine k → click: α(d_k)
        examine k → examine k + 1: 1 - α(d_k)
        click → leave: 1

    Args:
        attraction: ``(L,)`` probabilities α(i) that an examined item is clicked.
        n_positions: K, the length of a list, at most L.

    Raises:
        ValueError: an argument is invalid; the message names the parameter, the entry and what was
            expected.

    Source:
        Craswell, Zoeter, Taylor, Ramsey, *An experimental comparison of click position-bias
        models*, WSDM 2008. Zoghi, Tunys, Ghavamzadeh, Kveton, Szepesvári, Wen, *Online learning to
        rank in stochastic click models*, ICML 2017, section 2.2.

    Example:
        >>> model = CascadeModel([0.5, 0.2, 0.1], n_positions=2)
        >>> model.click_probabilities([0, 1])
        array([0.5, 0.1])
        >>> model.optimal_ranking()
        array([0, 1])
    """

    short = "CM"
    title = "cascade model"
    behaviour = "the user reads the list from the top, clicks the first attractive item and stops"
    paper = "Craswell et al. 2008"
    bibtex_keys = ["positionbias", "batchrank"]
    default_instance = "yandex-9982"
    shapes: ClassVar = {"attraction": "L"}
    sample_kernel = sample
    marginals_kernel = marginals
    expected_kernel = expected

    def __init__(self, attraction: ArrayLike, n_positions: int) -> None:
        self.parameters = Parameters(probabilities("attraction", attraction, (None,)))
        self.n_positions = check_positions(n_positions, self.n_items)

    def browsing_weights(self) -> NDArray[np.float64]:
        """Return the examination probabilities ``(K, K)``: 1 until the first click, and 0 after the
        click.
        """
        return np.tile(np.arange(self.n_positions) == 0, (self.n_positions, 1)).astype(np.float64)

    def best_ranks(self, reward: int, cutoff: int) -> NDArray[np.int64]:
        return np.arange(cutoff)
