"""The dynamic Bayesian network model (DBN): its parameters, its kernels, and the class
`DynamicBayesianModel`.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_number, check_positions, probabilities
from ...core.kernels import kernel
from ..simulation.task import ANY_CLICK, CLICKS, SATISFACTION
from .click_model import ClickModel


class Parameters(NamedTuple):
    attraction: NDArray[np.float64]  # α, (L,)
    satisfaction: NDArray[np.float64]  # s, (L,)
    perseverance: float  # g


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):
    looking, satisfied = 1, -1
    perseverance = parameters.perseverance
    for k in range(len(ranking)):
        attraction = parameters.attraction[ranking[k]]
        examined[k] = looking
        clicks[k] = looking == 1 and uniforms[k] < attraction
        if looking == 1:
            # From 0 to 1, the uniform number stands for: clicked and satisfied, clicked and gave
            # up, clicked and continued, skipped and gave up, skipped and continued.
            if uniforms[k] < attraction:
                satisfied_click = attraction * parameters.satisfaction[ranking[k]]
                if uniforms[k] < satisfied_click:
                    satisfied = k
                gave_up = (attraction - satisfied_click) * (1.0 - perseverance)
                if uniforms[k] < satisfied_click + gave_up:
                    looking = 0
            elif uniforms[k] < attraction + (1.0 - attraction) * (1.0 - perseverance):
                looking = 0
    return satisfied


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):
    looking = 1.0  # χ(R, k) = Π_{i<k} g (1 - α(d_i) s(d_i))
    for k in range(len(ranking)):
        item = ranking[k]
        examination[k] = looking
        clicks[k] = looking * parameters.attraction[item]
        looking *= parameters.perseverance * (
            1.0 - parameters.attraction[item] * parameters.satisfaction[item]
        )


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):
    # The probabilities that position k is examined, and that it is examined without a click above.
    looking, unclicked = 1.0, 1.0
    n_clicks, any_click, satisfied = 0.0, 0.0, 0.0
    for k in range(cutoff):
        attraction = parameters.attraction[ranking[k]]
        satisfied_click = attraction * parameters.satisfaction[ranking[k]]
        n_clicks += looking * attraction
        any_click += unclicked * attraction
        satisfied += looking * satisfied_click
        looking *= parameters.perseverance * (1.0 - satisfied_click)
        unclicked *= parameters.perseverance * (1.0 - attraction)
    if reward == CLICKS:
        return n_clicks
    return any_click if reward == ANY_CLICK else satisfied


@kernel
def weigh(parameters, reward, gain, continuation):
    for item in range(len(gain)):
        satisfied_click = parameters.attraction[item] * parameters.satisfaction[item]
        gain[item] = satisfied_click if reward == SATISFACTION else parameters.attraction[item]
        continues = 1.0 - (parameters.attraction[item] if reward == ANY_CLICK else satisfied_click)
        continuation[item] = parameters.perseverance * continues


class DynamicBayesianModel(ClickModel):
    """Dynamic Bayesian network model (DBN; SDBN if no user gives up): a clicked item may satisfy
    the user, who then leaves.

    The user reads the list from the top and clicks an examined item i with probability α(i). A
    clicked item i satisfies the user with probability s(i), and a satisfied user leaves. A user
    who is not satisfied continues to the next position with probability g and otherwise gives up.
    Attraction and satisfaction are separate parameters: an item may get many clicks but satisfy
    few users. With g = 1, no user gives up; this special case is the simplified model (SDBN).

    Click law:
        ::

            χ(R, k) = Π_{i<k} g (1 - α(d_i) s(d_i))
            P(c_k = 1 | R) = χ(R, k) α(d_k)

    User:
        examine k → click: α(d_k)
        examine k → unsatisfied: 1 - α(d_k)
        click → leave satisfied: s(d_k)
        click → unsatisfied: 1 - s(d_k)
        unsatisfied → examine k + 1: g
        unsatisfied → leave: 1 - g

    Args:
        attraction: ``(L,)`` probabilities α(i) that an examined item is clicked.
        satisfaction: ``(L,)`` probabilities s(i) that a clicked item satisfies the user.
        perseverance: probability g that an unsatisfied user continues, after a click or a skip; by
            default 1, which gives the simplified model (SDBN).
        n_positions: K, the length of a list, at most L.

    Raises:
        ValueError: an argument is invalid; the message names the parameter, the entry and what was
            expected.

    Source:
        Chapelle, Zhang, *A dynamic Bayesian network click model for web search ranking*, WWW 2009.

    Example:
        >>> model = DynamicBayesianModel([0.5, 0.4], [0.8, 0.1], perseverance=0.9, n_positions=2)
        >>> model.examination_probabilities([0, 1])
        array([1.  , 0.54])
    """

    short = "DBN"
    title = "dynamic Bayesian network model"
    behaviour = "a clicked item may satisfy the user, who then leaves"
    paper = "Chapelle and Zhang 2009"
    bibtex_keys = ["dynamicbayesian"]
    default_instance = "yandex-9982"
    shapes: ClassVar = {"attraction": "L", "satisfaction": "L", "perseverance": ""}
    rewards = ("clicks", "any_click", "satisfaction")
    sample_kernel = sample
    marginals_kernel = marginals
    expected_kernel = expected
    scan_kernel = weigh

    def __init__(
        self,
        attraction: ArrayLike,
        satisfaction: ArrayLike,
        perseverance: float = 1.0,
        *,
        n_positions: int,
    ) -> None:
        checked = probabilities("attraction", attraction, (None,))
        self.parameters = Parameters(
            checked,
            probabilities("satisfaction", satisfaction, (len(checked),)),
            check_number("perseverance", perseverance, 0, 1),
        )
        self.n_positions = check_positions(n_positions, self.n_items)

    @property
    def satisfaction(self) -> NDArray[np.float64]:
        """``(L,)`` probability that an item satisfies a user who clicks it."""
        return self.parameters.satisfaction

    @property
    def perseverance(self) -> float:
        """Probability that an unsatisfied user continues to the next position."""
        return self.parameters.perseverance

    def browsing_weights(self) -> NDArray[np.float64] | None:
        """Return the examination probabilities by position and last click, ``(K, K)``, if all items
        have the same parameters; otherwise return None.

        If a position is examined with probability w and not clicked, the next position is examined
        with probability ``g (1 - α) w / (1 - α w)``.
        """
        attraction, satisfaction = self.attraction[0], self.satisfaction[0]
        if (self.attraction != attraction).any() or (self.satisfaction != satisfaction).any():
            return None
        weights = np.zeros((self.n_positions, self.n_positions))
        for last in range(self.n_positions):  # 0 stands for no click above
            weight = 1.0 if last == 0 else (1.0 - satisfaction) * self.perseverance
            for k in range(last, self.n_positions):
                weights[k, last] = weight
                unclicked = 1.0 - attraction * weight
                further = self.perseverance * (1.0 - attraction) * weight
                weight = further / unclicked if unclicked > 0 else 0.0
        return weights

    def best_ranks(self, reward: int, cutoff: int) -> NDArray[np.int64] | None:
        # For any_click, exchanging two neighbours shows that sorting by attraction is optimal.
        return np.arange(cutoff) if reward == ANY_CLICK else None
