"""BC-MPTS (Lagrée et al. 2016), the simpler baseline of PBM-TS, with Beta posteriors."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from numpy.typing import ArrayLike

from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ..agent import Seed
from ..common.ranking import rank_by_draw, show_at
from .examination_agent import ExaminationAgent


class BCMPTSState(NamedTuple):
    clicks: Annotated[Ints, "L"]  # S, the clicks on each item
    weight: Annotated[Floats, "L"]  # Ñ, the sum of κ over displays
    draws: Annotated[Floats, "L"]  # this session's draw from each item's posterior
    order: Annotated[Ints, "L", range]  # the K items with the largest draws, then the others
    examination: Floats  # (K,) κ, the examination probabilities
    positions: Annotated[Ints, "K"]  # positions, sorted by decreasing κ


@kernel
def rank(state, rng, ranking):
    for item in range(len(state.draws)):
        clicks = state.clicks[item]
        state.draws[item] = rng.beta(1.0 + clicks, 1.0 + max(0.0, state.weight[item] - clicks))
    rank_by_draw(state.draws, state.order, rng, len(ranking))
    show_at(state.positions, state.order, ranking)


@kernel
def update(state, ranking, clicks):
    for k in range(len(ranking)):
        state.clicks[ranking[k]] += clicks[k]
        state.weight[ranking[k]] += state.examination[k]


class BCMPTS(ExaminationAgent):
    """BC-MPTS: an agent that applies Thompson sampling with Beta posteriors of bias-corrected
    counts; the paper's baseline for PBM-TS.

    Idea:
        In the position-based model, users examine position l with a known probability κ_l, so an
        item gets fewer clicks where few users look. For each item, BC-MPTS (bias-corrected
        multiple-play Thompson sampling) counts the clicks S and the displays Ñ, with each display
        weighted by κ_l. In each session, it draws a number for each item from the Beta distribution
        with parameters 1 + S and 1 + max(0, Ñ - S). It shows the K items with the largest draws,
        the largest at the position with the largest κ_l. The Beta distribution approximates the
        exact posterior, and its draws take less time than those of `PBMTS`. The approximation is
        good for small attractions but poor for large ones. A wrong κ misleads BC-MPTS, as it
        misleads `PBMTS`.

    Algorithm:
        ::

            κ_l: the given examination probability of position l
            S_k ← 0 and Ñ_k ← 0 for each item k: its clicks, and displays weighted by κ
            for t = 1, 2, ...:
                for each item k:
                    draw θ_k from Beta(1 + S_k, 1 + max(0, Ñ_k - S_k))
                order the items by θ, in decreasing order
                for j = 1, ..., K:
                    put the j-th item on the position of the j-th largest κ
                show this list A(t) and observe the clicks Z_1, ..., Z_K
                for l = 1, ..., K, with A_l(t) the item on position l:
                    S_{A_l(t)} ← S_{A_l(t)} + Z_l
                    Ñ_{A_l(t)} ← Ñ_{A_l(t)} + κ_l

    Args:
        n_items, n_positions, examination, seed: the same as for `PBMTS`.

    Raises:
        ValueError: ``examination`` has a wrong shape or a number outside ``(0, 1]``.

    Source: the paper of `PBMTS`, section 5 (BC-MPTS), after MP-TS of Komiyama, Honda, Nakagawa,
    *Optimal regret analysis of Thompson sampling in stochastic multi-armed bandit problem with
    multiple plays*, ICML 2015.

    Deviations from the paper:
        1. ⚠ Our copy of the paper ends before section 5. We inferred the corrected counts and
           the uniform prior from the agent's name, bias-corrected multiple-play Thompson sampling.

    Example:
        >>> BCMPTS(4, 2, examination=[1.0, 0.5], seed=0).rank(None).shape
        (2,)
    """

    paper = "Lagrée et al. 2016, section 5"
    bibtex_keys = ["mpts", "pbmbandits"]
    state_type, rank_kernel, update_kernel = BCMPTSState, rank, update

    def __init__(
        self, n_items: int, n_positions: int, *, examination: ArrayLike, seed: Seed = None
    ) -> None:
        super().__init__(n_items, n_positions, seed, examination=examination)
