"""The click chain model (CCM): its parameters, its kernels, and the class `ClickChainModel`."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_number, check_positions, probabilities
from ...core.kernels import kernel
from ..simulation.task import CLICKS
from .click_model import ClickModel


class Parameters(NamedTuple):
    attraction: NDArray[np.float64]  # α, (L,)
    continue_after_skip: float  # τ1
    continue_after_click: float  # τ2
    continue_after_relevant: float  # τ3


@kernel
def after_click(parameters, attraction):
    """Return the probability that a user who clicked an item continues to the next position."""
    relevant = attraction * parameters.continue_after_relevant
    return (1.0 - attraction) * parameters.continue_after_click + relevant


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):
    looking = 1
    for k in range(len(ranking)):
        attraction = parameters.attraction[ranking[k]]
        examined[k] = looking
        clicks[k] = looking == 1 and uniforms[k] < attraction
        if looking == 1:
            # From 0 to 1, the uniform number stands for: click and continue, click and leave, skip
            # and continue, skip and leave.
            if uniforms[k] < attraction:
                looking = uniforms[k] < attraction * after_click(parameters, attraction)
            else:
                after_skip = (1.0 - attraction) * parameters.continue_after_skip
                looking = uniforms[k] < attraction + after_skip
    return -1


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):
    looking = 1.0
    for k in range(len(ranking)):
        attraction = parameters.attraction[ranking[k]]
        examination[k] = looking
        clicks[k] = looking * attraction
        after_skip = (1.0 - attraction) * parameters.continue_after_skip
        looking *= after_skip + attraction * after_click(parameters, attraction)


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):
    # The probabilities that position k is examined, and that it is examined without a click above.
    looking, unclicked = 1.0, 1.0
    n_clicks, any_click = 0.0, 0.0
    for k in range(cutoff):
        attraction = parameters.attraction[ranking[k]]
        n_clicks += looking * attraction
        any_click += unclicked * attraction
        after_skip = (1.0 - attraction) * parameters.continue_after_skip
        looking *= after_skip + attraction * after_click(parameters, attraction)
        unclicked *= after_skip
    return n_clicks if reward == CLICKS else any_click


@kernel
def weigh(parameters, reward, gain, continuation):
    for item in range(len(gain)):
        attraction = parameters.attraction[item]
        gain[item] = attraction
        continuation[item] = (1.0 - attraction) * parameters.continue_after_skip
        if reward == CLICKS:
            continuation[item] += attraction * after_click(parameters, attraction)


class ClickChainModel(ClickModel):
    """Click chain model (CCM): the relevance of a clicked item determines how likely the user is to
    read on.

    The user reads the list from the top and clicks an examined item i with probability α(i).
    After skipping an item, the user continues to the next position with probability τ1. A clicked
    item is relevant, again with probability α(i) and independently of the click. The user then
    continues with probability τ3 if the item is relevant, and with probability τ2 if it is not. A
    session can therefore have several clicks, and a user may leave without clicking anything.

    Click law:
        ::

            χ(R, k) = Π_{i<k} ((1 - α(d_i)) τ_1 + α(d_i) ((1 - α(d_i)) τ_2 + α(d_i) τ_3))
            P(c_k = 1 | R) = χ(R, k) α(d_k)

    User:
        examine k → click: α(d_k)
        examine k → skip: 1 - α(d_k)
        click → relevant: α(d_k)
        click → not relevant: 1 - α(d_k)
        relevant → examine k + 1: τ_3
        relevant → leave: 1 - τ_3
        not relevant → examine k + 1: τ_2
        not relevant → leave: 1 - τ_2
        skip → examine k + 1: τ_1
        skip → leave: 1 - τ_1

    Args:
        attraction: ``(L,)`` probabilities α(i) that an examined item is clicked.
        continue_after_skip: probability τ_1 that the user continues below an item without a click.
        continue_after_click: probability τ_2 that the user continues below a click on an item that
            is not relevant.
        continue_after_relevant: probability τ_3 that the user continues below a click on a relevant
            item.
        n_positions: K, the length of a list, at most L.

    Raises:
        ValueError: an argument is invalid; the message names the parameter, the entry and what was
            expected.

    Source:
        Guo, Liu, Kannan, Minka, Taylor, Wang, Faloutsos, *Click chain model in web search*, WWW
            2009 (there each α(i) has a posterior; here it is a number).

    Example:
        >>> model = ClickChainModel([0.9, 0.5, 0.4], 1, 0.9, 0.1, n_positions=2)
        >>> model.examination_probabilities([0, 1])
        array([1.   , 0.262])
        >>> model.optimal_ranking()
        array([1, 0])
    """

    short = "CCM"
    title = "click chain model"
    behaviour = "the relevance of a clicked item determines how likely the user is to read on"
    paper = "Guo et al. 2009"
    bibtex_keys = ["clickchain"]
    default_instance = "yandex-9982"
    shapes: ClassVar = {"attraction": "L"} | dict.fromkeys(Parameters._fields[1:], "")
    sample_kernel = sample
    marginals_kernel = marginals
    expected_kernel = expected
    scan_kernel = weigh

    def __init__(
        self,
        attraction: ArrayLike,
        continue_after_skip: float,
        continue_after_click: float,
        continue_after_relevant: float,
        n_positions: int,
    ) -> None:
        self.parameters = Parameters(
            probabilities("attraction", attraction, (None,)),
            check_number("continue_after_skip", continue_after_skip, 0, 1),
            check_number("continue_after_click", continue_after_click, 0, 1),
            check_number("continue_after_relevant", continue_after_relevant, 0, 1),
        )
        self.n_positions = check_positions(n_positions, self.n_items)

    def best_ranks(self, reward: int, cutoff: int) -> NDArray[np.int64] | None:
        # For any_click, only users without a click matter, who continue with (1 - α) τ1. Sorting by
        # attraction is optimal, because α/(1 - (1 - α) τ1), by which items are ordered, grows with
        # α. So does the value of an item at any position, α + (1 - α) τ1 V, because V is at most 1.
        return None if reward == CLICKS else np.arange(cutoff)
