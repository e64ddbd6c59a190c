"""PBM-LinUCB (He et al. 2020): a LinUCB agent for the position-based model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import check_examination
from ..agent import Seed
from .ridge_agent import RidgeAgent, warn_of_rises


class PBMLinUCB(RidgeAgent):
    """PBM-LinUCB: a LinUCB agent that weights samples by the examination probabilities of the
    position-based model.

    Idea:
        In the position-based model, users examine position k with a fixed probability κ_k,
        regardless of the clicks above. PBM-LinUCB requires these probabilities, and its ridge
        regression models the click at position k as κ_k times a linear function of the candidate's
        features. It shows the candidates with the largest upper confidence bounds, the largest on
        top. A sample from a rarely examined position gets a small weight, and no number is divided
        by κ_k, so the estimates stay stable. PBM-LinUCB fails if κ is wrong, or if examination
        depends on clicks (use `UBMLinUCB` for such users). It also fails if κ_k increases with k,
        because the best candidate then does not belong on top.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = κ_k, the given examination probability of position k
            φ' = Σ_k κ_k²
            e = K

    Args:
        n_items: the number of candidates in each session, L.
        n_positions: the number of positions in a list, K.
        n_features: the number of features of each candidate, d, which ``make_agent`` fills in.
        examination: ``(K,)`` the probability κ that users examine each position, in ``(0, 1]``;
            ``make_agent`` fills in these probabilities.
        alpha: a constant to use in place of the confidence radius ``α_t``, at least 0. By default,
            ``α_t`` follows the formula of `UBMLinUCB`, with ``φ' = Σ κ²``.
        ridge: the strength of the regularisation, λ ≥ 1e-6; by default ``max(1, φ')``.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``examination`` has a wrong shape or a number outside ``(0, 1]``, ``alpha`` is
            negative, or ``ridge`` is below 1e-6.

    Source: the paper of `UBMLinUCB`, with weights that depend only on the position.

    Deviations from the paper:
        1. The paper compares with PBM-UCB, an agent without features.
        2. ⚠ Ties between candidates are broken at random, and the constructor warns if κ increases
           with the position, as in `UBMLinUCB`.

    Example:
        >>> agent = PBMLinUCB(3, 2, n_features=1, examination=[1.0, 0.5], alpha=1.0, seed=0)
        >>> agent.rank({"features": [[0.1], [0.5], [0.9]]})
        array([2, 1])
    """

    paper = "He et al. 2020, Algorithm 1, with PBM weights"
    bibtex_keys = ["ubmlinucb"]
    click_models = "PBM, with linear attraction"
    made_for_models = ("PBM",)

    requires = {"examination": "examination"}

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        n_features: int,
        examination: ArrayLike,
        ridge: float | None = None,
        alpha: float | None = None,
        seed: Seed = None,
    ) -> None:
        examination = check_examination(examination, n_positions)
        warn_of_rises(examination)
        super().__init__(
            n_items,
            n_positions,
            n_features,
            seed,
            ridge=ridge,
            alpha=alpha,
            examination=examination,
        )

    def _weights(self) -> NDArray[np.float64]:
        return np.tile(self.hyperparameters["examination"][:, None], self.n_positions)
