"""PBM-TS (Lagrée et al. 2016), a position-based agent with Thompson sampling."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.kernels import entry, kernel
from ...core.state import Flags, Floats, Ints
from ..agent import Seed
from ..common.ranking import rank_by_draw, show_at
from .attraction_posterior import build_hat, draw_posterior
from .examination_agent import ExaminationAgent


class PBMTSState(NamedTuple):
    clicks: Annotated[Ints, "L"]  # S, the clicks on each item
    misses: Annotated[Ints, "L K"]  # N_l - S_l, the displays without a click
    draws: Annotated[Floats, "L"]  # this session's draw from each item's posterior
    order: Annotated[Ints, "L", range]  # the K items with the largest draws, then the others
    examination: Floats  # (K,) κ, the examination probabilities
    positions: Annotated[Ints, "K"]  # positions, sorted by decreasing κ
    # The hat over each item's posterior: see `build_hat`.
    stale: Annotated[Flags, "L", True]  # whether the hat must be built again
    mode: Annotated[Floats, "L"]  # the maximum of the density
    top: Annotated[Floats, "L"]  # the log density at the mode
    left: Annotated[Floats, "L"]  # the left end of the flat part of the hat
    right: Annotated[Floats, "L", 1.0]  # the right end of the flat part
    rise: Annotated[Floats, "L"]  # the slope of the log hat before `left`; 0: no such part
    # minus the slope of the log hat after `right`, or 0 if the hat has no such part
    fall: Annotated[Floats, "L"]
    before: Annotated[Floats, "L"]  # the area of the hat before `left`, in units of its top
    after: Annotated[Floats, "L"]  # the area of the hat after `right`, in units of its top
    # Chords of the log density. A proposal below a chord is accepted without computing the density.
    low: Annotated[Floats, "L"]  # the start of the chord up to the mode; the mode if none
    # the end of the chord down from the mode, or the mode if there is no such chord
    high: Annotated[Floats, "L"]
    ascent: Annotated[Floats, "L"]  # the slope of the chord up to the mode
    descent: Annotated[Floats, "L"]  # minus the slope of the chord down from the mode


@kernel
def rank(state, rng, ranking):
    for item in range(len(state.draws)):
        state.draws[item] = draw_posterior(state, item, rng)
    rank_by_draw(state.draws, state.order, rng, len(ranking))
    show_at(state.positions, state.order, ranking)


@kernel
def update(state, ranking, clicks):
    for k in range(len(ranking)):
        state.clicks[ranking[k]] += clicks[k]
        state.misses[ranking[k], k] += 1 - clicks[k]
        state.stale[ranking[k]] = True


class PBMTS(ExaminationAgent):
    """PBM-TS: an agent that applies Thompson sampling with the exact posterior of each attraction,
    for the position-based model with known examination probabilities.

    Idea:
        In the position-based model, users examine position l with a known probability κ_l, and
        click an examined item with probability θ, its attraction. For each item, PBM-TS counts the
        clicks S, and for each position l the displays without a click, F_l. In each session, it
        draws θ for each item from the exact posterior by rejection sampling, which is efficient
        because the log density is concave. It shows the K items with the largest draws, the largest
        at the position with the largest κ_l. The posterior has no position bias: a missing click at
        a position where few users look changes the posterior little. The paper proves no regret
        bound. A draw from the exact posterior takes more time than a draw from a Beta distribution,
        and a wrong κ misleads PBM-TS.

    Algorithm:
        ::

            κ_l: the given examination probability of position l
            S_k ← 0 and F_{k,l} ← 0 for each item k and position l: its clicks, its skips there
            for t = 1, 2, ...:
                for each item k:
                    draw θ_k from [0, 1] with density ∝ θ^{S_k} Π_l (1 - κ_l θ)^{F_{k,l}}
                order the items by θ, in decreasing order
                for j = 1, ..., K:
                    put the j-th item on the position of the j-th largest κ
                show this list A(t) and observe the clicks Z_1, ..., Z_K
                for l = 1, ..., K, with A_l(t) the item on position l:
                    S_{A_l(t)} ← S_{A_l(t)} + Z_l
                    F_{A_l(t),l} ← F_{A_l(t),l} + 1 - Z_l

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        examination: ``(K,)`` the probability κ that users examine each position, in ``(0, 1]``;
            ``make_agent`` fills in these probabilities.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``examination`` has a wrong shape or a number outside ``(0, 1]``.

    Source: Lagrée, Vernade, Cappé, *Multiple-play bandits in the position-based model*, NIPS 2016,
        section 5 (PBM-TS).

    Deviations from the paper:
        1. ⚠ Our copy of the paper ends before section 5. We derived the posterior from the
           model, with a uniform prior on θ; ties are broken uniformly at random.

    Example:
        >>> PBMTS(4, 2, examination=[1.0, 0.5], seed=0).rank(None).shape
        (2,)
    """

    paper = "Lagrée et al. 2016, section 5"
    bibtex_keys = ["pbmbandits"]
    state_type, rank_kernel, update_kernel = PBMTSState, rank, update

    def __init__(
        self, n_items: int, n_positions: int, *, examination: ArrayLike, seed: Seed = None
    ) -> None:
        super().__init__(n_items, n_positions, seed, examination=examination)

    def best(self) -> NDArray[np.int64]:
        copies = self.state._replace(**{name: array.copy() for name, array in self.arrays.items()})
        for item in np.flatnonzero(copies.stale):
            entry(build_hat)(copies, item)
        return self._best_by(copies.mode, self.state.positions)
