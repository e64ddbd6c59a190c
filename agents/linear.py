"""Agents that learn a linear attraction from features by ridge regression (He et al. 2020 and their
baselines).

All keep ``A = λI + Σ u uᵀ`` and ``b = Σ u c`` over samples ``u = w x``, the features x of a shown
candidate times the weight w of its position, with its click c; ``θ = A⁻¹b`` estimates the
attraction ``θᵀx``. The LinUCB agents show the candidates of largest ``θᵀx + α_t sqrt(xᵀA⁻¹x)``, the
k-th largest at position k, and differ only in the positions that are samples and in their weights:

| agent | samples | weight |
|---|---|---|
| `UBMLinUCB` | all positions | ``w_{k,k'}``, k' the position of the last click above k |
| `C2UCB` | all positions | 1 |
| `CMLinUCB` | down to the first click (all without a click) | 1 |
| `DCMLinUCB` | down to the last click (all without a click) | 1 |
| `PBMLinUCB` | all positions | ``κ_k`` |

Letters: L candidates in a session, K positions, d features, t the session, counted from 1.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import browsing_probabilities, check_count, check_number
from ..core.kernels import kernel
from ..core.state import Floats, Ints
from ..core.sums import weighted_sum
from .agent import Seed
from .compiled_agent import ContextualAgent
from .position_based import check_examination
from .ridge import add_sample, multiply, refresh, solve_upper
from .shared_kernels import FIRST_CLICK, LAST_CLICK, cholesky, examined_positions

ALL_POSITIONS = 2  # besides FIRST_CLICK and LAST_CLICK
# indices closer than this are ties that differ by rounding, for example at the start, when θ = 0
TIE = 1e-10
# a smaller λ would be lost to rounding in A, which could then be singular
LEAST_RIDGE = 1e-6
# sessions between two factorisations, which remove the rounding errors of the rank-one updates
REFRESH = 100


class LinearState(NamedTuple):
    """State of a ridge regression by which candidates are ranked."""

    gram: Floats  # (d, d) A
    inverse: Floats  # (d, d) A⁻¹
    moment: Annotated[Floats, "d"]  # b
    theta: Annotated[Floats, "d"]  # θ = A⁻¹b
    t: Annotated[Ints, "1"]  # sessions
    factor: Annotated[Floats, "d d"]  # working memory: the Cholesky factor of A
    vector: Annotated[Floats, "d"]  # working memory
    indices: Annotated[Floats, "L"]
    order: Annotated[Ints, "L", range]
    feedback: int  # the positions that are samples: FIRST_CLICK, LAST_CLICK or ALL_POSITIONS
    ridge: float  # λ
    # (K, K) weight of a sample, by position and last click above it (from 1; 0: none)
    weights: Floats
    phi: float  # φ', the largest sum of squared weights of a session
    exploration: float  # α (negative: α_t of the theory), or the scale of the posterior


@kernel
def show_largest(index, order, rng, ranking):
    """Write the candidates with the largest indices, in decreasing order. Each position shows a
    random one of the candidates within `TIE` of the best.
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
    """``θᵀx + radius sqrt(xᵀA⁻¹x)``"""
    multiply(state.inverse, x, state.vector)
    variance = max(weighted_sum(state.vector, x), 0.0)
    return weighted_sum(state.theta, x) + radius * math.sqrt(variance)


@kernel
def confidence(state, n_positions):
    """``α_t = sqrt(d ln(1 + φ' t / (d λ)) + 2 ln(t K)) + sqrt(λ d)``, or the argument ``alpha``."""
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
    # If A = F Fᵀ and z is standard normal, F⁻ᵀz has the covariance A⁻¹.
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
    """Return φ', the largest sum of squared weights of a session."""
    return float(np.sum(weights.diagonal() ** 2))


