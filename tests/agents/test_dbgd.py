"""DBGD: its draft by hand, its steps in closed form, and the law of directions and coins."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from reference_agents import MODELS, follow, reference_of
from reference_agents.reference import Reference
from scipy.stats import binomtest, kstest

from clickgym.agents import DBGD

pytestmark = pytest.mark.uncompiled

FALSE_ALARM = 1e-5
NO_TEAM = -1


class DBGDReference(Reference):
    """Yue and Joachims 2009, Algorithm 1, with team draft: whether a list and its teams are a draft
    of two rankings, of which ties may be in any order.
    """

    edges = {"delta": (0.1, 1e-9, 1.0, 1e6), "gamma": (0.9, 1e-9, 0.01, 1e6)}

    def __init__(
        self,
        n_items: int,
        n_positions: int,
        n_features: int,
        delta: float = 1.0,
        gamma: float = 0.01,
    ) -> None:
        super().__init__(n_items, n_positions)
        self.delta, self.gamma = delta, gamma
        self.weights = self.direction = np.zeros(n_features)
        self.teams: list[int] = []

    def allows(self, ranking, drawn=None, features=None):
        self.direction, self.teams = drawn.direction.copy(), drawn.teams.tolist()
        if not super().allows(ranking) or not np.isclose(np.linalg.norm(self.direction), 1.0):
            return False
        scores = [np.asarray(features) @ self.weights]
        scores.append(scores[0] + self.delta * (np.asarray(features) @ self.direction))
        n_common = self.teams.count(NO_TEAM)
        rounds = self.teams[n_common:]
        firsts, seconds = rounds[:-1:2], rounds[1::2]
        if NO_TEAM in rounds or any(a == b for a, b in zip(firsts, seconds, strict=True)):
            return False
        left, slack = set(range(self.n_items)), 1e-12 * float(np.abs(scores).max())
        for k, (item, team) in enumerate(zip(ranking, self.teams, strict=True)):
            best = [{a for a in left if s[a] >= max(s[b] for b in left) - slack} for s in scores]
            choosers = best if team == NO_TEAM else [best[team]]
            if any(item not in chosen for chosen in choosers):
                return False
            if k == n_common and len(best[0] | best[1]) == 1:  # they still agree
                return False
            left.remove(item)
        return True

    def learn(self, ranking, clicks):
        won = sum(
            (team == 1) - (team == 0) for team, c in zip(self.teams, clicks, strict=True) if c
        )
        if won > 0:
            self.weights = self.weights + self.gamma * self.direction
        super().learn(ranking, clicks)

    def agrees(self, state):
        """Rounding does not add up over sessions: weights that agree are taken over."""
        agreed = np.allclose(state.weights, self.weights, rtol=1e-12, atol=1e-12 * self.gamma)
        self.weights = state.weights.copy()
        return bool(agreed)


class CoinUsers:
    """Click each position with probability 1/2."""

    def sample(self, ranking, rng):
        return rng.integers(0, 2, len(ranking)).astype(np.int8)


@pytest.mark.parametrize("users", [MODELS["PBM"], MODELS["CM"], CoinUsers()])
def test_it_follows_the_reference(users):
    agent = DBGD(5, 3, n_features=3, gamma=0.5, seed=1)
    follow(agent, reference_of(agent), users, 300, n_features=3)


@pytest.mark.parametrize("sizes", [(4, 4), (3, 1), (1, 1), (9, 8)])
def test_other_sizes(sizes):
    agent = DBGD(*sizes, n_features=2, gamma=0.5, seed=1)
    follow(agent, reference_of(agent), CoinUsers(), 300, n_features=2)


def test_two_features_by_hand():
    """w = (1, 0), u is what was drawn: the lists, the teams and the step follow."""
    features = np.array([[0.9, 0.0], [0.5, 0.8], [0.1, -0.4], [0.2, 0.1]])
    seen = Counter()
    for seed in range(200):
        agent = DBGD(4, 3, n_features=2, delta=2.0, gamma=0.25, seed=seed)
        agent.state.weights[:] = [1.0, 0.0]
        ranking = agent.rank({"features": features}).tolist()
        u, teams = agent.state.direction.copy(), agent.state.teams.tolist()
        theirs = np.argsort(-features @ ([1.0, 0.0] + 2.0 * u)).tolist()
        lists = [[0, 1, 3, 2], theirs]
        k = 0
        while k < 3 and lists[0][k] == lists[1][k]:
            k += 1
        assert (ranking[:k], teams[:k]) == (theirs[:k], [NO_TEAM] * k)
        for place in range(k, 3):
            mine = [item for item in lists[teams[place]] if item not in ranking[:place]]
            assert ranking[place] == mine[0]
        assert k >= 2 or teams[k] + teams[k + 1] == 1
        for clicks in ([0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]):
            twin = DBGD(4, 3, n_features=2, delta=2.0, gamma=0.25, seed=seed)
            twin.state.weights[:] = [1.0, 0.0]
            twin.update({"features": features}, twin.rank({"features": features}), clicks)
            clicked = [team for team, click in zip(teams, clicks, strict=True) if click]
            wins = clicked.count(1) > clicked.count(0)
            expected = np.array([1.0, 0.0]) + 0.25 * u * wins
            np.testing.assert_allclose(twin.state.weights, expected, rtol=1e-15)
            seen[wins, k] += 1
    assert {(True, 0), (False, 0), (True, 1), (False, 3)} <= set(seen)


def test_directions_are_uniform_and_coins_fair():
    """Null: each coordinate in three dimensions is uniform on [-1, 1]; either is first in half of
    the lists that differ.
    """
    agent, firsts, first_rounds = DBGD(5, 4, n_features=3, seed=3), [], []
    features = np.random.default_rng(0).normal(size=(5, 3))
    agent.state.weights[:] = 0.5
    for _ in range(4000):
        agent.rank({"features": features})
        firsts.append(agent.state.direction.copy())
        rounds = [team for team in agent.state.teams if team != NO_TEAM]
        first_rounds += rounds[::2]
    for coordinate in np.transpose(firsts):
        assert kstest(coordinate, "uniform", (-1, 2)).pvalue > FALSE_ALARM
    n_first = sum(first_rounds)
    assert len(first_rounds) > 2000
    assert binomtest(n_first, len(first_rounds)).pvalue > FALSE_ALARM
