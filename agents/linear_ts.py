"""Thompson sampling by features for cascades and for the position-based model: CascadeLinTS and PBMLinTS.

Both draw one θ from a normal posterior for all candidates of a session, and rank by ``xᵀθ``. The ridge regression is that of
`clickgym.agents.linear`; letters as there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.kernels import kernel
from .agent import ANY_LIST, ContextualAgent
from .hyperparameters import above, at_least, hyperparameter, one_of
from .kernels import FEEDBACK, count_session
from .linear import ALL_POSITIONS, LEAST_RIDGE, LinearState, rank_by_posterior, regression, update_ridge
from .position_based import check_examination
from .search_space import Range

SUB_GAUSSIAN = 0.5  # R, of a click that is 0 or 1


@kernel
def rank_by_sample(state, rng, features, ranking):  # type: ignore[no-untyped-def]
    """Show the candidates of largest ``xᵀθ``, the k-th on the position with the k-th largest weight."""
    n_positions, scale = len(ranking), state.exploration
    if scale < 0.0:  # -λσ; t is this display
        t = state.t[0] + 1
        deviation = 3.0 * SUB_GAUSSIAN * math.sqrt(len(state.theta) * math.log(t + 1.0))  # v_t
        scale *= -deviation * math.sqrt(n_positions)
    rank_by_posterior(LinearState(*state[:-1], scale), rng, features, ranking)
    for k in range(n_positions):
        place, weight = 0, state.weights[k, 0]
        for other in range(n_positions):
            place += state.weights[other, 0] > weight or (state.weights[other, 0] == weight and other < k)
        ranking[k] = state.order[place]


class _Sampling(ContextualAgent):
    """Base class of the two agents: the regression ``A = λI + Σ w² x xᵀ``, ``b = Σ w c x``, and the draw of θ."""

    learns_from = ANY_LIST
    state_type = LinearState
    rank_kernel = rank_by_sample
    update_kernel = update_ridge
    count_kernel = count_session


class CascadeLinTS(_Sampling):
    """CascadeLinTS: linear Thompson sampling for the cascade model, with samples down to the last (or first) click.

    Idea:
        In the cascade model a user reads from the top and leaves at the click, so only the candidates down to the click were
        examined. CascadeLinTS keeps a Bayesian linear regression of clicks on features, in which only examined candidates are
        samples. In every session it draws one weight vector θ from the posterior, and shows the candidates with the largest
        ``xᵀθ``, where x are their features. Unlike `LinearTS` it does not take candidates as rejected that nobody examined.
        With ``inflation`` it is LinTS-Cascade, whose posterior has the same mean but is wider, explores more, and has a regret
        bound in the paper. It is misled if users leave without a click before the end of the list, or if attraction is not
        linear in the features.

    Algorithm:
        ::

            d: the number of features;  σ: sigma;  I: the identity matrix
            M = I,  B = 0        (the posterior of θ has the precision M)
            for session t = 1, 2, …:
                observe the features x_a of the L candidates
                θ̄ = σ⁻² M⁻¹ B, the mean of the posterior
                if inflation λ is given (LinTS-Cascade):
                    v_t = 3R sqrt(d log(t + 1)),  R = 1/2
                    draw one θ from N(θ̄, (λ v_t √K)² M⁻¹)
                otherwise (CascadeLinTS):
                    draw one θ from N(θ̄, M⁻¹)
                show the K candidates with the largest x_aᵀθ, the largest on top; ties at random
                observe the clicks c_1 … c_K
                e = the position of the last click (or first, as feedback says); K without a click
                for k = 1 … e, with x the features of the candidate shown there:
                    M += σ⁻² x xᵀ
                    B += c_k x

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        sigma: σ ≥ 0.001, the standard deviation of a click that the posterior assumes.
        inflation: λ > 0 of LinTS-Cascade, 0.01 to 1 is sensible; None is CascadeLinTS.
        feedback: as in `CascadeUCB1`.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a sigma below 0.001, an inflation that is not positive, or an unknown feedback rule.

    Source: Zong, Ni, Sung, Ke, Wen, Kveton, *Cascading bandits for large-scale recommendation problems*, UAI 2016,
    CascadeLinTS; Zhong, Cheung, Tan, *Thompson sampling algorithms for cascading bandits*, JMLR 2021, LinTS-Cascade.

    Deviations from the paper:
        1. ⚠ R = 1/2, the sub-Gaussian constant of a click that is 0 or 1; code of others has 1/4.
        2. ⚠ `sigma` scales the posterior of LinTS-Cascade, too, which the paper has with σ = 1.
        3. Of several clicks `feedback` says what was examined; in the cascade model there is one.
        4. ⚠ Scores closer than 1e-10 are ordered at random.

    Example:
        >>> CascadeLinTS(5, 2, n_features=1, seed=0).rank({"features": [[0.1], [0.2], [0.3], [0.4], [0.5]]}).shape
        (2,)
    """

    paper = "Zong et al. 2016, CascadeLinTS; Zhong et al. 2021, LinTS-Cascade"
    click_models = "CM, with linear attraction"

    sigma: float = hyperparameter(default=1.0, check=at_least(math.sqrt(LEAST_RIDGE)), search=Range(0.01, 5.0, log=True))
    inflation: float | None = hyperparameter(default=None, check=above(0))
    feedback: str = hyperparameter(default="last_click", check=one_of(FEEDBACK), search=FEEDBACK)

    def _first_values(self) -> dict[str, Any]:
        # A = σ²M: then A⁻¹b is the mean, and σ A^{-1/2} = M^{-1/2}.
        sigma, inflation = self.hyperparameters["sigma"], self.hyperparameters["inflation"]
        exploration = sigma if inflation is None else -inflation * sigma
        feedback = FEEDBACK.index(self.hyperparameters["feedback"])
        weights = np.ones((self.n_positions, self.n_positions))
        return regression(self.n_features, weights, feedback, sigma**2, exploration)


class PBMLinTS(_Sampling):
    """PBMLinTS: linear Thompson sampling for the position-based model with known examination probabilities.

    Idea:
        In the position-based model users examine position k with a fixed probability κ_k, which PBMLinTS is given. It keeps a
        Bayesian linear regression, which explains the click at position k by κ_k times a linear function of the candidate's
        features. In every session it draws one weight vector θ from the posterior of this regression. It gives the positions
        with the largest κ_k to the candidates with the largest ``xᵀθ``, where x are their features. The factor κ_k removes
        position bias from the estimate, and the draws explore less and less as the posterior narrows. It is misled if κ is
        wrong, if examination depends on clicks, or if attraction is not linear in the features.

    Algorithm:
        ::

            κ_k: the given examination probability of position k
            A = I,  b = 0        (I: the identity matrix, with a row for each feature)
            k_1 … k_K = the positions by decreasing κ; of equal κ the upper position comes first
            for session t = 1, 2, …:
                observe the features x_a of the L candidates
                draw one θ from N(A⁻¹b, scale² A⁻¹)
                for j = 1 … K:
                    show the candidate with the j-th largest x_aᵀθ at k_j; ties at random
                observe the clicks c_1 … c_K
                for k = 1 … K, with x the features of the candidate shown there:
                    A += κ_k² x xᵀ
                    b += κ_k c_k x

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        examination: ``(K,)`` κ, the known examination probabilities, in ``(0, 1]``; ``make_agent`` fills them in.
        scale: ≥ 0, the standard deviation of a click that the posterior assumes; 0 explores nothing.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on κ of a wrong shape or outside ``(0, 1]``, or a negative scale.

    Source: Ermis, Ernst, Stein, Zappella, *Learning to rank in the position based model with bandit feedback*, CIKM 2020,
    LinTS-PBMRank.

    Deviations from the paper:
        1. ⚠ Of the paper the abstract was at hand: the statistics are those of `PBMLinUCB` with λ = 1, least squares of c on
           κx.
        2. ⚠ Scores closer than 1e-10 are ordered at random; of positions with equal κ the upper one has the larger score.

    Example:
        >>> agent = PBMLinTS(3, 2, n_features=1, examination=[0.5, 1.0], scale=0.0, seed=0)
        >>> agent.update({"features": [[0.1], [0.5], [0.9]]}, [2, 1], [1, 1])
        >>> agent.rank({"features": [[0.1], [0.5], [0.9]]})
        array([1, 2])
    """

    paper = "Ermis et al. 2020, LinTS-PBMRank"
    click_models = "PBM, with linear attraction"

    examination: ArrayLike = hyperparameter(check=check_examination, sizes=("n_positions",), told="examination")
    scale: float = hyperparameter(default=1.0, check=at_least(0), search=Range(0.01, 5.0, log=True))

    def _first_values(self) -> dict[str, Any]:
        weights = np.tile(self.hyperparameters["examination"][:, None], self.n_positions)
        return regression(self.n_features, weights, ALL_POSITIONS, 1.0, self.hyperparameters["scale"])
