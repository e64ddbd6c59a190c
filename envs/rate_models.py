"""The click-through rate models: the random, the rank-based and the document-based one, baselines that are fitted to logs."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import check_count, check_positions, probabilities, probability
from .click_model import ClickModel
from .position_based import expected, marginals, sample


class Parameters(NamedTuple):
    attraction: NDArray[np.float64]  # (L,) as the kernels of the position-based model read them
    examination: NDArray[np.float64]  # (K,)
    rate: NDArray[np.float64] | float  # ρ, as it was given


def _equal(value: float, size: int) -> NDArray[np.float64]:
    return probabilities("rate", np.full(size, value), (size,))  # read-only


class _ClickThroughModel(ClickModel, abstract=True):
    """A position-based model in which only items or only positions differ, or neither."""

    environments = False
    rewards = ("clicks", "any_click")
    sample_kernel = sample
    marginals_kernel = marginals
    expected_kernel = expected

    @property
    def n_items(self) -> int:
        return len(self.parameters.attraction)

    @property
    def rate(self) -> NDArray[np.float64] | float:
        """The click-through rate, as it was given."""
        return self.parameters.rate

    def _optimal(self, reward: int, cutoff: int) -> NDArray[np.int64]:
        # Where only positions differ, all lists are equal.
        return np.argsort(-self.parameters.attraction, kind="stable")[:cutoff]


class RandomClickModel(_ClickThroughModel):
    """Random click model (RCM): every shown item is clicked with the same probability, at every position.

    It is the weakest baseline in tables of perplexity. All lists earn the same, so there are no environments of this model.

    Args:
        rate: ρ, the probability of a click.
        n_items: L.
        n_positions: K, at most L.

    Raises:
        ValueError: naming the parameter and what was expected.

    Source:
        Chuklin, Markov, de Rijke, *Click models for web search*, Morgan & Claypool 2015, section 3.1.

    Example:
        >>> RandomClickModel(0.1, n_items=3, n_positions=2).click_probabilities([2, 0])
        array([0.1, 0.1])
    """

    short = "RCM"
    title = "random click model"
    shapes: ClassVar = {"rate": ""}

    def __init__(self, rate: float, n_items: int, n_positions: int) -> None:
        rate, n_items = probability("rate", rate), check_count("n_items", n_items)
        self.n_positions = check_positions(n_positions, n_items)
        self.parameters = Parameters(_equal(rate, n_items), _equal(1.0, self.n_positions), rate)


class RankClickThroughModel(_ClickThroughModel):
    """Rank-based click-through rate model (RCTR): the probability of a click depends on the position, not on the item.

    All lists earn the same, so there are no environments of this model.

    Args:
        rate: ``(K,)`` ρ(k), the probability of a click at each position.
        n_items: L, at least K.

    Raises:
        ValueError: naming the parameter, the entry and what was expected.

    Source:
        Chuklin, Markov, de Rijke, *Click models for web search*, Morgan & Claypool 2015, section 3.2.

    Example:
        >>> RankClickThroughModel([0.4, 0.1], n_items=3).click_probabilities([2, 0])
        array([0.4, 0.1])
    """

    short = "RCTR"
    title = "rank-based click-through rate model"
    shapes: ClassVar = {"rate": "K"}

    def __init__(self, rate: ArrayLike, n_items: int) -> None:
        rates, n_items = probabilities("rate", rate, (None,)), check_count("n_items", n_items)
        self.n_positions = check_positions(len(rates), n_items)
        self.parameters = Parameters(_equal(1.0, n_items), rates, rates)


class DocumentClickThroughModel(_ClickThroughModel):
    """Document-based click-through rate model (DCTR): the probability of a click depends on the item, not on its position.

    The best list consists of the items with the highest rates. The model has no position bias, so an agent could learn nothing
    from it that a position-based model does not teach. There are therefore no environments of this model.

    Args:
        rate: ``(L,)`` ρ(i), the probability that an item that is shown is clicked.
        n_positions: K, at most L.

    Raises:
        ValueError: naming the parameter, the entry and what was expected.

    Source:
        Craswell, Zoeter, Taylor, Ramsey, *An experimental comparison of click position-bias models*, WSDM 2008, the baseline
            hypothesis.
        Chuklin, Markov, de Rijke, *Click models for web search*, Morgan & Claypool 2015, section 3.2.

    Example:
        >>> model = DocumentClickThroughModel([0.1, 0.4, 0.3], n_positions=2)
        >>> model.optimal_ranking()
        array([1, 2])
    """

    short = "DCTR"
    title = "document-based click-through rate model"
    shapes: ClassVar = {"rate": "L"}

    def __init__(self, rate: ArrayLike, n_positions: int) -> None:
        rates = probabilities("rate", rate, (None,))
        self.n_positions = check_positions(n_positions, len(rates))
        self.parameters = Parameters(rates, _equal(1.0, self.n_positions), rates)
