"""SlateQ, an agent for users with memory that learns a table of the long-term values of clicks,
after SlateQ (Ie et al., IJCAI 2019).
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from numpy.typing import ArrayLike

from ...core.checks import as_numbers, check_count, check_number
from ...core.kernels import kernel
from ...core.state import IS_FIRST, STATE, Floats, Ints
from ..agent import Seed
from ..common.ranking import show, shuffle_front
from ..compiled_agent import StateAgent
from .cascade_vi import best_list, learn_clicks


class SlateQState(NamedTuple):
    examined: Annotated[Ints, "S L"]  # N, the examinations of each item
    clicks: Annotated[Ints, "S L"]
    updates: Annotated[Ints, "S L+1"]  # n, the updates of each value
    values: Annotated[Floats, "S L+1"]  # Q, after a click on each item and after no click
    # state and outcome of the last session; -1 once its value is updated
    last: Annotated[Ints, "2", -1]
    t: Annotated[Ints, "1"]  # sessions so far
    labels: Annotated[Ints, "L", range]  # a random order, which breaks ties
    attraction: Annotated[Floats, "L"]  # working memory of `rank`
    gain: Annotated[Floats, "L"]  # working memory of `best_list`, as are the next five fields
    continuation: Annotated[Floats, "L"]
    ratio: Annotated[Floats, "L"]
    order: Annotated[Ints, "L", range]
    table: Annotated[Floats, "L+1 K+1"]
    chosen: Annotated[Ints, "K"]
    click_rewards: Floats  # (S, L) r
    mean_sessions: float  # H
    exploration: float  # c


@kernel
def learn_value(state, value):
    """Move the value of the last session's outcome towards the reward of this outcome plus the
    discounted value of the list that is best in the user's next state.
    """
    s, outcome = state.last[0], state.last[1]
    state.updates[s, outcome] += 1
    rate = (state.mean_sessions + 1.0) / (state.mean_sessions + state.updates[s, outcome])
    earned = state.click_rewards[s, outcome] if outcome < len(state.labels) else 0.0
    target = earned + (1.0 - 1.0 / state.mean_sessions) * value
    state.values[s, outcome] += rate * (target - state.values[s, outcome])


@kernel
def rank(state, rng, ranking, user):
    s, n_items = user[STATE], len(state.labels)
    for item in range(n_items):
        clicks, examined = state.clicks[s, item], state.examined[s, item]
        state.attraction[item] = (clicks + 1.0) / (examined + 1.0)
    shuffle_front(rng, state.labels, 0, n_items, n_items)
    value = best_list(state, state.attraction, state.values[s], ranking)
    if user[IS_FIRST] == 0 and state.last[0] >= 0:
        learn_value(state, value)
    state.last[0] = -1
    if rng.random() < state.exploration / (state.exploration + state.t[0]):
        show(state.labels, ranking)


@kernel
def update(state, ranking, clicks, user):
    learn_clicks(state, ranking, clicks, user[STATE])
    state.t[0] += 1


class SlateQ(StateAgent):
    """SlateQ with a table of values: an agent for users with memory that learns the long-term value
    of a click on each item, and shows the list with the highest expected value.

    The agent takes from the paper that the value of a list is the expected value of its click. It
    differs from the paper's SlateQ mainly in four ways: the values are in a table, not in a neural
    network; users choose as in the cascade model, not as in a conditional choice model; the agent
    is told how long users stay and what clicks are worth; and it explores in its own way. See
    *Deviations from the paper*.

    Idea:
        A list can do more than earn a click: it can move the user to a state in which later lists
        earn more, or less. There are too many lists to learn a value for each of them. But if only
        the click changes the user, and not the rest of the list, then it is enough to learn a value
        for each outcome of a session: a click on one of the items, or no click. The value of a list
        is the sum of these values, each weighted by the probability of the outcome. SlateQ learns
        the values of the outcomes in each state by Q-learning: after each session, the value of the
        outcome moves towards its reward plus the discounted value of the best list in the user's
        next state. The probabilities of the outcomes are estimated from clicks. Some lists are
        random, at first all of them, later fewer and fewer. Unlike `CascadeVI`, SlateQ does not
        learn how users move between states. It must observe the user's state, and it requires the
        mean number of sessions per user and the rewards of the clicks that it observes. An outcome
        that is rarely observed may keep a wrong value for a long time.

    Algorithm:
        ::

            γ = 1 − 1/H is the discount, H the mean number of sessions of a user
            r(s, o) is the reward of outcome o (a click on an item, or none) in state s
            for each state s and item i: N(s, i) = 0 examinations, clicks(s, i) = 0
            for each state s and outcome o: n(s, o) = 0 updates, Q(s, o) = 0
            for session t = 0, 1, …:
                observe the state s
                q(i) = (clicks(s, i) + 1) / (N(s, i) + 1), the attraction of each item i
                P_k(R) = Π_{j<k} (1 − q(R_j)), the probability that position k of a list R is
                    examined
                v(R) = Σ_k P_k(R) q(R_k) Q(s, R_k) + P_{K+1}(R) Q(s, none)
                R* = the list of K items with the largest v (dynamic programming)
                if the user stayed after the last session, with state s' and outcome o':
                    n(s', o') += 1;  α = (H + 1) / (H + n(s', o'))
                    Q(s', o') += α (r(s', o') + γ v(R*) − Q(s', o'))
                show R*, or with probability c / (c + t) a random list
                observe the first click;  N(s, i) += 1 for each item i down to it, or for all K
                clicks(s, i) += 1 for the clicked item i

    Args:
        n_items: the number of items, L.
        n_positions: the number of positions in a list, K.
        n_states: the number of states of a user, S. ``make_agent`` fills in this argument and the
            next two.
        mean_sessions: the mean number of sessions of a user, H; or the number of sessions, if it is
            fixed.
        click_rewards: ``(S, L)`` the reward r for a click on each item in each state. The agent
            reads the reward of a click only after it has observed the click.
        exploration: the constant c, at least 1. About ``c log(1 + T/c)`` of the first T lists are
            random.
        seed: the seed of the agent's own random generator.

    Attributes:
        state: the named tuple of the state. ``state.values`` holds the values Q; the last column is
            for no click.

    Raises:
        ValueError: an argument is invalid; the message names the argument.

    Source: after Ie, Jain, Wang, Narvekar, Agarwal, Wu, Cheng, Chandra, Boutilier, *SlateQ: a
        tractable decomposition for reinforcement learning with recommendation sets*, IJCAI 2019.
        The learning rate α comes from Jin, Allen-Zhu, Bubeck, Jordan, *Is Q-learning provably
        efficient?*, NeurIPS 2018.

    Deviations from the paper:
        1. ⚠ The values are in a table with a row for each state and a column for each item. The
           paper uses a neural network, which reads features of the user and of the item, learns
           from stored sessions, and can rank items that it has not seen.
        2. ⚠ Users choose as in the cascade model: they read the list from the top and take the
           first item that attracts them, so the order matters, and dynamic programming finds the
           best list. In the paper's conditional choice model, an item is chosen with a probability
           proportional to its score, whatever the order, and the best list is found by a linear
           program, approximately by a greedy algorithm, or by sorting.
        3. ⚠ The attractions are learned during the run, from the same clicks as the values. The
           paper takes the choice model as given, trained in advance.
        4. ⚠ The agent is told the mean number of sessions of a user and the reward of each click.
           The paper observes rewards; agents of clickgym that are compiled do not, so this agent
           looks the reward up after the click. It does not learn from a user's last session, and
           discounts by the probability of another session instead.
        5. No click has a value in each state, which is learned like the other values. So it is in
           the paper's formulas, where a user who selects nothing selects the *null item*. In the
           authors' code in RecSim, sessions without a click are worth 0 and teach nothing.
        6. ⚠ We chose how the agent explores. As in RecSim, it shows random lists, but their share
           falls as c / (c + t), not to a constant. We chose c on other instances than those in our
           tables, but of the same families: the seeds 11 to 14 of all families but ``journey``, and
           the query yandex-9866. docs/stateful_users.md compares five values.
        7. ⚠ Values begin at 0, and the attraction of an item that users have not examined is 1, so
           lists with such an item look bad, and only random lists show it. The paper also describes
           a version with SARSA, which learns the value of the lists that are shown; this agent uses
           Q-learning only. The learning rate is that of Jin et al.
        8. ⚠ Every list has exactly K items. The agent assumes that users leave with a fixed
           probability, so its lists do not depend on the number of the session.
        9. ⚠ Each session draws a random order of the items, which breaks ties.

    Example:
        >>> rewards = [[1] * 4] * 2
        >>> agent = SlateQ(4, 2, n_states=2, mean_sessions=10, click_rewards=rewards, seed=0)
        >>> agent.rank({"clicks": [0, 0], "state": 1}).shape
        (2,)
    """

    paper = "after Ie et al. 2019, SlateQ"
    bibtex_keys = ["slateq", "qlearning"]
    state_type, rank_kernel, update_kernel = SlateQState, rank, update

    requires = {"mean_sessions": "mean_sessions", "click_rewards": "click_rewards"}

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        *,
        n_states: int,
        mean_sessions: float,
        click_rewards: ArrayLike,
        exploration: float = 1000.0,
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
            exploration=check_number("exploration", exploration, 1),
        )
