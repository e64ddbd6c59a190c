"""Linear Thompson sampling (Agrawal and Goyal 2013) for lists."""

from __future__ import annotations

from ...core.checks import check_number
from ...core.kernels import kernel
from ...core.sums import weighted_sum
from ..agent import Seed
from .ridge_agent import RidgeAgent, show_largest
from .ridge_regression import cholesky, solve_upper


@kernel
def rank_by_posterior(state, rng, ranking, features):
    # If A = F Fᵀ and z is standard normal, the covariance of F⁻ᵀz is A⁻¹.
    sample = state.vector
    for i in range(len(sample)):
        sample[i] = rng.standard_normal()
    cholesky(state.gram, state.ridge, state.factor)
    solve_upper(state.factor, sample)
    for i in range(len(sample)):
        sample[i] = state.theta[i] + state.exploration * sample[i]
    for a in range(len(features)):
        state.indices[a] = weighted_sum(sample, features[a])
    show_largest(state.indices, state.order, rng, ranking)


class LinearTS(RidgeAgent):
    """LinearTS: an agent for linear Thompson sampling, which draws feature weights from a normal
    posterior and shows the best candidates for these weights.

    Idea:
        LinearTS assumes that users examine the whole list, and that attraction is linear in the
        features of a candidate. It keeps the ridge regression of `C2UCB`, and treats the result as
        a normal posterior of the feature weights. In every session it draws one vector of weights
        from the posterior, and shows the candidates that are best for these weights. As samples
        accumulate, the draws vary less, so the agent explores less and less. With the default
        ``alpha``, it explores far less than a LinUCB agent with the theoretical confidence bound.
        Position bias misleads LinearTS, as it misleads `C2UCB`, because both count every shown
        candidate as examined.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            p_a = θ̃ᵀx_a instead, with one θ̃ in each session drawn from the normal distribution
                N(θ, α² A⁻¹)        (α: alpha)
            w_k = 1
            e = K

    Args:
        n_items: the number of candidates in each session, L.
        n_positions: the number of positions in a list, K.
        n_features: the number of features of each candidate, d, which ``make_agent`` fills in.
        alpha: the factor of the posterior's standard deviations, at least 0. The default, 0.5, is
            the largest possible standard deviation of a click.
        ridge: the strength of the regularisation, λ ≥ 1e-6; by default K.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``alpha`` is negative, or ``ridge`` is below 1e-6.

    Source: Agrawal, Goyal, *Thompson sampling for contextual bandits with linear payoffs*, ICML
        2013, Algorithm 1.

    Deviations from the paper:
        1. The factor ``alpha`` is constant. The paper uses ``sqrt(9 d ln(t/δ))``, which its proof
           requires.
        2. A list shows K candidates; in the paper, an action is a single candidate.

    Example:
        >>> features = [[0.1], [0.2], [0.3], [0.4], [0.5]]
        >>> LinearTS(5, 2, n_features=1, seed=0).rank({"features": features}).shape
        (2,)
    """

    paper = "Agrawal and Goyal 2013"
    bibtex_keys = ["lints"]
    theory_argument = ""
    rank_kernel = rank_by_posterior

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        n_features: int,
        ridge: float | None = None,
        alpha: float = 0.5,
        seed: Seed = None,
    ) -> None:
        alpha = check_number("alpha", alpha, 0)
        super().__init__(n_items, n_positions, n_features, seed, ridge=ridge, alpha=alpha)
