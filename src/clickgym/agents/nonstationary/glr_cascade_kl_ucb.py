"""GLR-CascadeKLUCB (Wang et al. 2019), a cascade agent that restarts when it detects a change of
users.

Its change detector is the generalised likelihood ratio (GLR) of an item's clicks ``x_1 .. x_n``
since the last restart, the maximum over s of

    s KL(m_{1:s}, m_{1:n}) + (n - s) KL(m_{s+1:n}, m_{1:n}).

The agent computes the ratio exactly, with a few operations per session. For a fixed n and a fixed
sum of the clicks, the expression is a convex function of the point ``(s, x_1 + .. + x_s)``, so its
maximum lies at a vertex of the convex hull of these points. Each observation adds a point to the
hull and removes the vertices that are no longer on it. The agent computes the ratio only if the
ratio may have reached the threshold: one more observation raises the ratio by at most the decrease
of the log-likelihood of all n observations under their mean.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from ...core.checks import check_count, check_horizon, check_number
from ...core.kernels import kernel
from ...core.state import Floats, Ints
from ..agent import Seed
from ..common.cascade_agent import CascadeAgent, Feedback, examined_positions
from ..common.kl_bounds import log_likelihood
from ..common.kl_ucb_kernels import C, forget_klucb, rank_klucb, update_klucb

MIN_DELTA = 1e-300  # for a smaller δ, 3 / δ may overflow
MAX_PERIOD = 2**62  # the largest number of sessions in a period


class GLRCascadeKLUCBState(NamedTuple):
    # The state of CascadeKL-UCB since the last restart, as in `KLUCBState`.
    clicks: Annotated[Ints, "L"]
    examined: Annotated[Ints, "L"]
    peak: Annotated[Floats, "L"]
    indices: Annotated[Floats, "L", np.inf]
    order: Annotated[Ints, "L", range]
    t: Annotated[Ints, "1"]
    positions: Annotated[Ints, "K", range]
    feedback: int
    c: float
    # The change detector.
    sessions: Annotated[Ints, "1"]  # sessions so far, including those before the last restart
    n_restarts: Annotated[Ints, "1"]
    restart_steps: Annotated[
        Ints, "1000"
    ]  # a ring buffer: the session of each of the last restarts
    # For each item, the lower and the upper part of the convex hull of the points (s, x_1 + .. +
    # x_s), for s from 0 to n.
    hull_s: Annotated[Ints, "L 2 H"]
    hull_sum: Annotated[Ints, "L 2 H"]
    n_vertices: Annotated[Ints, "L 2"]
    likelihood: Annotated[Floats, "L"]  # the maximal log-likelihood if no change occurred
    statistic_bound: Annotated[Floats, "L"]  # an upper bound of the likelihood ratio
    threshold: Annotated[Floats, "L"]  # a lower bound of the threshold for a restart
    # the random order in which sessions force items to the top
    drawn_order: Annotated[Ints, "L"]
    period: int  # ⌊L / p⌋; 0 if p = 0
    log_three_by_delta: float  # log(3 / δ)


# ----------------------------------------------------------------------------------------- the test


@kernel
def add_point(state, item, side, s, total):
    """Add a point at the right end of one part (lower or upper) of an item's hull."""
    hull_s, hull_sum = state.hull_s[item, side], state.hull_sum[item, side]
    n = state.n_vertices[item, side]
    sign = 1 if side == 0 else -1
    while n >= 2:
        run, rise = hull_s[n - 1] - hull_s[n - 2], hull_sum[n - 1] - hull_sum[n - 2]
        if sign * (run * (total - hull_sum[n - 1]) - rise * (s - hull_s[n - 1])) > 0:
            break
        n -= 1
    if n == len(hull_s):  # if the memory is full, remove every second vertex
        n = 1
        for i in range(2, len(hull_s), 2):
            hull_s[n], hull_sum[n] = hull_s[i], hull_sum[i]
            n += 1
    hull_s[n], hull_sum[n] = s, total
    state.n_vertices[item, side] = n + 1


@kernel
def likelihood_ratio(state, item, n, total):
    """Return the likelihood ratio of an item with n observations and ``total`` clicks."""
    largest = -np.inf
    for side in range(2):
        for i in range(state.n_vertices[item, side]):
            s, before = state.hull_s[item, side, i], state.hull_sum[item, side, i]
            largest = max(
                largest, log_likelihood(before, s) + log_likelihood(total - before, n - s)
            )
    return max(largest - log_likelihood(total, n), 0.0)


