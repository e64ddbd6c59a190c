"""Cascade agents that detect changes of users and restart: GLR-CascadeKLUCB (Wang et al. 2019).

The generalised likelihood ratio of an item's clicks ``x_1 .. x_n`` since the last restart is the
maximum over s of

    s KL(m_{1:s}, m_{1:n}) + (n - s) KL(m_{s+1:n}, m_{1:n}).

This ratio is computed exactly, with a few operations per session. For fixed n and a fixed sum of
the clicks, it is a convex function of the point ``(s, x_1 + .. + x_s)``, so it is largest at a
vertex of the convex hull of these points. The hull is updated with each observation: a new point
removes the vertices that are no longer on the hull. The ratio is computed only if it may reach the
threshold: one more observation raises it by at most the decrease of the log-likelihood of all n
observations under their mean.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..core.checks import check_count, check_horizon, check_number
from ..core.kernels import kernel
from ..core.state import Floats, Ints
from .agent import Seed
from .cascade import CascadeAgent
from .kl_ucb import C, forget_klucb, rank_klucb, update_klucb
from .shared_kernels import Feedback, examined_positions, log_likelihood

MIN_DELTA = 1e-300  # 3 / δ may overflow for a smaller δ
LONGEST = 2**62  # sessions of a period


class State(NamedTuple):
    # The state of CascadeKL-UCB since the last restart: see `KLUCBState`.
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
    sessions: Annotated[Ints, "1"]  # all sessions
    n_restarts: Annotated[Ints, "1"]
    restart_steps: Annotated[
        Ints, "1000"
    ]  # the number of sessions at each of the last restarts, a ring buffer
    # For each item the lower and the upper part of the convex hull of the points (s, x_1 + .. +
    # x_s), from s = 0 to n.
    hull_s: Annotated[Ints, "L 2 H"]
    hull_sum: Annotated[Ints, "L 2 H"]
    n_vertices: Annotated[Ints, "L 2"]
    likelihood: Annotated[Floats, "L"]  # the maximal log-likelihood of all clicks under one mean
    statistic_bound: Annotated[Floats, "L"]  # an upper bound of the statistic
    threshold: Annotated[Floats, "L"]  # a lower bound of the threshold
    # the random order in which items are forced to the top
    drawn_order: Annotated[Ints, "L"]
    period: int  # ⌊L / p⌋, 0 for p = 0
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
    if n == len(hull_s):  # the memory is full: remove every second vertex
        n = 1
        for i in range(2, len(hull_s), 2):
            hull_s[n], hull_sum[n] = hull_s[i], hull_sum[i]
            n += 1
    hull_s[n], hull_sum[n] = s, total
    state.n_vertices[item, side] = n + 1


@kernel
def statistic(state, item, n, total):
    """Return the generalised likelihood ratio of an item's n observations, ``total`` of which are
    clicks.
    """
    largest = -np.inf
    for side in range(2):
        for i in range(state.n_vertices[item, side]):
            s, before = state.hull_s[item, side, i], state.hull_sum[item, side, i]
            largest = max(
                largest, log_likelihood(before, s) + log_likelihood(total - before, n - s)
            )
    return max(largest - log_likelihood(total, n), 0.0)


@kernel
def has_changed(state, item, n, total):
    """Whether an item's observations, including a new last one, show a change."""
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
        state.statistic_bound[item] = statistic(state, item, n, total)
    return state.statistic_bound[item] >= state.threshold[item]


@kernel
def must_restart(state, ranking, clicks):
    """Add the observations of a session to the tests, after the indices were updated; return
    whether some item changed.
    """
    changed = False
    for k in range(examined_positions(clicks, state.feedback)):
        item = ranking[k]
        changed |= has_changed(state, item, state.examined[item], state.clicks[item])
    return changed


@kernel
def restart(state):
    """Forget all items, and start another segment."""
    state.restart_steps[state.n_restarts[0] % len(state.restart_steps)] = state.sessions[0]
    state.n_restarts[0] += 1
    state.t[0] = 0
    for item in range(len(state.examined)):
        forget_klucb(state, item)
        state.n_vertices[item] = 0
        state.likelihood[item], state.statistic_bound[item], state.threshold[item] = 0.0, 0.0, 0.0


