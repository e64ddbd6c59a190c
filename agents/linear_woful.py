"""CascadeWOFUL (Vial et al. 2022): upper confidence bounds from a regression that gives rare clicks more weight."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.kernels import inner, kernel
from ..core.state import Floats, joined
from .agent import ITS_DISPLAYS, ContextualAgent
from .hyperparameters import at_least, hyperparameter, one_of
from .kernels import FEEDBACK, count_session, examined_positions
from .linear import REFRESH, Ridge, add_sample, multiply, refresh, show_largest, upper_bound
from .search_space import Range

RIDGE = 1.0  # λ
DEVIATION = 0.5  # of a click, at most


class Regression(NamedTuple):
    """The plain regression, with the fields that the kernels of `clickgym.agents.linear` read."""

    gram: NDArray[np.float64]
    inverse: NDArray[np.float64]
    moment: NDArray[np.float64]
    theta: NDArray[np.float64]
    factor: NDArray[np.float64]
    vector: NDArray[np.float64]
    ridge: float


class Plain(NamedTuple):
    """State in addition to that of the weighted regression, by which lists are chosen: H, H⁻¹, h and H⁻¹h."""

    # The plain one, which bounds how likely a click is.
    plain_gram: Floats  # (d, d) A
    plain_inverse: Floats  # (d, d) A⁻¹
    plain_moment: Annotated[Floats, "d"]  # b
    plain_theta: Annotated[Floats, "d"]  # A⁻¹b
    omega: Annotated[Floats, "K", 1.0]  # the weights of the shown candidates, of the display
    bonus: float


State = joined("State", Ridge, Plain)


@inner
def plain(state):  # type: ignore[no-untyped-def]
    return Regression(
        state.plain_gram, state.plain_inverse, state.plain_moment, state.plain_theta, state.factor, state.vector, RIDGE
    )


@inner
def radius(state, n_positions, deviation, largest_weight):  # type: ignore[no-untyped-def]
    """``bonus (deviation sqrt(d log(1 + ω K t / d) + 2 log(t K)) + sqrt(λ))``, ω the largest weight that samples may have."""
    d, t = len(state.theta), state.t[0]
    spread = d * math.log(1.0 + largest_weight * n_positions * t / d) + 2.0 * math.log(t * n_positions)
    return state.bonus * (deviation * math.sqrt(spread) + math.sqrt(RIDGE))


@kernel
def rank(state, rng, features, ranking):  # type: ignore[no-untyped-def]
    count_session(state)
    n_positions = len(ranking)
    wide = radius(state, n_positions, 1.0, float(n_positions))  # β'_t: a weighted click has a variance of at most 1
    for a in range(len(features)):
        state.indices[a] = upper_bound(state, features[a], wide)
    show_largest(state.indices, state.order, rng, ranking)
    narrow = radius(state, n_positions, DEVIATION, 1.0)  # β_t
    for k in range(n_positions):
        likely = min(upper_bound(plain(state), features[ranking[k]], narrow), 1.0)  # U; 0 from below is below 1/K anyway
        state.omega[k] = 1.0 / max(likely, 1.0 / n_positions)


@kernel
def update(state, features, ranking, clicks):  # type: ignore[no-untyped-def]
    safe = True
    for k in range(examined_positions(clicks, state.feedback)):
        if clicks[k] <= 1:
            x, weight, click = features[ranking[k]], math.sqrt(state.omega[k]), float(clicks[k])
            safe = add_sample(plain(state), x, 1.0, click) and safe
            safe = add_sample(state, x, weight, weight * click) and safe  # H += ω x xᵀ, h += ω c x
    state.updates[0] += 1
    if state.updates[0] % REFRESH == 0 or not safe:
        refresh(plain(state))
        refresh(state)
    multiply(state.plain_inverse, state.plain_moment, state.plain_theta)
    multiply(state.inverse, state.moment, state.theta)


class CascadeWOFUL(ContextualAgent):
    """CascadeWOFUL: LinUCB for the cascade model, with more weight for candidates that are surely clicked rarely.

    Idea:
        In the cascade model a user reads from the top and leaves at the click, and on long lists most candidates are clicked
        rarely. A click with probability U has a variance of at most U, so samples of rarely clicked candidates are more exact.
        CascadeWOFUL keeps two ridge regressions of the examined candidates: a plain one, which bounds U, and a weighted one,
        where smaller bounds get larger weights. It shows the candidates with the largest upper confidence bounds by the
        weighted regression. A weight is fixed when the list is shown, so the click cannot influence it and the estimate stays
        unbiased. It gains only where clicks are rare, explores for very long by default, and fails if users leave without a
        click before the end of the list.

    Algorithm:
        ::

            d: the number of features;  I: the identity matrix
            A = H = I,  b = h = 0        (A, b: the plain regression; H, h: the weighted one)
            for session t = 1, 2, …, with confidence radii β_t and β'_t:
                β_t = bonus (½ sqrt(d log(1 + Kt/d) + 2 log(tK)) + 1)
                β'_t = bonus (sqrt(d log(1 + K²t/d) + 2 log(tK)) + 1)
                observe the features x_a of the L candidates
                for each candidate a:
                    p_a = x_aᵀ H⁻¹h + β'_t sqrt(x_aᵀ H⁻¹ x_a)
                show the K candidates with the largest p_a, the largest on top; ties at random
                for each shown candidate, with features x:
                    U(x) = clip(xᵀ A⁻¹b + β_t sqrt(xᵀ A⁻¹ x), 0, 1), a bound of the click probability
                    ω(x) = 1 / max(U(x), 1/K), the weight of the sample
                observe the clicks c_1 … c_K
                e = the position of the last click (or first, as feedback says); K without a click
                for k = 1 … e, with x the features of the candidate shown there:
                    A += x xᵀ;       b += c_k x
                    H += ω(x) x xᵀ;  h += ω(x) c_k x

    Args:
        n_items: L, candidates in each session.
        n_positions: K.
        n_features: d; ``make_agent`` fills it in.
        bonus: ≥ 0, the factor of the confidence radii. With 1, the radii of the theory, the agent explores for very long.
        feedback: as in `CascadeUCB1`.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a negative bonus or an unknown feedback rule.

    Source: Vial, Sanghavi, Shakkottai, Srikant, *Minimax regret for cascading bandits*, NeurIPS 2022, the linear algorithm.

    Deviations from the paper:
        1. ⚠ λ = 1 and the radii above: its constants were not at hand. ½ is the largest deviation of a click; a weighted click
           has a variance of at most 1, and no sample weighs more than K.
        2. ⚠ Weights do not depend on the click, and only examined candidates are samples of either regression; code of others
           takes the weights after the update, and all K candidates.
        3. Of several clicks `feedback` says what was examined; in the cascade model there is one.
        4. ⚠ Indices closer than 1e-10 are ordered at random.
        5. The inverses are kept by rank-one updates and computed anew every 100 sessions.

    Late clicks count with the weights of their display.

    Example:
        >>> CascadeWOFUL(3, 2, n_features=1, seed=0).rank({"features": [[0.1], [0.5], [0.9]]})
        array([2, 1])
    """

    paper = "Vial et al. 2022, the linear algorithm"
    stands: ClassVar = {"late clicks": "its rule"}
    click_models = "CM, with linear attraction"
    learns_from = ITS_DISPLAYS
    remembered = ("omega",)
    state_type = State
    rank_kernel = rank
    update_kernel = update
    count_kernel = count_session

    bonus: float = hyperparameter(default=1.0, check=at_least(0), search=Range(0.003, 3.0, log=True))
    feedback: str = hyperparameter(default="last_click", check=one_of(FEEDBACK), search=FEEDBACK)

    def _first_values(self) -> dict[str, Any]:
        identity = np.eye(self.n_features)
        return {
            "gram": RIDGE * identity,
            "inverse": identity / RIDGE,
            "plain_gram": RIDGE * identity,
            "plain_inverse": identity / RIDGE,
            "ridge": RIDGE,
            "feedback": FEEDBACK.index(self.hyperparameters["feedback"]),
        }