class RidgeAgent(ContextualAgent):
    """Base class of the linear agents, which differ in their samples, in the weights of the
    samples, and in p_a.

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

    A subclass sets the last sample e by ``feedback``, and the weights w_k by ``_weights``.
    """

    click_models = "any, with linear attraction"
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
        """Return the ``(K, K)`` weights of samples by position and last click above it."""
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
    """Warn if the examination of a position is more likely than that of the position above."""
    rises = np.flatnonzero(np.diff(examination) > 0)
    if len(rises):
        k = int(rises[0])
        warnings.warn(
            f"examination before any click rises from {examination[k]:g} at position {k} to "
            f"{examination[k + 1]:g} at position {k + 1}; the agent always shows the k-th "
            "best candidate at position k, so its lists are not the best lists for such users",
            stacklevel=3,
        )


class UBMLinUCB(RidgeAgent):
    """UBM-LinUCB: LinUCB with samples weighted by the examination probabilities of the user
    browsing model.

    Idea:
        Users do not examine every position, so a candidate without a click may be unattractive or
        may not have been examined. In the user browsing model the probability of examination
        ``w_{k,k'}`` depends on the position k and on the position k' of the last click above it.
        UBM-LinUCB requires these probabilities, and its ridge regression models the click at
        position k as ``w_{k,k'}`` times a linear function of the candidate's features. It shows the
        candidates with the largest upper confidence bounds, the largest on top. A missing click at
        a rarely examined position changes the estimate little, and through the features each click
        carries information about candidates that were never shown. It fails if the probabilities
        are wrong or if attraction is not linear in the features, and its default confidence bound
        explores for very long.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = w_{k,k'}, the given examination probability of position k, with k' the position of
                the last click above k; 0 if there is none
            φ' = Σ_k w_{k,k−1}²
            e = K

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        examination: ``(K, K)`` known examination probabilities w as in `UserBrowsingModel`. Row k
            (from 0) is the position. Column 0 means that there was no click yet, column j that the
            last click was at the j-th position (counted from 1). ``make_agent`` fills them in.
        alpha: replaces ``α_t``; by default the theory's ``sqrt(d ln(1 + φ'_w t/(dλ)) + 2 ln(tK)) +
            sqrt(λd)``, ``φ'_w = Σ_k w_{k,k-1}²``, which explores for very long.
        ridge: λ ≥ 1e-6; by default ``max(1, φ'_w)``.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on weights of a wrong shape or outside ``[0, 1]``, a negative alpha, or a ridge
            below 1e-6.

    Source: He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for large-scale
    online mobile recommendation*, RecSys 2020, Algorithm 1.

    Deviations from the paper:
        1. ⚠ λ defaults to ``max(1, φ'_w)``: Theorem 3 requires ``λ ≥ φ'_w ≥ 1``, the experiments
           have ``φ'_w``.
        2. ⚠ Candidates whose indices differ by less than 1e-10 are ordered at random: at the start
           all candidates of the same norm are ties.
        3. ⚠ The list is optimal for ``any_click`` only if ``w_{k,0}`` does not increase with k, as
           the paper assumes; for other weights the constructor warns. For ``clicks``, sorting by
           attraction may be suboptimal in any UBM, and regret may stay linear.
        4. α_t is that of Algorithm 1, which has the session t where Theorem 3 has the horizon T.
           The bound β of ``‖θ‖²`` is d, as in the experiments.
        5. The inverse is updated by rank one, and computed anew every 100 sessions.

    Example:
        >>> examination = [[1.0, 0.0], [0.5, 0.8]]
        >>> agent = UBMLinUCB(3, 2, n_features=2, examination=examination, alpha=1.0, seed=0)
        >>> agent.rank({"features": [[0.1, 0.0], [0.6, 0.6], [0.0, 0.5]]})
        array([1, 2])
    """

    paper = "He et al. 2020, Algorithm 1"
    bibtex_keys = ["ubmlinucb"]
    click_models = "UBM, with linear attraction"

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
    """C²UCB: LinUCB for lists, which counts every shown candidate as examined.

    Idea:
        C²UCB assumes that users examine the whole list, so a shown candidate without a click counts
        as rejected. It keeps one ridge regression of clicks on the features of candidates. All K
        positions of every list are samples of this regression, with equal weight. It shows the K
        candidates with the largest upper confidence bounds of attraction, the largest on top. It
        uses everything that a session shows, and its estimates are correct if users do read whole
        lists. If users examine lower positions less often, candidates there look less attractive
        than they are, and therefore stay at lower positions.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = 1,  φ' = K
            e = K

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        alpha: replaces ``α_t``; by default as in `UBMLinUCB`, with ``φ' = K``.
        ridge: λ ≥ 1e-6; by default K.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a negative alpha or a ridge below 1e-6.

    Source: Qin, Chen, Zhu, *Contextual combinatorial bandit and its application on diversified
    online recommendation*, SDM 2014; compared with in He, An, Li, Chen, Guo, Li, Wang, *Contextual
    user browsing bandits for large-scale online mobile recommendation*, RecSys 2020, section 6.2.

    Deviations from the paper:
        1. ``α_t`` and λ are those of He et al. with all weights 1, so that agents differ only in
           their samples.
        2. ⚠ Ties are broken as in `UBMLinUCB`.

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
    """CM-LinUCB: LinUCB for the cascade model, with samples down to the first click (all positions
    without a click).

    Idea:
        In the cascade model a user reads from the top and leaves at the first click, so nothing
        below this click was examined. CM-LinUCB keeps one ridge regression of clicks on features,
        and shows the candidates with the largest upper confidence bounds. Its samples are the
        candidates that the user examined: all down to the first click, or all K if there is no
        click. In the cascade model these samples are unbiased, and through the features each of
        them carries information about all candidates. If users click more than once, the clicks
        below the first one are lost. If users leave before the end of the list without a click,
        candidates that they did not examine count as rejected.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = 1,  φ' = K
            e = the position of the first click; K if there is none

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        alpha: replaces ``α_t``; by default as in `UBMLinUCB`, with ``φ' = K``.
        ridge: λ ≥ 1e-6; by default K.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a negative alpha or a ridge below 1e-6.

    Source: Zong, Ni, Sung, Ke, Wen, Kveton, *Cascading bandits for large-scale recommendation
    problems*, UAI 2016; He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for
    large-scale online mobile recommendation*, RecSys 2020, section 6.2.

    Deviations from the paper:
        1. ``α_t`` and λ are those of `C2UCB`.
        2. ⚠ Ties are broken as in `UBMLinUCB`.

    Example:
        >>> agent = CMLinUCB(3, 2, n_features=1, alpha=1.0, seed=0)
        >>> agent.rank({"features": [[0.1], [0.5], [0.9]]})
        array([2, 1])
    """

    paper = "Zong et al. 2016; He et al. 2020, section 6.2"
    bibtex_keys = ["cascadelinear", "ubmlinucb"]
    click_models = "CM, with linear attraction"
    feedback = FIRST_CLICK


class DCMLinUCB(C2UCB):
    """DCM-LinUCB: LinUCB for the dependent click model, with samples down to the last click (all
    positions without a click).

    Idea:
        In the dependent click model a user reads from the top, and after each click either leaves
        or reads on. All positions down to the last click were examined, but it is unknown whether
        the user then left or read on without a click. DCM-LinUCB keeps one ridge regression of
        clicks on features, and shows the candidates with the largest upper confidence bounds. Its
        samples are the candidates down to the last click, or all K without a click, because such a
        user does not leave. It uses several clicks of a session, which `CMLinUCB` cannot. If users
        often read on after their last click, their rejections there are not counted, so candidates
        at low positions are overestimated.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = 1,  φ' = K
            e = the position of the last click; K if there is none

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        alpha: replaces ``α_t``; by default as in `UBMLinUCB`, with ``φ' = K``.
        ridge: λ ≥ 1e-6; by default K.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a negative alpha or a ridge below 1e-6.

    Source: Liu, Li, Zhang, *Contextual dependent click bandit algorithm for web recommendation*,
    COCOON 2018; He, An, Li, Chen, Guo, Li, Wang, *Contextual user browsing bandits for large-scale
    online mobile recommendation*, RecSys 2020, section 6.2.

    Deviations from the paper:
        1. ``α_t`` and λ are those of `C2UCB`.
        2. ⚠ Ties are broken as in `UBMLinUCB`.

    Example:
        >>> agent = DCMLinUCB(3, 2, n_features=1, alpha=1.0, seed=0)
        >>> agent.rank({"features": [[0.1], [0.5], [0.9]]})
        array([2, 1])
    """

    paper = "Liu et al. 2018; He et al. 2020, section 6.2"
    bibtex_keys = ["dcmlinear", "ubmlinucb"]
    click_models = "DCM, with linear attraction"
    feedback = LAST_CLICK


class PBMLinUCB(RidgeAgent):
    """PBM-LinUCB: LinUCB with samples weighted by the examination probabilities of the
    position-based model.

    Idea:
        In the position-based model users examine position k with a fixed probability κ_k, whatever
        was clicked above. PBM-LinUCB requires these probabilities, and its ridge regression models
        the click at position k as κ_k times a linear function of the candidate's features.
        It shows the candidates with the largest upper confidence bounds, the largest on top. A
        sample from a rarely examined position gets a small weight, and nothing is divided by κ_k,
        so the estimate stays stable. It fails if κ is wrong or if examination depends on clicks
        (`UBMLinUCB` is made for such users). It also fails if κ_k increases with k, because the
        best candidate then does not belong on top.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            w_k = κ_k, the given examination probability of position k
            φ' = Σ_k κ_k²
            e = K

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        examination: ``(K,)`` κ, the known examination probabilities, in ``(0, 1]``; ``make_agent``
            fills them in.
        alpha: replaces ``α_t``; by default as in `UBMLinUCB`, with ``φ' = Σ κ²``.
        ridge: λ ≥ 1e-6; by default ``max(1, φ')``.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on κ of a wrong shape or outside ``(0, 1]``, a negative alpha, or a ridge below
            1e-6.

    Source: as for `UBMLinUCB`, with weights of the position alone.

    Deviations from the paper:
        1. The paper compares with PBM-UCB, which has no features.
        2. ⚠ Ties, and the warning if κ increases with the position, as in `UBMLinUCB`.

    Example:
        >>> agent = PBMLinUCB(3, 2, n_features=1, examination=[1.0, 0.5], alpha=1.0, seed=0)
        >>> agent.rank({"features": [[0.1], [0.5], [0.9]]})
        array([2, 1])
    """

    paper = "He et al. 2020, Algorithm 1, with PBM weights"
    bibtex_keys = ["ubmlinucb"]
    click_models = "PBM, with linear attraction"

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
    """Linear Thompson sampling: show the best candidates for feature weights that are drawn from a
    normal posterior.

    Idea:
        This agent assumes that users examine the whole list and that attraction is linear in the
        features of a candidate. It keeps the ridge regression of `C2UCB`, and treats its result as
        a normal posterior of the weights of the features. In every session it draws one vector of
        weights from the posterior, and shows the candidates that are best for these weights. The
        draws vary less in directions of the features with many samples, so the agent explores less
        and less. With the default ``alpha`` it explores far less than LinUCB with the confidence
        bound of the theory. Position bias misleads it, as it misleads `C2UCB`, because it counts
        every shown candidate as examined.

    Algorithm:
        that of `RidgeAgent`, where

        ::

            p_a = θ̃ᵀx_a instead, with one θ̃ in each session drawn from the normal distribution
                N(θ, α² A⁻¹)        (α: alpha)
            w_k = 1
            e = K

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        alpha: scales the standard deviations of the posterior. The default is the largest standard
            deviation of a click.
        ridge: λ ≥ 1e-6; by default K.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a negative alpha or a ridge below 1e-6.

    Source: Agrawal, Goyal, *Thompson sampling for contextual bandits with linear payoffs*, ICML
        2013, Algorithm 1.

    Deviations from the paper:
        1. The paper's scale ``sqrt(9 d ln(t/δ))``, made for its proof, is replaced by a constant.
        2. K candidates are shown instead of one.

    Example:
        >>> features = [[0.1], [0.2], [0.3], [0.4], [0.5]]
        >>> LinearTS(5, 2, n_features=1, seed=0).rank({"features": features}).shape
        (2,)
    """

    paper = "Agrawal and Goyal 2013"
    bibtex_keys = ["lints"]
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