@kernel
def force(state, ranking):
    """In each of the first L sessions of a period, put a different item at the top of the list."""
    if state.period == 0:
        return
    turn = state.t[0] % state.period
    if turn >= len(state.drawn_order):
        return
    item = state.drawn_order[turn]
    place = 0  # the place of the item in the list, or the last place
    while place < len(ranking) - 1 and ranking[place] != item:
        place += 1
    for k in range(place, 0, -1):
        ranking[k] = ranking[k - 1]
    ranking[0] = item


# -------------------------------------------------------------------------------------- the kernels


@kernel
def rank(state, rng, ranking):
    rank_klucb(state, rng, ranking)
    force(state, ranking)


@kernel
def update(state, ranking, clicks):
    state.sessions[0] += 1
    update_klucb(state, ranking, clicks)
    if must_restart(state, ranking, clicks):
        restart(state)


class GLRCascadeKLUCB(CascadeAgent):
    """GLR-CascadeKLUCB: `CascadeKLUCB` that restarts once the clicks on an item show that users
    changed.

    Idea:
        GLR-CascadeKLUCB is made for users of the cascade model who change abruptly: it is
        `CascadeKLUCB` with a change detector. It keeps the clicks on each item since the last
        restart and shows the K items with the largest KL-UCB indices, their upper confidence
        bounds. After every session it tests, by a generalised likelihood ratio, whether an item has
        different click rates before and after some session. If this statistic reaches a threshold
        for one item, the agent forgets the clicks on all items and learns again. To notice changes
        of items outside the list, it shows each item at the top once in ⌊L/p⌋ sessions, where p is
        the share of these forced sessions. It detects abrupt changes, such as the end of a bot
        attack, but neither slow changes nor bots that never stop. The forced sessions always cost
        regret.

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
        n_items: L.
        n_positions: K.
        horizon: T, for the defaults of δ and p.
        n_segments: M, the expected number of stretches without changes; it only sets the default of
            p.
        delta: δ in ``(1e-300, 1)``, the confidence; by default 1/T.
        exploration: p in ``[0, 1]``, the share of forced sessions; by default
            ``min(1, sqrt(M L log T / T))``; 0 forces none.
        n_vertices: the largest number of vertices of the convex hulls, two for each item, from
            which GLR is computed. A hull has about 30 after 10⁵ observations. If it would have more
            than ``n_vertices``, every second one is removed, which may delay a restart.
        feedback: as in `CascadeUCB1`.
        seed: seeds the agent's own generator.

    Attributes:
        state: contains ``n_restarts``, and ``restart_steps``: after which sessions the agent
            restarted, for the last 1000 restarts.

    Raises:
        ValueError: on a bad horizon, number, delta or share, or an unknown feedback rule.

    Source: Wang, Zhou, Li, Varshney, Zhao, *Nearly optimal algorithms for piecewise-stationary
    cascading bandits*, arXiv 2019, Algorithm 1.

    Deviations from the paper:
        1. ⚠ Below a forced item the others follow by index, not at random, which would double the
           regret of these sessions.
        2. ⚠ Items are forced to the top in an order that is drawn once, not in the order of their
           ids.
        3. ⚠ Items are tested only after all observations of a session are added. All items restart
           together, at most once a session.
        4. ⚠ Ties, items not examined yet, several clicks and the exploration term are treated as
           in `CascadeKLUCB`.

    Memory: 32 L ``n_vertices`` bytes, whatever the horizon.

    Example:
        >>> GLRCascadeKLUCB(4, 2, horizon=1000, seed=0).rank(None).shape
        (2,)
    """

    paper = "Wang et al. 2019, Algorithm 1"
    bibtex_keys = ["glrcascade"]
    click_models = "CM that changes over time"
    state_type, rank_kernel, update_kernel = State, rank, update

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
        # A chain of vertices with integer coordinates has few of them: less than the 0.9 n^(2/3)
        # that differ in slope.
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
            "period": math.floor(min(n / p, LONGEST)) if p > 0.0 else 0,
            "log_three_by_delta": math.log(3.0) - math.log(delta),
        }