@kernel
def detect_change(state, item, n, total):
    """Add an item's latest observation to its change detector, and return whether the detector
    reports a change.
    """
    for side in range(2):
        if n == 1:
            add_point(state, item, side, 0, 0)
        add_point(state, item, side, n, total)
    before = state.likelihood[item]
    state.likelihood[item] = log_likelihood(total, n)
    state.statistic_bound[item] += before - state.likelihood[item]
    if n < 2 or state.statistic_bound[item] < state.threshold[item]:
        return False
    state.threshold[item] = state.log_three_by_delta + 1.5 * math.log(n)  # increases with n
    if state.statistic_bound[item] >= state.threshold[item]:
        state.statistic_bound[item] = likelihood_ratio(state, item, n, total)
    return state.statistic_bound[item] >= state.threshold[item]


@kernel
def detect_any_change(state, ranking, clicks):
    """Add the observations of a session to the change detectors, and return whether the detector of
    any item reports a change. The indices must already be updated.
    """
    changed = False
    for k in range(examined_positions(clicks, state.feedback)):
        item = ranking[k]
        changed |= detect_change(state, item, state.examined[item], state.clicks[item])
    return changed


@kernel
def restart(state):
    """Forget the clicks on all items, and count the restart."""
    state.restart_steps[state.n_restarts[0] % len(state.restart_steps)] = state.sessions[0]
    state.n_restarts[0] += 1
    state.t[0] = 0
    for item in range(len(state.examined)):
        forget_klucb(state, item)
        state.n_vertices[item] = 0
        state.likelihood[item], state.statistic_bound[item], state.threshold[item] = 0.0, 0.0, 0.0


@kernel
def place_forced_item(state, ranking):
    """Put a forced item at the top of the list. Each of the first L sessions of a period forces a
    different item; the other sessions force none.
    """
    if state.period == 0:
        return
    turn = state.t[0] % state.period
    if turn >= len(state.drawn_order):
        return
    item = state.drawn_order[turn]
    place = 0  # where the item is in the list; the last place if it is not there
    while place < len(ranking) - 1 and ranking[place] != item:
        place += 1
    for k in range(place, 0, -1):
        ranking[k] = ranking[k - 1]
    ranking[0] = item


# -------------------------------------------------------------------------------------- the kernels


@kernel
def rank(state, rng, ranking):
    rank_klucb(state, rng, ranking)
    place_forced_item(state, ranking)


@kernel
def update(state, ranking, clicks):
    state.sessions[0] += 1
    update_klucb(state, ranking, clicks)
    if detect_any_change(state, ranking, clicks):
        restart(state)


