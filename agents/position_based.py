"""Agents for the position-based model with known examination probabilities (Lagrée et al. 2016)."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..envs.checks import check_at_least
from ..envs.kernels import kernel
from .agent import CompiledAgent, Seed
from .kernels import rank_by_index

__all__ = ["PBMUCB"]


def check_examination(examination: ArrayLike, n_positions: int) -> NDArray[np.float64]:
    """Known position weights κ: ``(K,)`` in ``(0, 1]``, for a position that is never examined teaches nothing."""
    weights = np.array(examination, np.float64)
    if weights.shape != (n_positions,):
        raise ValueError(f"examination has shape {weights.shape}; expected ({n_positions},)")
    bad = np.flatnonzero(~((weights > 0) & (weights <= 1)))
    if len(bad):
        raise ValueError(f"examination[{bad[0]}] is {weights[bad[0]]}; expected a probability in (0, 1]")
    return weights


class PBMUCBState(NamedTuple):
    clicks: NDArray[np.int64]  # (L,) S
    displays: NDArray[np.int64]  # (L,) N
    weight: NDArray[np.float64]  # (L,) Ñ, displays weighted by κ
    mean: NDArray[np.float64]  # (L,) S/Ñ, infinite before the first display
    width: NDArray[np.float64]  # (L,) sqrt(N/2)/Ñ
    indices: NDArray[np.float64]  # (L,)
    order: NDArray[np.int64]  # (L,) items by index
    t: NDArray[np.int64]  # (1,) the session, counted from 1
    examination: NDArray[np.float64]  # (K,) κ
    positions: NDArray[np.int64]  # (K,) positions by decreasing κ
    epsilon: float


@kernel
def rank_ucb(state, rng, ranking):  # type: ignore[no-untyped-def]
    # S/Ñ + sqrt(N/Ñ) sqrt(δ/(2Ñ)) with δ = (1 + ε) log t
    radius = math.sqrt((1.0 + state.epsilon) * math.log(state.t[0]))
    for item in range(len(state.indices)):
        state.indices[item] = state.mean[item] + radius * state.width[item]
    rank_by_index(state.indices, state.order, rng, len(ranking))
    for k in range(len(ranking)):
        ranking[state.positions[k]] = state.order[k]


@kernel
def update_ucb(state, ranking, clicks):  # type: ignore[no-untyped-def]
    state.t[0] += 1
    for k in range(len(ranking)):
        item = ranking[k]
        state.clicks[item] += clicks[k]
        state.displays[item] += 1
        state.weight[item] += state.examination[k]
        state.mean[item] = state.clicks[item] / state.weight[item]
        state.width[item] = math.sqrt(0.5 * state.displays[item]) / state.weight[item]


class PBMUCB(CompiledAgent):
    """PBM-UCB: show the K items of largest ``S/Ñ + sqrt(N/Ñ) sqrt(δ/(2Ñ))``, ``δ = (1 + ε) log t``.

    The k-th largest index goes to the position with the k-th largest κ.

    Args:
        n_items: L.
        n_positions: K.
        examination: ``(K,)`` κ, the known examination probabilities, in ``(0, 1]``; ``make_agent`` fills them in.
        epsilon: ε ≥ 0; the regret bound holds for any ε > 0.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on a wrong shape, a κ outside ``(0, 1]``, or a negative epsilon.

    Source: Lagrée, Vernade, Cappé, *Multiple-play bandits in the position-based model*, NIPS 2016, section 4 (PBM-UCB).

    Deviations from the paper:
        1. ⚠ Ties, and items never shown (which rank first), are ordered uniformly at random.
        2. κ need not decrease: the paper numbers positions by κ, here they keep their own order.

    Example:
        >>> PBMUCB(4, 2, examination=[1.0, 0.5], seed=0).rank(None).shape
        (2,)
    """

    paper = "Lagrée et al. 2016, section 4"
    click_models = "PBM"
    told: ClassVar = {"examination": "examination"}
    rank_kernel = rank_ucb
    update_kernel = update_ucb

    def __init__(
        self, n_items: int, n_positions: int, *, examination: ArrayLike, epsilon: float = 0.0, seed: Seed = None
    ) -> None:
        super().__init__(
            n_items,
            n_positions,
            seed,
            examination=check_examination(examination, n_positions),
            epsilon=check_at_least("epsilon", epsilon, 0),
        )

    def _initial_state(self) -> PBMUCBState:
        n = self.n_items
        examination = self.hyperparameters["examination"]
        return PBMUCBState(
            clicks=np.zeros(n, np.int64),
            displays=np.zeros(n, np.int64),
            weight=np.zeros(n),
            mean=np.full(n, np.inf),
            width=np.zeros(n),
            indices=np.full(n, np.inf),
            order=np.arange(n),
            t=np.ones(1, np.int64),
            examination=examination.copy(),
            positions=np.argsort(-examination, kind="stable"),
            epsilon=self.hyperparameters["epsilon"],
        )
