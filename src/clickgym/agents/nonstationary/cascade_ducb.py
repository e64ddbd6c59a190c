"""CascadeDUCB (Li and de Rijke 2019), a cascade agent that discounts old sessions."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.checks import check_horizon, check_number
from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ..agent import Seed
from ..common.cascade_agent import CascadeAgent, Feedback, examined_positions
from ..common.ranking import rank_by_bounds


class CascadeDUCBState(NamedTuple):
    # Counts are stored divided by `scale`, the product of the discounts γ since `scale` was last
    # reset to 1. A session therefore changes only the counts of the examined items.
    clicks: Annotated[Floats, "L"]  # X / scale
    examined: Annotated[Floats, "L"]  # N / scale
    scale: Annotated[Floats, "1", 1.0]
    mean: Annotated[Floats, "L", np.inf]  # X / N; infinite if N = 0
    width: Annotated[Floats, "L"]  # 1 / sqrt(N / scale); 0 if N = 0
    indices: Annotated[Floats, "L", np.inf]
    order: Annotated[Ints, "L", range]  # items, sorted by index
    t: Annotated[Ints, "1"]  # sessions so far
    gamma: Floats  # (1,) γ
    next_doubling: Ints  # (1,) the session at which γ changes, a power of 2; 0: never
    epsilon: float
    feedback: int


@kernel
def discounted_gamma(n):
    """Return the default discount for n sessions, γ = 1 - 1/(4 sqrt(n))."""
    return 1.0 - 0.25 / math.sqrt(n)


@kernel
def rank(state, rng, ranking):
    # The bound is U = X/N + 2 sqrt(ε log n_t / N), with n_t = (1 - γ^t) / (1 - γ).
    t, gamma = state.t[0] + 1, state.gamma[0]
    n_t = -math.expm1(t * math.log(gamma)) / (1.0 - gamma) if gamma < 1.0 else float(t)
    radius = 2.0 * math.sqrt(state.epsilon * max(math.log(n_t), 0.0) / state.scale[0])
    rank_by_bounds(state, radius, rng, ranking)


@kernel
def discount_counts(state):
    """Discount all counts by one session."""
    state.scale[0] *= state.gamma[0]
    if state.scale[0] < 1e-100:
        for item in range(len(state.indices)):
            state.clicks[item] *= state.scale[0]
            state.examined[item] *= state.scale[0]
            state.width[item] = (
                1.0 / math.sqrt(state.examined[item]) if state.examined[item] > 0.0 else 0.0
            )
            if state.examined[item] == 0.0:  # underflow: treat the item as never examined
                state.mean[item] = np.inf
        state.scale[0] = 1.0


@kernel
def update(state, ranking, clicks):
    discount_counts(state)
    for k in range(examined_positions(clicks, state.feedback)):
        item = ranking[k]
        state.clicks[item] += clicks[k] / state.scale[0]
        state.examined[item] += 1.0 / state.scale[0]
        state.mean[item] = state.clicks[item] / state.examined[item]
        state.width[item] = 1.0 / math.sqrt(state.examined[item])
    state.t[0] += 1
    if state.t[0] + 1 == state.next_doubling[0]:
        state.gamma[0] = discounted_gamma(state.next_doubling[0])
        state.next_doubling[0] *= 2


class CascadeDUCB(CascadeAgent):
    """CascadeDUCB: a cascade UCB agent for users whose behaviour changes. It discounts old
    sessions: every session multiplies all counts by γ.

    Idea:
        CascadeDUCB is made for users who follow the cascade model (they scan from the top, click
        one item and leave), but whose behaviour changes abruptly and without notice. It keeps the
        examinations N and the clicks X of each item, and multiplies all of them by γ < 1 in every
        session. It shows the K items with the largest sum of the discounted mean X / N and a bonus.
        The bonus of an item grows while the item is not examined, so the agent tries every item
        again and notices changes. CascadeDUCB remembers about 1 / (1 - γ) sessions, which is a
        compromise: with a longer memory, it follows changes slowly; with a shorter memory, its
        estimates are rough. Exploration never stops. If users do not change, CascadeDUCB with its
        default ε therefore loses many more clicks than `CascadeKLUCB`. Items at positions that
        users skip count as not attractive.

    Algorithm:
        ::

            X(a) ← 0, the discounted clicks, and N(a) ← 0, the discounted examinations,
                for each item a
            γ = 1 - 1 / (4 sqrt(T)) is the discount, and ε = 0.5 the weight of exploration
            for t = 1, 2, ..., T:
                n_t ← (1 - γ^t) / (1 - γ), the sum of the weights of t sessions
                for each item a:
                    U(a) ← X(a) / N(a) + 2 sqrt(ε log n_t / N(a)), its upper bound,
                        and ∞ where N(a) = 0
                R_t ← the list of the K items of largest U, in decreasing order, ties at random
                show R_t and observe the clicks c(1), ..., c(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first),
                    or K without a click
                X(a) ← γ X(a) and N(a) ← γ N(a) for each item a
                for k = 1, ..., k', the examined positions:
                    X(R_t(k)) ← X(R_t(k)) + c(k)
                    N(R_t(k)) ← N(R_t(k)) + 1

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        gamma: the discount γ per session, in ``(0, 1]``; by default ``1 - 1/(4 sqrt(T))``, as in
            the paper's experiments.
        epsilon: the weight of exploration in the bonus, ε > 0. The paper's experiments use 0.5; its
            theorem requires a larger value.
        horizon: the number of sessions, T, from which the default of γ is computed. By default, the
            agent uses an estimate of T that doubles when it is reached: ``γ = 1 - 1/(4·2^{k/2})``
            for ``2^k ≤ t < 2^{k+1}``. The counts are kept.
        feedback: the positions that count as examined, ``"last_click"`` or ``"first_click"``; see
            `CascadeUCB1`.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``gamma`` is outside ``(0, 1]``, ``epsilon`` is not positive, or ``horizon`` or
            ``feedback`` is invalid.

    Source: Li, de Rijke, *Cascading non-stationary bandits: online learning to rank in the
    non-stationary cascade model*, IJCAI 2019, Algorithm 1 with eq. 5 and 6.

    Deviations from the paper:
        1. ⚠ The paper's rule ``x/0 := 1`` gives an unseen item the index 3, and the index of a seen
           item can be larger. Here an item with ``N = 0`` ranks before every other item.
        2. ⚠ Ties are broken uniformly at random. A session with several clicks is treated as in
           `CascadeUCB1`.

    Example:
        >>> CascadeDUCB(4, 2, horizon=1000, seed=0).state.gamma.round(4)
        array([0.9921])
    """

    paper = "Li and de Rijke 2019, Algorithm 1"
    bibtex_keys = ["cascadingnonstationary"]
    click_models = "CM that changes over time"
    made_for_models = ("CM",)
    state_type, rank_kernel, update_kernel = CascadeDUCBState, rank, update

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        feedback: Feedback = "last_click",
        gamma: float | None = None,
        epsilon: float = 0.5,
        horizon: float | None = None,
        seed: Seed = None,
    ) -> None:
        super().__init__(
            n_items,
            n_positions,
            seed,
            feedback=feedback,
            gamma=None if gamma is None else check_number("gamma", gamma, most=1, above=0),
            epsilon=check_number("epsilon", epsilon, above=0),
            horizon=None if horizon is None else check_horizon(horizon),
        )

    def first_values(self) -> dict[str, Any]:
        gamma, horizon = self.hyperparameters["gamma"], self.hyperparameters["horizon"]
        unknown_horizon = gamma is None and horizon is None
        if gamma is None:
            gamma = discounted_gamma(2 if horizon is None else horizon)
        return super().first_values() | {
            "gamma": np.array([gamma]),
            "next_doubling": np.array([2 if unknown_horizon else 0]),
        }
