"""The trust-bias model (TPBM): its parameters, its kernels, and the class `TrustBiasModel`."""

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
    trust_relevant: NDArray[np.float64]  # ε⁺, (K,)
    trust_irrelevant: NDArray[np.float64]  # ε⁻, (K,)


@kernel
def click_probability(parameters, k, item):
    relevant = parameters.trust_relevant[k] * parameters.attraction[item]
    irrelevant = parameters.trust_irrelevant[k] * (1.0 - parameters.attraction[item])
    return parameters.examination[k] * (relevant + irrelevant)


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):
    for k in range(len(ranking)):
        examined[k] = uniforms[k] < parameters.examination[k]
        clicks[k] = uniforms[k] < click_probability(parameters, k, ranking[k])
    return -1


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):
    for k in range(len(ranking)):
        examination[k] = parameters.examination[k]
        clicks[k] = click_probability(parameters, k, ranking[k])


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):
    n_clicks, no_click = 0.0, 1.0
    for k in range(cutoff):
        click = click_probability(parameters, k, ranking[k])
        n_clicks += click
        no_click *= 1.0 - click
    return n_clicks if reward == CLICKS else 1.0 - no_click


class TrustBiasModel(ClickModel):
    """Trust-bias model (TPBM, an affine PBM): users also click irrelevant items, more often at
    higher positions.

    Position k is examined with probability χ_k, which depends neither on the list nor on other
    clicks. The item i at this position is relevant with probability α(i). If the user examines the
    item, the probability of a click is ε⁺_k for a relevant item and ε⁻_k for an irrelevant item.
    Because users trust the first results, ε⁻_k is usually largest at the top. With ε⁺ = 1 and
    ε⁻ = 0, the model is a PBM.

    Click law:
        ::

            P(c_k = 1 | R) = χ_k (ε⁺_k α(d_k) + ε⁻_k (1 - α(d_k)))

    User:
        position k → examine: χ_k
        position k → position k + 1: 1 - χ_k
        examine → relevant: α(d_k)
        examine → not relevant: 1 - α(d_k)
        relevant → click: ε⁺_k
        relevant → position k + 1: 1 - ε⁺_k
        not relevant → click: ε⁻_k
        not relevant → position k + 1: 1 - ε⁻_k
        click → position k + 1: 1

    Args:
        attraction: ``(L,)`` probabilities α(i) that an item is relevant.
        examination: ``(K,)`` probabilities χ_k that a position is examined; they need not decrease.
        trust_relevant: ``(K,)`` probabilities ε⁺_k that an examined relevant item is clicked; by
            default, the values that `standard_trust` returns.
        trust_irrelevant: ``(K,)`` probabilities ε⁻_k that an examined irrelevant item is clicked,
            at most ε⁺_k; by default, the values that `standard_trust` returns.

    Raises:
        ValueError: an argument is invalid; the message names the parameter, the entry and what was
            expected.

    Source:
        Agarwal, Wang, Li, Bendersky, Najork, *Addressing trust bias for unbiased learning-to-rank*,
        WWW 2019. Vardasbi, Oosterhuis, de Rijke, *When inverse propensity scoring does not work:
        affine corrections for unbiased learning to rank*, CIKM 2020.

    Example:
        >>> model = TrustBiasModel(attraction=[0.5, 0.2, 0.1], examination=[1.0, 0.6])
        >>> model.click_probabilities([0, 1])
        array([0.815 , 0.2724])
        >>> model.optimal_ranking()
        array([1, 0])
    """

    short = "TPBM"
    title = "trust-bias model"
    behaviour = "users also click irrelevant items, more often at higher positions"
    paper = "Agarwal et al. 2019"
    bibtex_keys = ["trustbias", "affine"]
    default_instance = "yandex-9982"
    shapes: ClassVar = {"attraction": "L"} | dict.fromkeys(Parameters._fields[1:], "K")
    contextual_reward = "clicks"
    sample_kernel = sample
    marginals_kernel = marginals
    expected_kernel = expected

    def __init__(
        self,
        attraction: ArrayLike,
        examination: ArrayLike,
        trust_relevant: ArrayLike | None = None,
        trust_irrelevant: ArrayLike | None = None,
    ) -> None:
        examination = probabilities("examination", examination, (None,))
        standard = standard_trust(len(examination))
        trust_relevant = standard[0] if trust_relevant is None else trust_relevant
        trust_irrelevant = standard[1] if trust_irrelevant is None else trust_irrelevant
        relevant = probabilities("trust_relevant", trust_relevant, examination.shape)
        irrelevant = probabilities("trust_irrelevant", trust_irrelevant, examination.shape)
        for k in np.flatnonzero(irrelevant > relevant):
            least = f"trust_relevant[{k}] = {relevant[k]}"
            raise ValueError(f"trust_irrelevant[{k}] is {irrelevant[k]}; expected at most {least}")
        attraction = probabilities("attraction", attraction, (None,))
        self.parameters = Parameters(attraction, examination, relevant, irrelevant)
        self.n_positions = check_positions(len(examination), self.n_items)

    @property
    def examination(self) -> NDArray[np.float64]:
        """``(K,)`` examination probability of each position."""
        return self.parameters.examination

    def position_weights(self) -> NDArray[np.float64]:
        """Return the examination probability of each position, ``(K,)``. Agents do not learn the
        trust parameters.
        """
        return self.examination

    def best_ranks(self, reward: int, cutoff: int) -> NDArray[np.int64]:
        _, χ, relevant, irrelevant = self.parameters
        weights = χ * (relevant - irrelevant)
        if reward != CLICKS:
            # Position k stays unclicked with probability a_k - α b_k, where a is `unclicked` and b
            # is `weights`. Exchanging two items shows that the more attractive item belongs where
            # b / a is larger. If an a_k is 0, position k is always clicked, and all lists are best.
            unclicked = 1.0 - χ * irrelevant
            weights = np.divide(weights, unclicked, out=np.zeros_like(χ), where=unclicked > 0)
        # For clicks, the reward also has the term Σ χ ε⁻, which does not depend on the list.
        return ranks_of(weights[:cutoff])

    def _click_bounds(self) -> NDArray[np.float64]:
        α, _, relevant, irrelevant = self.parameters
        return (np.outer(α, relevant) + np.outer(1.0 - α, irrelevant)).max(axis=1)


def standard_trust(n_positions: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the trust parameters that published simulations of trust bias use, ε⁺_k = 1 - (min(k,
    20) + 1)/100 and ε⁻_k = 0.65/min(k, 10).

    Args:
        n_positions: K, the number of positions.

    Returns:
        ``(K,)`` ε⁺ and ``(K,)`` ε⁻ for the positions k = 1..K.

    Source: Agarwal, Wang, Li, Bendersky, Najork, *Addressing trust bias for unbiased
    learning-to-rank*, WWW 2019, as in the simulations of Vardasbi, Oosterhuis, de Rijke, *When
    inverse propensity scoring does not work: affine corrections for unbiased learning to rank*,
    CIKM 2020.

    Example:
        >>> standard_trust(2)
        (array([0.98, 0.97]), array([0.65 , 0.325]))
    """
    k = np.arange(1, n_positions + 1)
    return 1.0 - (np.minimum(k, 20) + 1) / 100, 0.65 / np.minimum(k, 10)
