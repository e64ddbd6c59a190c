"""Agents of the cascading bandits: CascadeUCB1 (Kveton et al. 2015) and CascadeTS."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.checks import unknown
from ..core.kernels import inner, kernel
from .agent import ANY_LIST, CompiledAgent, Seed, rates
from .kernels import FEEDBACK, count_session, examined_positions, rank_available, rank_by_draw, rank_by_index, show

__all__ = ["CascadeTS", "CascadeUCB1"]


class CascadeAgent(CompiledAgent):
    """Base of the cascade agents: which positions they take as examined."""

    click_models = "CM; others by the feedback rule"
    learns_from = ANY_LIST
    search_space: ClassVar = {"feedback": FEEDBACK}

    def __init__(
        self, n_items: int, n_positions: int, seed: Seed, *, feedback: str = "last_click", **hyperparameters: Any
    ) -> None:
        if feedback not in FEEDBACK:
            raise ValueError(unknown("feedback", feedback, FEEDBACK))
        super().__init__(n_items, n_positions, seed, feedback=feedback, **hyperparameters)

    @property
    def _feedback(self) -> int:
        return FEEDBACK.index(self.hyperparameters["feedback"])

    def best(self) -> NDArray[np.int64]:
        return self._best_by(rates(self.state.clicks, self.state.examined))


# ----------------------------------------------------------------------------------------------------------- CascadeUCB1


class UCB1State(NamedTuple):
    clicks: NDArray[np.int64]  # (L,)
    examined: NDArray[np.int64]  # (L,) N
    mean: NDArray[np.float64]  # (L,) ŵ = clicks / N, infinite before the first examination
    width: NDArray[np.float64]  # (L,) 1 / sqrt(N), 0 before it
    indices: NDArray[np.float64]  # (L,)
    order: NDArray[np.int64]  # (L,) items by index
    t: NDArray[np.int64]  # (1,) displays
    feedback: int


@inner
def bound_means(state):  # type: ignore[no-untyped-def]
    count_session(state)
    radius = math.sqrt(1.5 * math.log(state.t[0]))
    for item in range(len(state.indices)):
        state.indices[item] = state.mean[item] + radius * state.width[item]


@kernel
def rank_ucb1(state, rng, ranking):  # type: ignore[no-untyped-def]
    bound_means(state)
    rank_by_index(state.indices, state.order, rng, len(ranking))
    show(state.order, ranking)


@kernel
def rank_ucb1_available(state, rng, available, ranking):  # type: ignore[no-untyped-def]
    bound_means(state)
    rank_available(state.indices, state.order, rng, available, len(ranking))
    show(state.order, ranking)


@kernel
def update_ucb1(state, ranking, clicks):  # type: ignore[no-untyped-def]
    for k in range(examined_positions(clicks, state.feedback)):
        if clicks[k] > 1:
            continue
        item = ranking[k]
        state.clicks[item] += clicks[k]
        state.examined[item] += 1
        state.mean[item] = state.clicks[item] / state.examined[item]
        state.width[item] = 1.0 / math.sqrt(state.examined[item])


@kernel
def replace_ucb1(state, rng, item):  # type: ignore[no-untyped-def]
    state.clicks[item], state.examined[item] = 0, 0
    state.mean[item], state.width[item] = np.inf, 0.0


class CascadeUCB1(CascadeAgent):
    """CascadeUCB1: show the K items of largest ``ŵ + sqrt(1.5 log t / N)``, in decreasing order.

    Args:
        n_items: L.
        n_positions: K.
        feedback: what counts as examined: ``"last_click"``, positions down to the last click, each with its own click, or
            ``"first_click"``, positions down to the first click; all K without a click.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on an unknown feedback rule.

    Source: Kveton, Szepesvári, Wen, Ashkan, *Cascading bandits: learning to rank in the cascade model*, ICML 2015, Algorithm 1
    with eq. 5.

    Deviations from the paper:
        1. ⚠ Ties, and items not examined yet (which rank first), are ordered uniformly at random, so there is no separate
           initialisation.
        2. ⚠ The paper knows one click per list. With several, ``last_click`` is the default: it is what implementations of the
           authors' school do and makes the stronger baseline in a PBM; ``first_click`` is the exact rule in a DCM.

    Example:
        >>> CascadeUCB1(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Kveton et al. 2015, Algorithm 1"
    rank_kernel = rank_ucb1
    rank_available_kernel = rank_ucb1_available
    update_kernel = update_ucb1
    count_kernel = count_session
    replace_kernel = replace_ucb1

    def __init__(self, n_items: int, n_positions: int, *, feedback: str = "last_click", seed: Seed = None) -> None:
        super().__init__(n_items, n_positions, seed, feedback=feedback)

    def _initial_state(self) -> UCB1State:
        n = self.n_items
        return UCB1State(
            clicks=np.zeros(n, np.int64),
            examined=np.zeros(n, np.int64),
            mean=np.full(n, np.inf),
            width=np.zeros(n),
            indices=np.full(n, np.inf),
            order=np.arange(n),
            t=np.zeros(1, np.int64),
            feedback=self._feedback,
        )


# ------------------------------------------------------------------------------------------------------------- CascadeTS


class TSState(NamedTuple):
    clicks: NDArray[np.int64]  # (L,)
    examined: NDArray[np.int64]  # (L,)
    draws: NDArray[np.float64]  # (L,) this session's draw from each posterior
    order: NDArray[np.int64]  # (L,) the K items of largest draws, then others
    feedback: int


@inner
def draw_means(state, rng):  # type: ignore[no-untyped-def]
    for item in range(len(state.draws)):
        clicks = state.clicks[item]
        state.draws[item] = rng.beta(1.0 + clicks, 1.0 + state.examined[item] - clicks)


@kernel
def rank_ts(state, rng, ranking):  # type: ignore[no-untyped-def]
    draw_means(state, rng)
    rank_by_draw(state.draws, state.order, rng, len(ranking))
    show(state.order, ranking)


@kernel
def rank_ts_available(state, rng, available, ranking):  # type: ignore[no-untyped-def]
    draw_means(state, rng)
    rank_available(state.draws, state.order, rng, available, len(ranking))
    show(state.order, ranking)


@kernel
def update_ts(state, ranking, clicks):  # type: ignore[no-untyped-def]
    for k in range(examined_positions(clicks, state.feedback)):
        if clicks[k] <= 1:
            state.clicks[ranking[k]] += clicks[k]
            state.examined[ranking[k]] += 1


@kernel
def replace_ts(state, rng, item):  # type: ignore[no-untyped-def]
    state.clicks[item], state.examined[item] = 0, 0


class CascadeTS(CascadeAgent):
    """CascadeTS: draw each item's attraction from its Beta posterior and show the K largest in decreasing order.

    The prior is Beta(1, 1), and every item has a draw of its own. It is not TS-Cascade (Cheung, Tan, Zhong, AISTATS 2019),
    which draws one Gaussian number for all items.

    Args:
        n_items: L.
        n_positions: K.
        feedback: as in `CascadeUCB1`.
        seed: seeds the agent's own generator.

    Raises:
        ValueError: on an unknown feedback rule.

    Source: Hüyük, Tekin, *Analysis of Thompson sampling for combinatorial multi-armed bandit with probabilistically triggered
    arms*, AISTATS 2019, Algorithm 1 (CTS); Zhong, Cheung, Tan, *Thompson sampling algorithms for cascading bandits*, JMLR 2021,
    section 3, which bounds its regret in cascades.

    Deviations from the paper:
        1. ⚠ Several clicks: as in `CascadeUCB1`.

    Example:
        >>> CascadeTS(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Hüyük and Tekin 2019, Algorithm 1; Zhong et al. 2021, section 3"
    rank_kernel = rank_ts
    rank_available_kernel = rank_ts_available
    update_kernel = update_ts
    replace_kernel = replace_ts

    def __init__(self, n_items: int, n_positions: int, *, feedback: str = "last_click", seed: Seed = None) -> None:
        super().__init__(n_items, n_positions, seed, feedback=feedback)

    def _initial_state(self) -> TSState:
        n = self.n_items
        return TSState(
            clicks=np.zeros(n, np.int64),
            examined=np.zeros(n, np.int64),
            draws=np.zeros(n),
            order=np.arange(n),
            feedback=self._feedback,
        )
