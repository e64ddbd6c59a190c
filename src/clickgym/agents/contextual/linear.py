"""Agents that learn attraction as a linear function of a candidate's features, by ridge regression:
UBM-LinUCB (He et al. 2020), the baselines of that paper, and linear Thompson sampling.

Each agent keeps ``A = λI + Σ u uᵀ`` and ``b = Σ u c``. A sample ``u = w x`` is the features x of a
shown candidate, multiplied by the weight w of its position, and c is its click. ``θ = A⁻¹b``
estimates the weights of the features, so a candidate's estimated attraction is ``θᵀx``. The LinUCB
agents show the candidates with the largest ``θᵀx + α_t sqrt(xᵀA⁻¹x)``, the k-th largest at position
k. They differ only in which positions give samples, and in the weights of the samples:

| agent | samples | weight |
|---|---|---|
| `UBMLinUCB` | all positions | ``w_{k,k'}``, k' the position of the last click above k |
| `C2UCB` | all positions | 1 |
| `CMLinUCB` | down to the first click (all without a click) | 1 |
| `DCMLinUCB` | down to the last click (all without a click) | 1 |
| `PBMLinUCB` | all positions | ``κ_k`` |

In all formulas, L is the number of candidates in a session, K the number of positions, d the number
of features, and t the number of the session, counted from 1.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import browsing_probabilities, check_count, check_examination, check_number
from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ...core.sums import weighted_sum
from ..agent import Seed
from ..common.cascade_agent import FIRST_CLICK, LAST_CLICK, examined_positions
from ..compiled_agent import ContextualAgent
from .ridge import add_sample, cholesky, multiply, refresh, solve_upper

ALL_POSITIONS = 2  # a third feedback rule besides FIRST_CLICK and LAST_CLICK
# indices that differ by less than this count as equal; their difference may be due to rounding, for
# example at the start, when θ = 0
TIE = 1e-10
# with a smaller λ, rounding could make A singular
LEAST_RIDGE = 1e-6
# the number of sessions after which A is factorised again, to remove the rounding errors of the
# rank-one updates
REFRESH = 100


class LinearState(NamedTuple):
    """The state of the ridge regression that estimates the attraction of candidates."""

    gram: Floats  # (d, d) A
    inverse: Floats  # (d, d) A⁻¹
    moment: Annotated[Floats, "d"]  # b
    theta: Annotated[Floats, "d"]  # θ = A⁻¹b
    t: Annotated[Ints, "1"]  # sessions so far
    factor: Annotated[Floats, "d d"]  # working memory: the Cholesky factor of A
    vector: Annotated[Floats, "d"]  # working memory
    indices: Annotated[Floats, "L"]
    order: Annotated[Ints, "L", range]
    feedback: int  # which positions are samples: FIRST_CLICK, LAST_CLICK or ALL_POSITIONS
    ridge: float  # λ
    # (K, K) the weight of a sample, by its position and by the position of the last click above it,
    # which is counted from 1; 0 if there is none
    weights: Floats
    phi: float  # φ', the largest sum of squared weights in a session
    exploration: float  # alpha; negative: use α_t. For LinearTS, the posterior's factor


@kernel
def show_largest(index, order, rng, ranking):
    """Write the candidates with the largest indices into the list, in decreasing order. Each
    position gets a random candidate among those whose index is within `TIE` of the largest
    remaining index.
    """
    n_items = len(index)
    for a in range(n_items):
        order[a] = a
    for k in range(len(ranking)):
        best, near = index[order[k]], 0
        for a in range(k + 1, n_items):
            best = max(best, index[order[a]])
        for a in range(k, n_items):
            near += index[order[a]] >= best - TIE
        chosen = int(rng.random() * near) if near > 1 else 0
        for a in range(k, n_items):
            if index[order[a]] >= best - TIE:
                if chosen == 0:
                    order[k], order[a] = order[a], order[k]
                    break
                chosen -= 1
        ranking[k] = order[k]


@kernel
def upper_bound(state, x, radius):
    """Return the upper confidence bound of an attraction, ``θᵀx + radius sqrt(xᵀA⁻¹x)``."""
    multiply(state.inverse, x, state.vector)
    variance = max(weighted_sum(state.vector, x), 0.0)
    return weighted_sum(state.theta, x) + radius * math.sqrt(variance)


@kernel
def confidence(state, n_positions):
    """Return the confidence radius: the argument ``alpha``, or by default ``α_t = sqrt(d ln(1 + φ'
    t / (d λ)) + 2 ln(t K)) + sqrt(λ d)``.
    """
    if state.exploration >= 0.0:
        return state.exploration
    d, t = len(state.theta), state.t[0] + 1
    radius = d * math.log(1.0 + state.phi * t / (d * state.ridge)) + 2.0 * math.log(t * n_positions)
    return math.sqrt(radius) + math.sqrt(state.ridge * d)


@kernel
def rank_optimistic(state, rng, ranking, features):
    alpha = confidence(state, len(ranking))
    for a in range(len(features)):
        state.indices[a] = upper_bound(state, features[a], alpha)
    show_largest(state.indices, state.order, rng, ranking)


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


@kernel
def update_ridge(state, ranking, clicks, features):
    n_samples = (
        len(ranking)
        if state.feedback == ALL_POSITIONS
        else examined_positions(clicks, state.feedback)
    )
    last, safe = 0, True  # k' of the last click, counted from 1; 0 before the first click
    for k in range(n_samples):
        sample = features[ranking[k]]
        safe = add_sample(state, sample, state.weights[k, last], clicks[k]) and safe
        if clicks[k] == 1:
            last = k + 1
    state.t[0] += 1
    if state.t[0] % REFRESH == 0 or not safe:
        refresh(state)
    multiply(state.inverse, state.moment, state.theta)


def squares_of(weights: NDArray[np.float64]) -> float:
    """Return φ', the sum of squared sample weights in a session with clicks at all positions."""
    return float(np.sum(weights.diagonal() ** 2))


