"""CascadeSWUCB (Li and de Rijke 2019), a cascade agent that counts only the last sessions."""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.checks import check_count, check_horizon, check_number
from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ..agent import Seed
from ..common.cascade_agent import CascadeAgent, Feedback, examined_positions
from ..common.ranking import rank_by_bounds

MAX_WINDOW_HORIZON = 2**26
"""The session at which the window stops growing if the horizon is unknown. The window needs a
largest size, because its memory is allocated at the start.
"""


class CascadeSWUCBState(NamedTuple):
    clicks: Annotated[Ints, "L"]  # X, the clicks on each item in the window
    examined: Annotated[Ints, "L"]  # N, the examinations of each item in the window
    mean: Annotated[Floats, "L", np.inf]  # X / N; infinite if N = 0
    width: Annotated[Floats, "L"]  # 1 / sqrt(N); 0 if N = 0
    indices: Annotated[Floats, "L", np.inf]
    order: Annotated[Ints, "L", range]  # items, sorted by index
    t: Annotated[Ints, "1"]  # sessions so far
    tau: Annotated[Ints, "1", 1]  # τ
    next_doubling: Ints  # (1,) the session at which τ changes, a power of 2; 0: never
    # A ring buffer with session t in row t mod W. An entry is 2 · item + click, or -1 if the
    # position was not examined.
    window: Annotated[NDArray[np.int32], "W K"]  # W, the capacity
    oldest: Annotated[Ints, "1", 1]  # the oldest session that still counts
    epsilon: float
    feedback: int


@kernel
def window_length(n):
    """Return the default length of the window for n sessions, τ = ⌈2 sqrt(n ln n)⌉."""
    return max(math.ceil(2.0 * math.sqrt(n * math.log(n))), 1)


@kernel
def add_counts(state, item, clicks, examined):
    state.clicks[item] += clicks
    state.examined[item] += examined
    n = state.examined[item]
    state.mean[item] = state.clicks[item] / n if n > 0 else np.inf
    state.width[item] = 1.0 / math.sqrt(n) if n > 0 else 0.0


@kernel
def rank(state, rng, ranking):
    # The bound is U = X/N + sqrt(ε log(min(t, τ)) / N).
    radius = math.sqrt(state.epsilon * math.log(min(state.t[0] + 1, state.tau[0])))
    rank_by_bounds(state, radius, rng, ranking)


