"""Tests of SlateQ against a reference in plain Python, which searches all lists, and against the
exact values of users with memory.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import permutations

import numpy as np
import pytest

import clickgym
from clickgym.agents import SlateQ
from clickgym.envs import CascadeMDP, ClickEnv, load_instance
from tests.helpers.click_stories import assert_uniform
from tests.reference_agents.reference import CLOSE, Reference

USERS: CascadeMDP = load_instance(
    "clickbait:n_items=5,n_positions=2,n_states=3,mean_sessions=8"
).model("CascadeMDP")


class SlateQReference(Reference):
    """Reference of SlateQ. `meet` comes before each list."""

    def __init__(self, n_items, n_positions, n_states, mean_sessions, click_rewards, exploration):
        super().__init__(n_items, n_positions)
        self.mean_sessions, self.rewards = mean_sessions, click_rewards
        self.examined, self.clicks = np.zeros((2, n_states, n_items), int)
        self.updates = np.zeros((n_states, n_items + 1), int)
        self.values = np.zeros((n_states, n_items + 1))
        self.t, self.s, self.outcome, self.q = 0, -1, -1, np.ones(n_items)

    def value(self, ranking):
        """Return v of a list in the current state."""
        total, reached = 0.0, 1.0
        for item in ranking:
            total += reached * self.q[item] * self.values[self.s, item]
            reached *= 1 - self.q[item]
        return total + reached * self.values[self.s, -1]

    def meet(self, s, is_new):
        """Observe the state of the user in the next session, and learn from the last session."""
        before, self.s = self.s, s
        self.q = (self.clicks[s] + 1) / (self.examined[s] + 1)
        lists = permutations(range(self.n_items), self.n_positions)
        values = {ranking: self.value(ranking) for ranking in lists}
        best = max(values.values())
        self.best = {each for each in values if values[each] >= best - CLOSE * max(1, best)}
        if before >= 0 and not is_new:
            o, h = self.outcome, self.mean_sessions
            reward = self.rewards[before, o] if o < self.n_items else 0
            self.updates[before, o] += 1
            alpha = (h + 1) / (h + self.updates[before, o])
            error = reward + (1 - 1 / h) * best - self.values[before, o]
            self.values[before, o] += alpha * error

    def allows(self, ranking, drawn=None, features=None):
        """``drawn`` is the random list, or None if the agent must show one of the best lists."""
        return tuple(ranking) in self.best if drawn is None else tuple(ranking) == drawn

    def learn(self, ranking, clicks):
        self.outcome, self.t = self.n_items, self.t + 1
        for item, click in zip(ranking, clicks, strict=True):
            self.examined[self.s, item] += 1
            if click:
                self.clicks[self.s, item] += 1
                self.outcome = item
                break

    def holds(self):
        names = ("examined", "clicks", "updates", "values")
        return {name: getattr(self, name) for name in names} | {"t": [self.t]}


@pytest.mark.uncompiled
@pytest.mark.parametrize("exploration", [1.0, 100.0])
def test_every_session_of_slateq(exploration):
    """Each list is the best of all lists, unless it is random, and each value and count is that of
    the reference. Users who leave teach nothing about their next state.
    """
    arguments = {
        "n_states": 3,
        "mean_sessions": 8.0,
        "click_rewards": USERS.click_rewards * [[1], [2], [3]],
        "exploration": exploration,
    }
    agent, reference = SlateQ(5, 2, **arguments, seed=1), SlateQReference(5, 2, **arguments)
    env = ClickEnv(USERS)
    (observation, _), is_new = env.reset(seed=3), True
    for session in range(600):
        draws = deepcopy(agent.rng).random(agent.n_items)  # the last decides whether to explore
        explores = draws[-1] < exploration / (exploration + session)
        ranking = agent.rank(observation)
        reference.meet(int(observation["state"]), is_new)
        drawn = tuple(agent.state.labels[:2].tolist()) if explores else None
        assert reference.allows(ranking.tolist(), drawn), (session, ranking)
        before = observation
        observation, _, is_new, _, _ = env.step(ranking)
        agent.update(before, ranking, observation["clicks"])
        reference.learn(ranking.tolist(), observation["clicks"].tolist())
        assert reference.agrees(agent.state), session
        if is_new:
            agent.leave()
            observation, _ = env.reset()


@pytest.mark.uncompiled
def test_tied_lists_are_uniform():
    """Null: if nothing was learned, a much later list is uniform, because all lists are then worth
    the same.
    """
    known, shown = {"n_states": 2, "mean_sessions": 8, "click_rewards": np.ones((2, 4))}, []
    for seed in range(600):
        agent = SlateQ(4, 2, **known, seed=seed)
        agent.state.t[0] = 10**12
        shown.append(tuple(agent.rank({"state": 0}).tolist()))
    assert_uniform(shown, permutations(range(4), 2))


@pytest.mark.slow
def test_values_converge_to_those_of_the_best_lists():
    """Even if all lists are random, the values approach the worth of each outcome under the best
    lists, because Q-learning learns about lists that it does not show.
    """
    arguments = {"n_states": 3, "mean_sessions": 8, "click_rewards": USERS.click_rewards}
    agent = SlateQ(5, 2, **arguments, exploration=1e12, seed=0)
    clickgym.run(agent, ClickEnv(USERS), 400_000, seed=0)
    np.testing.assert_allclose(agent.state.values, USERS.worth(USERS.value), atol=0.1)