class RidgeAgent(ContextualAgent):
    """Base class of the linear agents. They differ in which positions give samples, in the weights
    of the samples, and in the score p_a by which they sort candidates.

    Algorithm:
        ::

            λ: ridge;  d: the number of features;  I: the d × d identity matrix
            φ': a bound of the squared weights of a session, which each agent gives
            A = λI,  b = 0
            for session t = 1, 2, …:
                observe the features x_a of the L candidates
                θ = A⁻¹ b, the estimated weights of the features
                for each candidate a:
                    p_a = θᵀx_a + α_t sqrt(x_aᵀ A⁻¹ x_a), an upper bound of its attraction, with
                    α_t = sqrt(d ln(1 + φ' t / (dλ)) + 2 ln(tK)) + sqrt(λd), or the given alpha
                show the K candidates with the largest p_a, the largest on top; ties at random
                observe the clicks c_1 … c_K
                for k = 1 … e, with x the features of the candidate shown there:
                    A += w_k² x xᵀ
                    b += w_k c_k x

    The attribute ``feedback`` of a subclass determines the position e of the last sample, and its
    method ``_weights`` the weights w_k.
    """

    click_models = "any, with linear attraction"
    theory_argument = "alpha"
    feedback: ClassVar[int] = ALL_POSITIONS
    state_type = LinearState
    rank_kernel: ClassVar[Callable[..., None]] = rank_optimistic
    update_kernel: ClassVar[Callable[..., None]] = update_ridge

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_features: int,
        seed: Seed,
        *,
        ridge: float | None,
        alpha: float | None,
        **hyperparameters: Any,
    ) -> None:
        ridge = None if ridge is None else check_number("ridge", ridge, LEAST_RIDGE)
        alpha = None if alpha is None else check_number("alpha", alpha, 0)
        super().__init__(
            n_items, n_positions, n_features, seed, ridge=ridge, alpha=alpha, **hyperparameters
        )

    def _weights(self) -> NDArray[np.float64]:
        """Return the ``(K, K)`` sample weights, by position and by the position of the last click
        above it.
        """
        return np.ones((self.n_positions, self.n_positions))

    def first_values(self) -> dict[str, Any]:
        weights, ridge = self._weights(), self.hyperparameters["ridge"]
        if ridge is None:
            ridge = max(1.0, squares_of(weights))
        alpha = self.hyperparameters["alpha"]
        return {
            "gram": ridge * np.eye(self.n_features),
            "inverse": np.eye(self.n_features) / ridge,
            "weights": weights,
            "feedback": self.feedback,
            "ridge": ridge,
            "phi": squares_of(weights),
            "exploration": -1.0 if alpha is None else alpha,
        }


