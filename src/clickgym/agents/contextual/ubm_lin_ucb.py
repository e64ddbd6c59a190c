"""UBM-LinUCB (He et al. 2020): a LinUCB agent for the user browsing model."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import browsing_probabilities, check_count
from ..agent import Seed
from .ridge_agent import RidgeAgent, warn_of_rises


class UBMLinUCB(RidgeAgent):
    """UBM-LinUCB: a LinUCB agent that weights samples by the examination probabilities of the user
    browsing model.

    Idea:
        Users do not examine every position, so a candidate without a click may be unattractive or
        may not have been examined. In the user browsing model the probability of examination
        ``w_{k,k'}`` depends on the position k and on the position k' of the last click above it.
        UBM-LinUCB requires these probabilities, and its ridge regression models the click at
        position k as ``w_{k,k'}`` times a linear function of the candidate's features. It shows the
        candidates with the largest upper confidence bounds, the largest on top. A missing click at
        a rarely examined position changes the estimates little. Because candidates share features,
        each click also carries information about candidates that were never shown. UBM-LinUCB fails
        if the probabilities are wrong or if attraction is not linear in the features. With its
        default confidence bound, it explores for a very long time.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = w_{k,k'}, the given examination probability of position k, with k' the position of
                the last click above k; 0 if there is none
            φ' = Σ_k w_{k,k−1}²
            e = K

    Args:
        n_items: the number of candidates in each session, L.
        n_positions: the number of positions in a list, K.
        n_features: the number of features of each candidate, d, which ``make_agent`` fills in.
        examination: ``(K, K)`` the known examination probabilities w, in the form of
            `UserBrowsingModel`. Row k belongs to position k, counted from 0. Column 0 holds the
            probabilities if there was no click above, and column j those if the last click above
            was at the j-th position, counted from 1. ``make_agent`` fills in these probabilities.
        alpha: a constant to use in place of the confidence radius ``α_t``, at least 0. By default,
            ``α_t = sqrt(d ln(1 + φ'_w t/(dλ)) + 2 ln(tK)) + sqrt(λd)`` with ``φ'_w = Σ_k
            w_{k,k-1}²``, as in the paper's theory; with this radius, the agent explores for a very
            long time.
        ridge: the strength of the regularisation, λ ≥ 1e-6; by default ``max(1, φ'_w)``.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``examination`` has a wrong shape or a number outside ``[0, 1]``, ``alpha`` is
            negative, or ``ridge`` is below 1e-6.

    Source: He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for large-scale
    online mobile recommendation*, RecSys 2020, Algorithm 1.

    Deviations from the paper:
        1. ⚠ The default of λ is ``max(1, φ'_w)``. In the paper, Theorem 3 requires ``λ ≥ φ'_w ≥
           1``, and the experiments use ``φ'_w``.
        2. ⚠ Candidates whose indices differ by less than 1e-10 are ordered at random. At the start,
           all candidates with the same norm are tied.
        3. ⚠ For the reward ``any_click``, sorting candidates by attraction is optimal only if
           ``w_{k,0}`` does not increase with k. The paper assumes so, and the constructor warns
           about other weights. For the reward ``clicks``, sorting by attraction may be suboptimal
           in any UBM, and regret may grow linearly forever.
        4. The formula of α_t is that of Algorithm 1, with the session t in place of the horizon T
           of Theorem 3. The bound β of ``‖θ‖²`` is d, as in the paper's experiments.
        5. The inverse A⁻¹ is updated by rank-one updates, and computed again from A every 100
           sessions.

    Example:
        >>> examination = [[1.0, 0.0], [0.5, 0.8]]
        >>> agent = UBMLinUCB(3, 2, n_features=2, examination=examination, alpha=1.0, seed=0)
        >>> agent.rank({"features": [[0.1, 0.0], [0.6, 0.6], [0.0, 0.5]]})
        array([1, 2])
    """

    paper = "He et al. 2020, Algorithm 1"
    bibtex_keys = ["ubmlinucb"]
    click_models = "UBM, with linear attraction"
    made_for_models = ("UBM",)

    requires = {"examination": "browsing"}

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
        check_count("n_positions", n_positions)
        examination = browsing_probabilities(examination, n_positions)
        warn_of_rises(examination[:, 0])
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
        return self.hyperparameters["examination"].copy()
