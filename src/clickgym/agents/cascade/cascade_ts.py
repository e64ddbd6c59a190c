"""CascadeTS (Hüyük and Tekin 2019), a cascade agent with Thompson sampling."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ..agent import Seed
from ..common.cascade_agent import CascadeAgent, Feedback, examined_positions
from ..common.ranking import rank_by_draw, show


class CascadeTSState(NamedTuple):
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]
    draws: Annotated[Floats, "L"]  # this session's draw from each item's posterior
    order: Annotated[Ints, "L", range]  # the K items with the largest draws, then the others
    feedback: int


@kernel
def rank(state, rng, ranking):
    for item in range(len(state.draws)):
        clicks = state.clicks[item]
        state.draws[item] = rng.beta(1.0 + clicks, 1.0 + state.examined[item] - clicks)
    rank_by_draw(state.draws, state.order, rng, len(ranking))
    show(state.order, ranking)


@kernel
def update(state, ranking, clicks):
    for k in range(examined_positions(clicks, state.feedback)):
        state.clicks[ranking[k]] += clicks[k]
        state.examined[ranking[k]] += 1


class CascadeTS(CascadeAgent):
    """CascadeTS: an agent for the cascade model that draws the attraction of each item from its
    Beta posterior and shows the K items with the largest draws.

    Idea:
        CascadeTS assumes the cascade model: a user scans the list from the top, clicks the first
        attractive item, and leaves. It keeps a Beta posterior of each item's attraction, which
        starts as the uniform distribution. Positions down to the last click count as examined, or
        all positions if there is no click. In each session it draws one attraction for each item
        from its posterior and shows the K items with the largest draws. CascadeTS explores less
        than agents with upper confidence bounds: it tries an item about as often as the item is
        likely to be in the best list, and its regret grows only with log t. If users skip low
        positions, as in a position-based model, CascadeTS underestimates the items there. False
        clicks at the start mislead it for many sessions.

    Algorithm:
        ::

            S(i) ← 0, the clicks, and F(i) ← 0, the examinations without a click, for each item i
            for t = 1, 2, ...:
                for each item i:
                    draw an attraction θ(i) from its posterior Beta(1 + S(i), 1 + F(i))
                R_t ← the list of the K items of largest θ, in decreasing order
                show R_t and observe the clicks c(1), ..., c(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first),
                    or K without a click
                for k = 1, ..., k', the examined positions:
                    S(R_t(k)) ← S(R_t(k)) + c(k)
                    F(R_t(k)) ← F(R_t(k)) + 1 - c(k)

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        feedback: the positions that count as examined, ``"last_click"`` or ``"first_click"``; see
            `CascadeUCB1`.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``feedback`` is neither ``"last_click"`` nor ``"first_click"``.

    Source: Hüyük, Tekin, *Analysis of Thompson sampling for combinatorial multi-armed bandit with
    probabilistically triggered arms*, AISTATS 2019, Algorithm 1 (CTS); Zhong, Cheung, Tan,
    *Thompson sampling algorithms for cascading bandits*, JMLR 2021, section 3, which bounds its
    regret in cascades.

    Deviations from the paper:
        1. ⚠ A session with several clicks is treated as in `CascadeUCB1`.

    Example:
        >>> CascadeTS(4, 2, seed=0).rank(None).shape
        (2,)
    """

    paper = "Hüyük and Tekin 2019, Algorithm 1; Zhong et al. 2021, section 3"
    bibtex_keys = ["cts", "cascadingts"]
    state_type, rank_kernel, update_kernel = CascadeTSState, rank, update

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        feedback: Feedback = "last_click",
        seed: Seed = None,
    ) -> None:
        super().__init__(n_items, n_positions, seed, feedback=feedback)
