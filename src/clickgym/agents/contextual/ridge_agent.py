"""The base class, and the kernels, of the agents that learn attraction as a linear function of a
candidate's features, by ridge regression: UBM-LinUCB (He et al. 2020), the baselines of that paper,
and linear Thompson sampling.

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
from numpy.typing import NDArray

from ...core.checks import check_number
from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ...core.sums import weighted_sum
from ..agent import Seed
from ..common.cascade_agent import examined_positions
from ..compiled_agent import ContextualAgent
from .ridge_regression import add_sample, multiply, refresh

ALL_POSITIONS = 2  # a third feedback rule besides FIRST_CLICK and LAST_CLICK
# indices that differ by less than this count as equal; their difference may be due to rounding, for
# example at the start, when θ = 0
TIE_TOLERANCE = 1e-10
# with a smaller λ, rounding could make A singular
MIN_RIDGE = 1e-6
# the number of sessions after which A is factorised again, to remove the rounding errors of the
# rank-one updates
SESSIONS_PER_REFRESH = 100


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
    position gets a random candidate among those whose index is within `TIE_TOLERANCE` of the
    largest remaining index.
    """
    n_items = len(index)
    for a in range(n_items):
        order[a] = a
    for k in range(len(ranking)):
        best, n_tied = index[order[k]], 0
        for a in range(k + 1, n_items):
            best = max(best, index[order[a]])
        for a in range(k, n_items):
            n_tied += index[order[a]] >= best - TIE_TOLERANCE
        chosen = int(rng.random() * n_tied) if n_tied > 1 else 0
        for a in range(k, n_items):
            if index[order[a]] >= best - TIE_TOLERANCE:
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
def update_ridge(state, ranking, clicks, features):
    n_samples = len(ranking)
    if state.feedback != ALL_POSITIONS:
        n_samples = examined_positions(clicks, state.feedback)
    last, safe = 0, True  # k' of the last click, counted from 1; 0 before the first click
    for k in range(n_samples):
        sample = features[ranking[k]]
        safe = add_sample(state, sample, state.weights[k, last], clicks[k]) and safe
        if clicks[k] == 1:
            last = k + 1
    state.t[0] += 1
    if state.t[0] % SESSIONS_PER_REFRESH == 0 or not safe:
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
        ridge = None if ridge is None else check_number("ridge", ridge, MIN_RIDGE)
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
