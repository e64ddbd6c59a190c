"""The dependent click model (DCM): its parameters, its kernels, and the class
`DependentClickModel`.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_positions, probabilities
from ...core.kernels import kernel
from ..simulation.task import ANY_CLICK, CLICKS, SATISFACTION
from ..spaces import argsort_descending
from .click_model import ClickModel, ranks_of


class Parameters(NamedTuple):
    attraction: NDArray[np.float64]  # α, (L,)
    termination: NDArray[np.float64]  # v, (K,)


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):
    looking, satisfied = 1, -1
    for k in range(len(ranking)):
        # From 0 to 1, the uniform number stands for: click and leave (up to α v), click and
        # continue (up to α), skip.
        attraction = parameters.attraction[ranking[k]]
        examined[k] = looking
        clicks[k] = looking == 1 and uniforms[k] < attraction
        if looking == 1 and uniforms[k] < attraction * parameters.termination[k]:
            looking, satisfied = 0, k
    return satisfied


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):
    looking = 1.0  # χ(R, k) = Π_{i<k} (1 - v_i α(d_i))
    for k in range(len(ranking)):
        attraction = parameters.attraction[ranking[k]]
        examination[k] = looking
        clicks[k] = looking * attraction
        looking *= 1.0 - parameters.termination[k] * attraction


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):
    looking, n_clicks, no_click = 1.0, 0.0, 1.0
    for k in range(cutoff):
        attraction = parameters.attraction[ranking[k]]
        n_clicks += looking * attraction
        no_click *= 1.0 - attraction
        looking *= 1.0 - parameters.termination[k] * attraction
    if reward == CLICKS:
        return n_clicks
    return 1.0 - (no_click if reward == ANY_CLICK else looking)


class DependentClickModel(ClickModel):
    """Dependent click model (DCM): the user reads the list from the top, and may read on after a
    click.

    The user clicks an examined item i with probability α(i). After a click at position k, the user
    leaves satisfied with probability v_k; in all other cases, the user continues to the next
    position. A session can therefore have several clicks. Whether a click satisfies the user
    depends on the position of the click, not on the item.

    ⚠ Li et al. 2019 (BubbleRank) print ``χ(R, k) = Π (1 - v_i) α(d_i)``. According to this formula,
    no user would look below an unattractive item. This class implements the model of the original
    papers.

    Click law:
        ::

            χ(R, k) = Π_{i<k} (1 - v_i α(d_i))
            P(c_k = 1 | R) = χ(R, k) α(d_k)

    User:
        examine k → click: α(d_k)
        examine k → examine k + 1: 1 - α(d_k)
        click → leave satisfied: v_k
        click → examine k + 1: 1 - v_k

    Args:
        attraction: ``(L,)`` probabilities α(i) that an examined item is clicked.
        termination: ``(K,)`` probabilities v_k that the user leaves after a click at position k.

    Raises:
        ValueError: an argument is invalid; the message names the parameter, the entry and what was
            expected.

    Source:
        Guo, Liu, Wang, *Efficient multiple-click models in web search*, WSDM 2009. Katariya,
        Kveton, Szepesvári, Wen, *DCM bandits: learning to rank with multiple clicks*, ICML 2016,
        section 2.

    Example:
        >>> model = DependentClickModel(attraction=[0.5, 0.2], termination=[0.5, 0.5])
        >>> model.examination_probabilities([0, 1])
        array([1.  , 0.75])
        >>> round(model.expected_reward([0, 1], reward="satisfaction"), 12)
        0.325
    """

    short = "DCM"
    title = "dependent click model"
    behaviour = "the user reads the list from the top, and may read on after a click"
    paper = "Guo et al. 2009"
    bibtex_keys = ["dependentclick", "dcmbandits"]
    default_instance = "yandex-9982"
    shapes: ClassVar = {"attraction": "L", "termination": "K"}
    rewards = ("clicks", "any_click", "satisfaction")
    sample_kernel = sample
    marginals_kernel = marginals
    expected_kernel = expected

    def __init__(self, attraction: ArrayLike, termination: ArrayLike) -> None:
        self.parameters = Parameters(
            probabilities("attraction", attraction, (None,)),
            probabilities("termination", termination, (None,)),
        )
        self.n_positions = check_positions(len(self.termination), self.n_items)

    @property
    def termination(self) -> NDArray[np.float64]:
        """``(K,)`` probability that the user leaves after a click, for each position."""
        return self.parameters.termination

    def knowledge(self, source: str, production: NDArray[np.int64] | None = None) -> Any:
        """Return what an agent may know (see `UserModel.knowledge`). The source
        ``"termination_order"`` is the positions by decreasing termination probability.
        """
        if source == "termination_order":
            return argsort_descending(self.termination)
        return super().knowledge(source, production)

    def best_ranks(self, reward: int, cutoff: int) -> NDArray[np.int64] | None:
        # For clicks, no sorting rule is optimal, because an attractive item at a position with a
        # high v ends sessions early. For any_click, the top items are optimal in any order. For
        # satisfaction, the reward grows with Σ -log(1 - v α), which is supermodular in v and α.
        if reward == CLICKS:
            return None
        return ranks_of(self.termination[:cutoff] if reward == SATISFACTION else np.ones(cutoff))
