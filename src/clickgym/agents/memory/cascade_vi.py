"""CascadeVI, an agent for users with memory that plans optimistically, after CascadingVI (Du,
Srikant and Chen, ICLR 2024).
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...core.checks import as_numbers, check_count, check_number
from ...core.kernels import kernel
from ...core.state import IS_FIRST, STATE, Floats, Ints
from ...envs.simulation.scan import scan
from ..agent import Seed
from ..common.kl_bounds import exploration, kl_upper
from ..compiled_agent import StateAgent

C = 3.0
"""The constant c of the confidence level log t + c log log t, as in CascadeKL-UCB."""
REPLAN_FACTOR = 1.01
"""The agent makes a new plan when the number of sessions has grown by this factor since its last
plan.
"""
TOLERANCE = 1e-4
"""The tolerance of value iteration, as a fraction of the largest possible total reward from one
user.
"""


class CascadeVIState(NamedTuple):
    examined: Annotated[Ints, "S L"]  # N, the examinations of each item
    clicks: Annotated[Ints, "S L"]
    # counts of next states, after a click on each item and after no click
    moves: Annotated[Ints, "S L+1 S"]
    # state and outcome of the last session; -1 once its next state is counted
    last: Annotated[Ints, "2", -1]
    t: Annotated[Ints, "1", 1]  # the session, counted from 1
    next_plan: Annotated[Ints, "1", 1]  # the session before which the next plan is made
    lists: Annotated[Ints, "S K"]  # the list that the plan shows in each state
    values: Annotated[Floats, "S"]  # V of the plan
    upper: Annotated[Floats, "S L", 1.0]  # the optimistic attraction q
    worth: Annotated[Floats, "L+1"]  # w; working memory, as are the fields below
    labels: Annotated[Ints, "L", range]  # a random order, which breaks ties
    gain: Annotated[Floats, "L"]  # working memory of `scan`, as are the next five fields
    continuation: Annotated[Floats, "L"]
    ratio: Annotated[Floats, "L"]
    order: Annotated[Ints, "L", range]
    table: Annotated[Floats, "L+1 K+1"]
    chosen: Annotated[Ints, "K"]
    click_rewards: Floats  # (S, L) r
    discount: float  # γ
    bonus: float
    least_change: float


@kernel
def optimistic_value(moves, values, best, level, bonus):
    """Return the expected value of the next state after an outcome, estimated optimistically: part
    of the probability moves to the best state.
    """
    n, total = 0, 0.0
    for s in range(len(values)):
        n += moves[s]
        total += moves[s] * values[s]
    if n == 0:
        return best
    share = min(1.0, bonus * math.sqrt(level / n))
    return (1.0 - share) * total / n + share * best


@kernel
def best_list(state, attraction, worth, ranking):
    """Write the best list into ``ranking`` and return its value: the expected worth of the outcome
    of a session, in which the user reads the list from the top and clicks at most one item.

    Args:
        state: an agent's state, with the random order of items and the working memory of
            `CascadeVIState`.
        attraction: ``(L,)`` probabilities that an examined item is clicked.
        worth: ``(L + 1,)`` the worth of a click on each item, then the worth of no click.
        ranking: ``(K,)`` output. Items that are equally good are in the order of ``state.labels``.
    """
    n_items = len(state.labels)
    for i in range(n_items):
        item = state.labels[i]
        state.gain[i] = attraction[item] * worth[item]
        state.continuation[i] = 1.0 - attraction[item]
    value = scan(
        state.gain,
        state.continuation,
        worth[n_items],
        state.ratio,
        state.order,
        state.table,
        state.chosen,
    )
    for k in range(len(ranking)):
        ranking[k] = state.labels[state.chosen[k]]
    return value


@kernel
def improve_plan(state, s, best, level):
    """Write the best list for a user's state, by the optimistic estimates, into the plan, and
    return the value of this list.
    """
    n_items = len(state.labels)
    for outcome in range(n_items + 1):
        earned = state.click_rewards[s, outcome] if outcome < n_items else 0.0
        later = optimistic_value(state.moves[s, outcome], state.values, best, level, state.bonus)
        state.worth[outcome] = earned + state.discount * later
    return best_list(state, state.upper[s], state.worth, state.lists[s])


@kernel
def make_plan(state, rng):
    """Make a new plan by optimistic value iteration, starting from the values of the last plan."""
    n_states, n_items = state.upper.shape
    level = exploration(state.t[0], C)
    for i in range(n_items):
        j = i + int(rng.random() * (n_items - i))
        state.labels[i], state.labels[j] = state.labels[j], state.labels[i]
    for s in range(n_states):
        for i in range(n_items):
            n = state.examined[s, i]
            state.upper[s, i] = kl_upper(state.clicks[s, i] / n, level / n) if n > 0 else 1.0
    change = np.inf
    while change > state.least_change:
        best, change = state.values[0], 0.0
        for s in range(1, n_states):
            best = max(best, state.values[s])
        for s in range(n_states):
            value = improve_plan(state, s, best, level)
            change = max(change, abs(value - state.values[s]))
            state.values[s] = value


@kernel
def rank(state, rng, ranking, user):
    if state.last[0] >= 0 and user[IS_FIRST] == 0:
        state.moves[state.last[0], state.last[1], user[STATE]] += 1
    state.last[0] = -1
    if state.t[0] >= state.next_plan[0]:
        make_plan(state, rng)
        state.next_plan[0] = int(state.t[0] * REPLAN_FACTOR) + 1
    for k in range(len(ranking)):
        ranking[k] = state.lists[user[STATE], k]


@kernel
def learn_clicks(state, ranking, clicks, s):
    """Count the examinations and the click of a session with a user in state ``s``, and remember
    this state and the outcome of the session.
    """
    outcome = len(state.labels)
    for k in range(len(ranking)):
        state.examined[s, ranking[k]] += 1
        if clicks[k]:
            state.clicks[s, ranking[k]] += 1
            outcome = ranking[k]
            break
    state.last[0], state.last[1] = s, outcome


@kernel
def update(state, ranking, clicks, user):
    learn_clicks(state, ranking, clicks, user[STATE])
    state.t[0] += 1


class CascadeVI(StateAgent):
    """CascadeVI: an agent for users with memory that learns attractions and the transitions between
    users' states, and plans the best list for each state optimistically.

    Idea:
        A list can do more than earn a click: it can move the user to a state in which later lists
        earn more, or less. For each state of the user, CascadeVI counts the clicks on each item and
        the next states after each click or after no click. It plans optimistically: it uses upper
        confidence bounds as attractions, and moves a part of each transition probability to the
        best state; this part is larger if there are fewer observations. For each state, value
        iteration then finds the ordered list that earns most over all remaining sessions of the
        user, not only in the current session. Optimism makes the agent try unknown items and
        transitions, and fades as observations accumulate. CascadeVI must observe the user's state,
        and it requires the mean number of sessions per user and the click rewards. With S states,
        its S² (L + 1) transition counts fill slowly.

    Algorithm:
        ::

            for each state s and item i: N(s, i) = 0 examinations, clicks(s, i) = 0
            moves(s, o, s') = 0; values V(s) = 0
            γ = 1 − 1/H is the discount, H the mean number of sessions of a user
            r(s, o) is the reward of outcome o in state s
            KL(p, q) is the Kullback-Leibler divergence of Bernoulli laws
            for session t = 1, 2, …:
                if t = 1, or t exceeds 1.01 times the session of the last plan, make a new plan:
                    ℓ = log t + 3 log log t, the level of confidence
                    q(s, i) = max{q : N(s, i) KL(clicks(s, i) / N(s, i), q) ≤ ℓ};  1 if N = 0
                    until V converges, for each state s:
                        for each outcome o (a click on an item, or none), seen n(s, o) times:
                            β = min(1, bonus sqrt(ℓ / n(s, o)));  1 if n(s, o) = 0
                            w(o) = r(s, o) + γ ((1 − β) V(s, o) + β max V), the worth of o,
                                V(s, o) = the mean of V over the states that followed
                        P_k(R) = Π_{j<k} (1 − q(s, R_j)), the probability that position k of a
                            list R is examined
                        v(R) = Σ_k P_k(R) q(s, R_k) w(R_k) + P_{K+1}(R) w(none)
                        R(s) = the list of K items with the largest v (dynamic programming)
                        V(s) = v(R(s))
                observe the state s and show R(s)
                observe the first click;  N(s, i) += 1 for each item i down to it, or for all K
                clicks(s, i) += 1 for the clicked item i
                if the user stays: observe the next state s', moves(s, o, s') += 1

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        n_states: the number of states of a user, S. ``make_agent`` fills in this argument and the
            next two.
        mean_sessions: the mean number of sessions of a user, H; or the number of sessions, if it is
            fixed.
        click_rewards: ``(S, L)`` the reward r for a click on each item in each state.
        bonus: the weight of optimism about transitions, at least 0. With 0, the agent trusts the
            transition counts from the first observation on.
        seed: the seed of the agent's own random generator.

    Attributes:
        state: the named tuple of the state. ``state.values`` holds the values V of the current
            plan, and ``state.lists`` the list that the plan shows in each state.

    Raises:
        ValueError: an argument is invalid; the message names the argument.

    Source: after CascadingVI of Du, Srikant, Chen, *Cascading reinforcement learning*, ICLR 2024.

    Deviations from the paper:
        1. ⚠ The bounds of attractions are KL-UCB bounds with the confidence level of CascadeKL-UCB;
           the paper uses Bernstein's inequality. Optimism about transitions moves a part of the
           probability to the best state; the paper adds a bonus. We chose all constants: the
           confidence level, ``bonus``, and the factor 1.01 by which the number of sessions grows
           between two plans.
        2. ⚠ Every list has exactly K items. The plan assumes that users leave with a fixed
           probability, so it does not depend on the number of the session.
        3. ⚠ Each plan draws a random order of the items, which breaks ties.

    Example:
        >>> rewards = [[1] * 4] * 2
        >>> agent = CascadeVI(4, 2, n_states=2, mean_sessions=10, click_rewards=rewards, seed=0)
        >>> agent.rank({"clicks": [0, 0], "state": 1}).shape
        (2,)
    """

    paper = "after Du et al. 2024, CascadingVI"
    bibtex_keys = ["cascadingrl"]
    state_type, rank_kernel, update_kernel = CascadeVIState, rank, update

    requires = {"mean_sessions": "mean_sessions", "click_rewards": "click_rewards"}

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        n_states: int,
        mean_sessions: float,
        click_rewards: ArrayLike,
        bonus: float = 0.5,
        seed: Seed = None,
    ) -> None:
        shape = check_count("n_states", n_states), check_count("n_items", n_items)
        expected = "a finite number from 0"
        super().__init__(
            n_items,
            n_positions,
            n_states,
            seed,
            mean_sessions=check_number("mean_sessions", mean_sessions, 1),
            click_rewards=as_numbers("click_rewards", click_rewards, shape, 0.0, expected=expected),
            bonus=check_number("bonus", bonus, 0),
        )

    def first_values(self) -> dict[str, Any]:
        rewards = self.hyperparameters["click_rewards"]
        sessions = self.hyperparameters["mean_sessions"]
        return {
            "discount": 1.0 - 1.0 / sessions,
            "least_change": TOLERANCE * max(float(rewards.max()), 1e-300) * sessions,
        }