def warn_of_rises(examination: NDArray[np.float64]) -> None:
    """Warn if users are more likely to examine some position than the position above it."""
    rises = np.flatnonzero(np.diff(examination) > 0)
    if len(rises):
        k = int(rises[0])
        warnings.warn(
            f"examination before any click rises from {examination[k]:g} at position {k + 1} to "
            f"{examination[k + 1]:g} at position {k + 2}; the agent always shows better "
            "candidates at higher positions, so its lists are not the best lists for such users",
            stacklevel=3,
        )


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


class C2UCB(RidgeAgent):
    """C²UCB: a LinUCB agent for lists that counts every shown candidate as examined.

    Idea:
        C²UCB assumes that users examine the whole list, so a shown candidate without a click counts
        as rejected. It keeps one ridge regression of clicks on the features of candidates. All K
        positions of every list are samples of this regression, with equal weight. It shows the K
        candidates with the largest upper confidence bounds of attraction, the largest on top. C²UCB
        uses the feedback at every position, and its estimates are correct if users do read whole
        lists. If users examine lower positions less often, candidates there look less attractive
        than they are, and therefore stay at lower positions.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = 1,  φ' = K
            e = K

    Args:
        n_items: the number of candidates in each session, L.
        n_positions: the number of positions in a list, K.
        n_features: the number of features of each candidate, d, which ``make_agent`` fills in.
        alpha: a constant to use in place of the confidence radius ``α_t``, at least 0. By default,
            ``α_t`` follows the formula of `UBMLinUCB`, with ``φ' = K``.
        ridge: the strength of the regularisation, λ ≥ 1e-6; by default K.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``alpha`` is negative, or ``ridge`` is below 1e-6.

    Source: Qin, Chen, Zhu, *Contextual combinatorial bandit and its application on diversified
    online recommendation*, SDM 2014; compared with in He, An, Li, Chen, Guo, Li, Wang, *Contextual
    user browsing bandits for large-scale online mobile recommendation*, RecSys 2020, section 6.2.

    Deviations from the paper:
        1. ``α_t`` and λ are those of He et al. with all weights 1, so that the agents in this
           module differ only in their samples.
        2. ⚠ Candidates with nearly equal indices are ordered at random, as in `UBMLinUCB`.

    Example:
        >>> C2UCB(3, 2, n_features=1, alpha=1.0, seed=0).rank({"features": [[0.1], [0.5], [0.9]]})
        array([2, 1])
    """

    paper = "Qin et al. 2014; He et al. 2020, section 6.2"
    bibtex_keys = ["c2ucb", "ubmlinucb"]

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        n_features: int,
        ridge: float | None = None,
        alpha: float | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(n_items, n_positions, n_features, seed, ridge=ridge, alpha=alpha)