@kernel
def move_window(state):
    """Subtract the sessions that leave the window from the counts, and clear the window's row for
    the current session.
    """
    t, capacity = state.t[0], state.window.shape[0]
    while state.oldest[0] <= t - state.tau[0]:
        row = state.oldest[0] % capacity
        for k in range(state.window.shape[1]):
            entry = state.window[row, k]
            if entry >= 0:
                add_counts(state, entry // 2, -(entry % 2), -1)
        state.oldest[0] += 1
    for k in range(state.window.shape[1]):
        state.window[t % capacity, k] = -1


@kernel
def update(state, ranking, clicks):
    state.t[0] += 1
    move_window(state)
    row = state.t[0] % state.window.shape[0]
    for k in range(examined_positions(clicks, state.feedback)):
        state.window[row, k] = 2 * ranking[k] + clicks[k]
        add_counts(state, ranking[k], clicks[k], 1)
    following = state.t[0] + 1
    if following == state.next_doubling[0] and following < MAX_WINDOW_HORIZON:
        state.tau[0] = window_length(following)
        state.next_doubling[0] = 2 * following


class CascadeSWUCB(CascadeAgent):
    """CascadeSWUCB: a cascade UCB agent for users whose behaviour changes. It counts only the
    clicks of the last τ sessions (a sliding window).

    Idea:
        CascadeSWUCB is made for users who follow the cascade model (they scan from the top, click
        one item and leave), but whose behaviour changes abruptly and without notice. It counts the
        examinations N and the clicks X of each item over its window, the last τ sessions. It shows
        the K items with the largest mean X / N plus a bonus, and items that were not examined in
        the window come first. All clicks from before a change have left the window τ sessions after
        the change, so CascadeSWUCB finds the new order sooner than `CascadeDUCB`, in which old
        clicks fade slowly. CascadeSWUCB tries every item again in each window. With its default ε,
        it therefore loses many more clicks than `CascadeKLUCB` if users do not change.

    Algorithm:
        ::

            τ = ⌈2 sqrt(T log T)⌉ is the length of the window, and ε = 0.5 the weight of exploration
            for t = 1, 2, ..., T:
                X(a) ← the clicks on item a in the sessions t - τ, ..., t - 1, for each item a
                N(a) ← the number of these sessions in which a was examined
                for each item a:
                    U(a) ← X(a) / N(a) + sqrt(ε log(min(t, τ)) / N(a)), its upper bound,
                        and ∞ where N(a) = 0
                R_t ← the list of the K items of largest U, in decreasing order, ties at random
                show R_t and observe the clicks c(1), ..., c(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first),
                    or K without a click
                for k = 1, ..., k', the examined positions:
                    keep that R_t(k) was examined in session t, and its click c(k)

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        tau: the length of the window in sessions, τ ≥ 1; by default ``⌈2 sqrt(T ln T)⌉``, as in the
            paper's experiments.
        epsilon: the weight of exploration in the bonus, ε > 0. The paper's experiments use 0.5; its
            theorem requires a larger value.
        horizon: the number of sessions, T, from which the default of τ is computed. By default, the
            agent uses an estimate of T that doubles when it is reached: ``τ = ⌈2 sqrt(2^k ln
            2^k)⌉`` for ``2^k ≤ t < 2^{k+1}``. The window keeps its sessions while it grows; τ stays
            constant from t = 2²⁶ on.
        feedback: the positions that count as examined, ``"last_click"`` or ``"first_click"``; see
            `CascadeUCB1`.
        seed: the seed of the agent's own random generator.

    Raises:
        ValueError: ``tau`` is below 1, ``epsilon`` is not positive, or ``horizon`` or ``feedback``
            is invalid.

    Source: the paper of `CascadeDUCB`, Algorithm 1 with eq. 7 and 8.

    Deviations from the paper:
        1. ⚠ In the paper, line 19 counts the items that were shown in the window, but lines 21-24
           count those that were examined. A shown item that was not examined would then count as
           unattractive. Here both lines count the examined items.
        2. ⚠ As in `CascadeDUCB`, an item with ``N = 0`` ranks before every other item, and ties are
           broken uniformly at random.

    Time: updating the window takes O(K) operations per session, independent of τ.

    Example:
        >>> CascadeSWUCB(4, 2, horizon=1000, seed=0).state.tau
        array([167])
    """

    paper = "Li and de Rijke 2019, Algorithm 1"
    bibtex_keys = ["cascadingnonstationary"]
    click_models = "CM that changes over time"
    made_for_models = ("CM",)
    state_type, rank_kernel, update_kernel = CascadeSWUCBState, rank, update

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        feedback: Feedback = "last_click",
        tau: float | None = None,
        epsilon: float = 0.5,
        horizon: float | None = None,
        seed: Seed = None,
    ) -> None:
        if tau is not None:
            tau = check_count("tau", math.ceil(check_number("tau", tau, 1)))
        super().__init__(
            n_items,
            n_positions,
            seed,
            feedback=feedback,
            tau=tau,
            epsilon=check_number("epsilon", epsilon, above=0),
            horizon=None if horizon is None else check_horizon(horizon),
        )

    def sizes(self) -> dict[str, int]:
        tau, horizon = self.hyperparameters["tau"], self.hyperparameters["horizon"]
        longest = MAX_WINDOW_HORIZON if horizon is None else horizon
        return super().sizes() | {"W": window_length(longest) if tau is None else tau}

    def first_values(self) -> dict[str, Any]:
        tau, horizon = self.hyperparameters["tau"], self.hyperparameters["horizon"]
        unknown_horizon = tau is None and horizon is None
        if tau is None:
            tau = window_length(2 if horizon is None else horizon)
        return super().first_values() | {
            "tau": np.array([tau]),
            "next_doubling": np.array([2 if unknown_horizon else 0]),
        }
