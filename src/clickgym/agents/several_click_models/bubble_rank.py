"""BubbleRank (Li et al. 2019), an agent that safely improves a production list by exchanging
neighbouring items.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.checks import as_array, check_count, check_horizon, check_number, check_positions
from ...core.kernels import kernel
from ...core.state import Flags, Floats, Ints
from ...envs.spaces import named_ranking
from ..agent import Seed
from ..compiled_agent import CompiledAgent


class BubbleRankState(NamedTuple):
    base: Annotated[Ints, "L"]  # the base list R̄, then the items below it
    initial: Annotated[Ints, "L"]  # R_0, then the items below it
    s: Annotated[Ints, "L L"]  # s(i, j): clicks on i alone minus clicks on j alone
    n: Annotated[Ints, "L L"]  # n(i, j): clicks on i alone plus clicks on j alone
    t: Annotated[Ints, "1"]  # sessions so far
    randomised: Annotated[Flags, "K"]  # whether positions k, k + 1 may be exchanged
    rivals: Annotated[Ints, "2", -1]  # the item at position K and its challenger, or -1
    estimate: Ints  # (1,) T, or its estimate, which doubles when reached
    log_delta: Floats  # (1,) log(1/δ)
    doubling: bool


@kernel
def beats(state, i, j):
    """Return whether item i beats item j by enough clicks: s(i, j) > 2 sqrt(n(i, j) log(1/δ))."""
    s = state.s[i, j]
    return s > 0 and s * s > 4.0 * state.n[i, j] * state.log_delta[0]


@kernel
def start_again(state):
    """Double the estimated horizon, and make the initial list the base list again."""
    state.estimate[0] *= 2
    state.log_delta[0] = 4.0 * math.log(state.estimate[0])
    for i in range(len(state.base)):
        state.base[i] = state.initial[i]


@kernel
def rank(state, rng, ranking):
    if state.doubling and state.t[0] == state.estimate[0]:
        start_again(state)
    n_items, n_positions = len(state.base), len(ranking)
    for k in range(n_positions):
        ranking[k] = state.base[k]
        state.randomised[k] = False
    # h - 1, where h is the position at which the first pair begins: the first position in odd
    # sessions; t counts the past sessions.
    first = state.t[0] % 2
    for k in range(first, n_positions - 1, 2):
        upper, lower = state.base[k], state.base[k + 1]
        if not beats(state, upper, lower):
            state.randomised[k] = True
            if rng.random() < 0.5:
                ranking[k], ranking[k + 1] = lower, upper
    # The last position may be in no pair; with K = 1, it never is.
    state.rivals[1] = -1
    if n_positions < n_items and ((n_positions - first) % 2 == 1 or n_positions == 1):
        last = state.base[n_positions - 1]
        n_eligible = 0
        for place in range(n_positions, n_items):
            if not beats(state, last, state.base[place]):
                n_eligible += 1
                if int(rng.random() * n_eligible) == 0:  # gives all equal probability
                    state.rivals[1] = state.base[place]
        if n_eligible > 0:
            state.rivals[0] = last
            if rng.random() < 0.5:
                ranking[n_positions - 1] = state.rivals[1]


@kernel
def count_comparison(state, i, j, difference):
    """Count a session in which exactly one of i and j was clicked: ``difference`` is 1 for a click
    on i, and -1 for a click on j.
    """
    state.s[i, j] += difference
    state.s[j, i] -= difference
    state.n[i, j] += 1
    state.n[j, i] += 1


@kernel
def update(state, ranking, clicks):
    state.t[0] += 1
    n_positions = len(ranking)
    base = state.base
    for k in range(n_positions - 1):
        if state.randomised[k] and clicks[k] != clicks[k + 1]:
            count_comparison(state, ranking[k], ranking[k + 1], clicks[k] - clicks[k + 1])
    last, challenger = state.rivals[0], state.rivals[1]
    if challenger >= 0 and clicks[n_positions - 1] == 1:  # exactly one of the two was shown
        shown = ranking[n_positions - 1]
        count_comparison(state, shown, challenger if shown == last else last, 1)
    for k in range(n_positions - 1):
        if beats(state, base[k + 1], base[k]):
            base[k], base[k + 1] = base[k + 1], base[k]
    if challenger >= 0 and beats(state, challenger, base[n_positions - 1]):
        place = n_positions
        while base[place] != challenger:
            place += 1
        base[place], base[n_positions - 1] = base[n_positions - 1], challenger


def check_initial(initial: ArrayLike, n_items: int, n_positions: int) -> NDArray[np.int64]:
    """Check a production list of K or of all L items, and return it as an array."""
    check_positions(n_positions, check_count("n_items", n_items))
    shape = as_array("initial", initial).shape
    length = n_positions if shape == (n_positions,) else n_items
    return named_ranking("initial", initial, n_items, length)


class BubbleRank(CompiledAgent):
    """BubbleRank: an agent that tries random exchanges of neighbouring items in a production list,
    and keeps the exchanges that get more clicks.

    Idea:
        BubbleRank is made for systems that have a production list and must, with high probability,
        never show a much worse list while they learn. Pass the production list as `initial`, the
        first base list; without it, BubbleRank starts from a random list, which is not safe. In
        each session it takes every second pair of neighbours and exchanges the two items of each
        undecided pair with probability 1/2; if K < L, it may also exchange the last item for an
        item from below the list. Both items of a pair appear at both of its positions equally
        often, so their clicks can be compared. BubbleRank counts n, the sessions in which exactly
        one of the two items was clicked. Once the difference s of their clicks is large enough for
        n, the pair is decided, and the better item moves up in the base list. An item rises only
        one position at a time, so the regret is high if the production list is bad.

    Algorithm:
        ::

            R ← R_0, the base list, which starts as the production ranking (argument initial);
                R(k) is its item at position k
            s(i, j) ← 0, clicks on i alone minus clicks on j alone, and n(i, j) ← 0,
                the sessions with one of these
            i beats j if s(i, j) > 2 sqrt(n(i, j) log(1 / δ));
                δ = T^{-4} is the probability of an error
            for t = 1, 2, ..., T:
                R_t ← R, the list to show; h ← 1 if t is odd, else 2, the first position of a pair
                for k = h, h + 2, ... below K:
                    unless R(k) beats R(k + 1) (the pair is decided): exchange R_t(k) and R_t(k + 1)
                        with probability 1/2
                if K < L and position K is in no pair:
                    j ← a random item below the list that R(K) does not beat, the challenger;
                        R_t(K) ← j with probability 1/2
                show R_t and observe the clicks c(i) on each item i, 0 for an item that is not shown
                for each pair i, j that could be exchanged and has c(i) ≠ c(j):
                    s(i, j) ← s(i, j) + c(i) - c(j); s(j, i) ← -s(i, j)
                    n(i, j) ← n(i, j) + 1; n(j, i) ← n(i, j)
                for k = 1, ..., K - 1:
                    if R(k + 1) beats R(k): exchange them in R
                if the challenger j beats R(K): exchange them in R

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K. If K < L, the agent sometimes tries an
            item from below the list at the last position.
        initial: the production list R_0, of K or of all L items; always pass it for real users.
            Items that it leaves out follow in random order. ``make_agent`` fills in the instance's
            production list, if the instance has one. By default, the agent starts from a random
            list, which is not safe.
        delta: the confidence parameter δ, in ``(0, 1)``; a smaller δ requires more clicks for a
            decision. By default, ``T^{-4}``.
        horizon: the number of sessions, T, from which the default of δ is computed. By default, the
            agent uses an estimate of T, which starts at 2 and doubles each time it is reached.
            Unused if you pass ``delta``.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``initial``, ``delta`` or ``horizon`` is invalid.

    Source: Li, Kveton, Lattimore, Markov, de Rijke, Szepesvári, Zoghi, *BubbleRank: safe online
    learning to re-rank via implicit click feedback*, UAI 2019, Algorithm 1 and section 4.3.

    Deviations from the paper:
        1. ⚠ Line 5 of Algorithm 1 and the text of the paper disagree about where pairs begin in the
           first session. Here pairs begin at the first position at odd t, as in the text. The rule
           for K < L in section 4.3 follows line 5 instead; here the last position is challenged
           whenever it is in no pair.
        2. ⚠ Lines 13-19 as printed update the statistics of every pair of neighbours. But a decided
           pair is shown in a fixed order, so its clicks have position bias, and Lemma 7 of the
           paper requires that its statistics no longer change. Here only pairs that can be
           exchanged are updated.
        3. Without a horizon, the agent estimates T and doubles the estimate when it is reached. At
           each doubling, the base list becomes R_0 again. The statistics are kept, so most
           exchanges are repeated immediately; but δ becomes smaller, so a decided pair may become
           undecided.

    Example:
        >>> BubbleRank(4, 3, initial=[3, 1, 0], seed=0).state.base[:3]
        array([3, 1, 0])
    """

    paper = "Li et al. 2019, BubbleRank, Algorithm 1"
    bibtex_keys = ["bubblerank"]
    click_models = "CM, DCM, PBM and similar models"
    made_for_models = ("CM", "DCM", "PBM")
    state_type, rank_kernel, update_kernel = BubbleRankState, rank, update
    requires = {"initial": "initial_ranking"}

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        initial: ArrayLike | None = None,
        delta: float | None = None,
        horizon: float | None = None,
        seed: Seed = None,
    ) -> None:
        if initial is not None:
            initial = check_initial(initial, n_items, n_positions)
        if delta is not None:
            delta = check_number("delta", delta, above=0, below=1)
        if horizon is not None:
            horizon = check_horizon(horizon, 2)
        super().__init__(n_items, n_positions, seed, initial=initial, delta=delta, horizon=horizon)

    def best(self) -> NDArray[np.int64]:
        return self.state.base[: self.n_positions].copy()

    def first_values(self) -> dict[str, Any]:
        initial, delta = self.hyperparameters["initial"], self.hyperparameters["delta"]
        top = np.array([] if initial is None else initial, np.int64)
        others = self.rng.permutation(np.setdiff1d(np.arange(self.n_items), top))
        base = np.concatenate([top, others])
        horizon = self.hyperparameters["horizon"] or 2
        log_delta = 4.0 * math.log(horizon) if delta is None else -math.log(delta)
        return {
            "base": base,
            "initial": base.copy(),
            "estimate": np.array([horizon]),
            "log_delta": np.array([log_delta]),
            "doubling": delta is None and self.hyperparameters["horizon"] is None,
        }