class CMLinUCB(C2UCB):
    """CM-LinUCB: a LinUCB agent for the cascade model, whose samples are the positions down to the
    first click, or all positions if there is no click.

    Idea:
        In the cascade model a user reads from the top and leaves at the first click, so nothing
        below this click was examined. CM-LinUCB keeps one ridge regression of clicks on features,
        and shows the candidates with the largest upper confidence bounds. Its samples are the
        candidates that the user examined: all down to the first click, or all K if there is no
        click. In the cascade model, these samples are unbiased, and each sample carries information
        about all candidates that share its features. If users click more than once, CM-LinUCB
        ignores the clicks below the first one. If users leave before the end of the list without a
        click, candidates that they did not examine count as rejected.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = 1,  φ' = K
            e = the position of the first click; K if there is none

    Args:
        n_items: the number of candidates in each session, L.
        n_positions: the number of positions in a list, K.
        n_features: the number of features of each candidate, d, which ``make_agent`` fills in.
        alpha: a constant to use in place of the confidence radius ``α_t``, at least 0. By default,
            ``α_t`` follows the formula of `UBMLinUCB`, with ``φ' = K``.
        ridge: the strength of the regularisation, λ ≥ 1e-6; by default K.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``alpha`` is negative, or ``ridge`` is below 1e-6.

    Source: Zong, Ni, Sung, Ke, Wen, Kveton, *Cascading bandits for large-scale recommendation
    problems*, UAI 2016; He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for
    large-scale online mobile recommendation*, RecSys 2020, section 6.2.

    Deviations from the paper:
        1. ``α_t`` and λ are those of `C2UCB`.
        2. ⚠ Candidates with nearly equal indices are ordered at random, as in `UBMLinUCB`.

    Example:
        >>> agent = CMLinUCB(3, 2, n_features=1, alpha=1.0, seed=0)
        >>> agent.rank({"features": [[0.1], [0.5], [0.9]]})
        array([2, 1])
    """

    paper = "Zong et al. 2016; He et al. 2020, section 6.2"
    bibtex_keys = ["cascadelinear", "ubmlinucb"]
    click_models = "CM, with linear attraction"
    made_for_models = ("CM",)
    feedback = FIRST_CLICK


class DCMLinUCB(C2UCB):
    """DCM-LinUCB: a LinUCB agent for the dependent click model, whose samples are the positions
    down to the last click, or all positions if there is no click.

    Idea:
        In the dependent click model a user reads from the top, and after each click either leaves
        or reads on. All positions down to the last click were examined, but the agent cannot know
        whether the user left after this click or read on without another click. DCM-LinUCB keeps
        one ridge regression of clicks on features, and shows the candidates with the largest upper
        confidence bounds. Its samples are the candidates down to the last click. If there is no
        click, all K candidates are samples, because a user who does not click reads the whole list.
        DCM-LinUCB can use several clicks in a session, which `CMLinUCB` cannot. If users often read
        on after their last click, the candidates that they reject there are not counted, so
        candidates at low positions are overestimated.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = 1,  φ' = K
            e = the position of the last click; K if there is none

    Args:
        n_items: the number of candidates in each session, L.
        n_positions: the number of positions in a list, K.
        n_features: the number of features of each candidate, d, which ``make_agent`` fills in.
        alpha: a constant to use in place of the confidence radius ``α_t``, at least 0. By default,
            ``α_t`` follows the formula of `UBMLinUCB`, with ``φ' = K``.
        ridge: the strength of the regularisation, λ ≥ 1e-6; by default K.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``alpha`` is negative, or ``ridge`` is below 1e-6.

    Source: Liu, Li, Zhang, *Contextual dependent click bandit algorithm for web recommendation*,
    COCOON 2018; He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for large-scale
    online mobile recommendation*, RecSys 2020, section 6.2.

    Deviations from the paper:
        1. ``α_t`` and λ are those of `C2UCB`.
        2. ⚠ Candidates with nearly equal indices are ordered at random, as in `UBMLinUCB`.

    Example:
        >>> agent = DCMLinUCB(3, 2, n_features=1, alpha=1.0, seed=0)
        >>> agent.rank({"features": [[0.1], [0.5], [0.9]]})
        array([2, 1])
    """

    paper = "Liu et al. 2018; He et al. 2020, section 6.2"
    bibtex_keys = ["dcmlinear", "ubmlinucb"]
    click_models = "DCM, with linear attraction"
    made_for_models = ("DCM",)
    feedback = LAST_CLICK


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