class GLRCascadeKLUCB(CascadeAgent):
    """GLR-CascadeKLUCB: a `CascadeKLUCB` agent that starts again when the clicks on an item show
    that users have changed.

    Idea:
        GLR-CascadeKLUCB is made for users who follow the cascade model, but whose behaviour changes
        abruptly: it is `CascadeKLUCB` with a change detector. It keeps the clicks on each item
        since the last restart and shows the K items with the largest KL-UCB indices, their upper
        confidence bounds. After every session it tests, by a generalised likelihood ratio, whether
        an item has different click rates before and after some session. If the likelihood ratio of
        any item reaches a threshold, the agent forgets the clicks on all items and learns again. To
        notice changes of items outside the list, it shows each item at the top once in ⌊L/p⌋
        sessions, where p is the share of these forced sessions. The agent detects abrupt changes,
        such as the end of a bot attack, but neither slow changes nor bots that never stop. The
        forced sessions always cost regret.

    Algorithm:
        ::

            τ ← 0, the session of the last restart; δ = 1 / T is the confidence
            p = min(1, sqrt(M L log T / T)) is the share of forced sessions;
                M = n_segments, the expected number of stretches
            KL(p, q) is the Kullback-Leibler divergence of Bernoulli laws
            N(e) ← 0, the examinations, and ŵ(e) ← 0, the share of them with a click,
                for each item e
            for t = 1, 2, ..., T:
                b ← max(log(t - τ) + 3 log log(t - τ), 0), the level of confidence
                U(e) ← max{q : N(e) KL(ŵ(e), q) ≤ b}, the upper bound of each item e,
                    and ∞ where N(e) = 0
                R_t ← the list of the K items of largest U, in decreasing order, ties at random
                j ← (t - τ - 1) mod ⌊L / p⌋
                if j < L:
                    move the (j + 1)-th item of a fixed random order to the top of R_t
                show R_t and observe the clicks c(1), ..., c(K), each 0 or 1
                k' ← the position of the last click (with feedback="first_click": the first),
                    or K without a click
                for k = 1, ..., k', the examined positions:
                    add c(k) to the observations x_1, ..., x_n of R_t(k); update N and ŵ
                for each item e with new observations:
                    m, m_s, m'_s ← the means of all n, of the first s,
                        of the other observations of e
                    GLR(e) ← max_s s KL(m_s, m) + (n - s) KL(m'_s, m)
                if GLR(e) ≥ log(3 n^{3/2} / δ) for one of them:
                    τ ← t; forget the observations, N and ŵ of all items

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        horizon: the number of sessions, T, from which the defaults of δ and p are computed.
        n_segments: the expected number of stretches without changes, M, which only affects the
            default of p.
        delta: the confidence parameter δ, in ``(1e-300, 1)``; with a smaller δ, a restart requires
            more evidence. By default, 1/T.
        exploration: the share p of forced sessions, in ``[0, 1]``; by default ``min(1, sqrt(M L log
            T / T))``. With 0, no session is forced.
        n_vertices: the largest number of vertices of a convex hull from which GLR is computed; each
            item has two hulls. After 10⁵ observations, a hull has about 30 vertices. When a hull
            would have more than ``n_vertices``, every second vertex is removed, which may delay a
            restart.
        feedback: the positions that count as examined, ``"last_click"`` or ``"first_click"``; see
            `CascadeUCB1`.
        seed: the seed of the agent's own random generator.

    Attributes:
        state: the named tuple of the state. ``state.n_restarts`` is the number of restarts, and
            ``state.restart_steps`` holds the sessions after which the last 1000 restarts took
            place.

    Raises:
        ValueError: an argument is invalid; the message names the argument.

    Source: Wang, Zhou, Li, Varshney, Zhao, *Nearly optimal algorithms for piecewise-stationary
    cascading bandits*, arXiv 2019, Algorithm 1.

    Deviations from the paper:
        1. ⚠ Below a forced item, the other items are sorted by index. In the paper they are in
           random order, which would double the regret of these sessions.
        2. ⚠ The agent forces items to the top in an order that it draws once. The paper uses the
           order of the item ids.
        3. ⚠ The agent runs the tests only after it has added all observations of a session. All
           items restart together, at most once per session.
        4. ⚠ Ties, items that were never examined, sessions with several clicks and the exploration
           term are treated as in `CascadeKLUCB`.

    Memory: 32 L ``n_vertices`` bytes, independent of the horizon.

    Example:
        >>> GLRCascadeKLUCB(4, 2, horizon=1000, seed=0).rank(None).shape
        (2,)
    """

    paper = "Wang et al. 2019, Algorithm 1"
    bibtex_keys = ["glrcascade"]
    click_models = "CM that changes over time"
    made_for_models = ("CM",)
    state_type, rank_kernel, update_kernel = GLRCascadeKLUCBState, rank, update

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        horizon: float,
        feedback: Feedback = "last_click",
        n_segments: int = 1,
        delta: float | None = None,
        exploration: float | None = None,
        n_vertices: int = 1000,
        seed: Seed = None,
    ) -> None:
        super().__init__(
            n_items,
            n_positions,
            seed,
            feedback=feedback,
            horizon=check_horizon(horizon, 2),
            n_segments=check_count("n_segments", n_segments),
            delta=None if delta is None else check_number("delta", delta, above=MIN_DELTA, below=1),
            exploration=None
            if exploration is None
            else check_number("exploration", exploration, 0, 1),
            n_vertices=check_count("n_vertices", n_vertices, 4),
        )

    def sizes(self) -> dict[str, int]:
        # Edges of a hull differ in slope, and the coordinates of its vertices are integers, so a
        # hull has fewer than 0.9 n^(2/3) vertices.
        most = 8 + math.ceil(self.hyperparameters["horizon"] ** (2 / 3))
        return super().sizes() | {"H": min(self.hyperparameters["n_vertices"], most)}

    def first_values(self) -> dict[str, Any]:
        n, horizon = self.n_items, self.hyperparameters["horizon"]
        delta = self.hyperparameters["delta"] or 1.0 / horizon
        p = self.hyperparameters["exploration"]
        if p is None:
            n_segments = self.hyperparameters["n_segments"]
            p = min(1.0, math.sqrt(n_segments * n * math.log(horizon) / horizon))
        return super().first_values() | {
            "c": C,
            "drawn_order": self.rng.permutation(n),
            "period": math.floor(min(n / p, MAX_PERIOD)) if p > 0.0 else 0,
            "log_three_by_delta": math.log(3.0) - math.log(delta),
        }
