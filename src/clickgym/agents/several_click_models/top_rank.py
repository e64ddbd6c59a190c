"""TopRank (Lattimore et al. 2018), an agent for many click models that compares pairs of items."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_horizon, check_number
from ...core.kernels import kernel
from ...core.state import Flags, Ints
from ..agent import Seed
from ..common.ranking import show, shuffle_front
from ..compiled_agent import CompiledAgent
from .topological_layers import topological_layers

# The paper's constant c. The printed value 3.43 is a misprint for 3.3437.
C = 4.0 * math.sqrt(2.0 / math.pi) / math.erf(math.sqrt(2.0))
MIN_DELTA = 1e-300  # for a smaller δ, c / δ may overflow


class TopRankState(NamedTuple):
    wins: Annotated[Ints, "L L"]  # sessions with a click on i, none on j, both in one block
    beats: Annotated[Flags, "L L"]  # the relation G: i is better than j
    order: Annotated[Ints, "L", range]  # items, block by block
    block: Annotated[Ints, "L"]  # the block of each item
    # the start of each block in `order`, then the end of the last block
    start: Annotated[Ints, "L+1"]
    n_blocks: Annotated[Ints, "1", 1]
    clicked: Annotated[Flags, "L"]  # all false between sessions
    log_c_delta: float  # log(c / δ)


@kernel
def rank(state, rng, ranking):
    n_positions = len(ranking)
    for b in range(state.n_blocks[0]):
        start, stop = state.start[b], state.start[b + 1]
        if start >= n_positions:
            break
        shuffle_front(rng, state.order, start, stop, min(stop, n_positions) - start)
    show(state.order, ranking)


@kernel
def count_win(state, i, j):
    """Count a session with a click on item i and no click on item j, and return whether i now beats
    j.
    """
    state.wins[i, j] += 1
    s = state.wins[i, j] - state.wins[j, i]  # S_ij
    n = state.wins[i, j] + state.wins[j, i]  # N_ij
    # The condition is S ≥ sqrt(2 N log(c sqrt(N) / δ)). N is at least 1, so the first comparison
    # often makes computing log N unnecessary.
    if s <= 0 or s * s < 2.0 * n * state.log_c_delta or state.beats[i, j]:
        return False
    state.beats[i, j] = s * s >= 2.0 * n * (state.log_c_delta + 0.5 * math.log(n))
    return state.beats[i, j]


@kernel
def update(state, ranking, clicks):
    changed = False
    for k in range(len(ranking)):
        state.clicked[ranking[k]] = clicks[k]
    for k in range(len(ranking)):
        if clicks[k]:
            i = ranking[k]
            for place in range(state.start[state.block[i]], state.start[state.block[i] + 1]):
                j = state.order[place]
                if not state.clicked[j]:  # this excludes i itself
                    changed = count_win(state, i, j) or changed
    for k in range(len(ranking)):
        state.clicked[ranking[k]] = False
    if changed:
        state.n_blocks[0] = topological_layers(state.beats, state.block, state.order, state.start)


class TopRank(CompiledAgent):
    """TopRank: an agent that shows blocks of items, each in random order, and divides a block once
    the clicks show that some of its items are better than others.

    Idea:
        TopRank learns an order of the items in many click models, among them the cascade and the
        position-based model. For each pair of items in one block, it counts the sessions N with a
        click on exactly one, and the difference S of their clicks. Once S is large enough for the
        current N, the item with more clicks beats the other forever. The first block contains the
        items that no other item beats, the second block those that only items of the first block
        beat, and so on. TopRank shows the blocks in this order and shuffles each block, so both
        items of a pair appear equally often at well-examined positions. TopRank compares items only
        within a block and never revises a relation, so its list stays wrong if users change or bots
        click early.

    Algorithm:
        ::

            G ← ∅, the relation of pairs (i, j) in which i beats j;
                δ = 1 / T is the confidence, and c = 3.34 a constant
            S_ij ← 0, the difference of clicks, and N_ij ← 0,
                the sessions with a click on one of both, for all pairs
            for t = 1, 2, ...:
                rest ← all L items; d ← 0, the number of blocks
                while rest is not empty:
                    d ← d + 1
                    P_d ← block d: the items of rest that no item of rest beats
                        (all of rest if they beat each other in a circle)
                    rest ← rest without P_d
                A_t ← the list of the first K items of P_1, P_2, ..., each block in random order
                show A_t; C_i ← 1 if item i was clicked, else 0 (also if it was not shown)
                for all pairs i, j in one block, of which the list shows a part:
                    S_ij ← S_ij + C_i - C_j
                    N_ij ← N_ij + |C_i - C_j|
                    if N_ij > 0 and S_ij ≥ sqrt(2 N_ij log((c / δ) sqrt(N_ij))):
                        G ← G ∪ {(i, j)}

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        horizon: the number of sessions, T, from which the default of δ is computed.
        delta: the confidence parameter δ, in ``(1e-300, 1)``; with a smaller δ, a relation requires
            more clicks. By default, ``1 / T``.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``horizon`` is invalid, or ``delta`` is outside ``(1e-300, 1)``.

    Source: Lattimore, Kveton, Li, Szepesvári, *TopRank: a practical algorithm for online stochastic
    ranking*, NeurIPS 2018, Algorithm 1.

    Deviations from the paper:
        1. The constant is ``c = 4 sqrt(2/π) / erf(√2) = 3.3437``. The paper prints 3.43, which is a
           misprint.
        2. ⚠ A pair from one block counts even if the list shows only one of its items: a block may
           reach below the list, and items that are not shown count as not clicked.
        3. In the rare case of a cycle in the relation, every remaining item is beaten; all
           remaining items then form one block.

    Example:
        >>> TopRank(4, 2, horizon=1000, seed=0).rank(None).shape
        (2,)
    """

    paper = "Lattimore et al. 2018, Algorithm 1"
    bibtex_keys = ["toprank"]
    click_models = "CM, PBM, DCM and similar models"
    made_for_models = ("CM", "PBM", "DCM")
    state_type, rank_kernel, update_kernel = TopRankState, rank, update

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        horizon: float,
        delta: float | None = None,
        seed: Seed = None,
    ) -> None:
        horizon = check_horizon(horizon, 2)
        if delta is not None:
            delta = check_number("delta", delta, above=MIN_DELTA, below=1)
        super().__init__(n_items, n_positions, seed, horizon=horizon, delta=delta)

    def best(self) -> NDArray[np.int64]:
        state = self.state
        net_wins = (state.wins - state.wins.T).sum(axis=1)
        return np.lexsort((-net_wins, state.block))[: self.n_positions]

    def first_values(self) -> dict[str, Any]:
        n = self.n_items
        delta = self.hyperparameters["delta"] or 1.0 / self.hyperparameters["horizon"]
        return {
            "start": np.array([0] + [n] * n),
            "log_c_delta": math.log(C / delta),
        }
