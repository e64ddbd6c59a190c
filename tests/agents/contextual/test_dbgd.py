"""The reference of DBGD, which follows its team drafts and its update steps."""

from __future__ import annotations

import numpy as np

from tests.reference_agents.reference import Reference

NO_TEAM = -1


class DBGDReference(Reference):
    """Yue and Joachims 2009, Algorithm 1, with team draft. Checks whether a list and its teams are
    a possible draft of two rankings whose ties may be in any order.
    """

    edges = {"delta": (0.1, 1e-9, 1e6), "gamma": (0.9, 1e-9, 1e6)}

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

    def lists(self, rng, n, agent, features):
        return [self.draw(rng, features) for _ in range(n)]

    def draw(self, rng, features):
        """Interleave two rankings by team draft, starting after their common first items."""
        direction = rng.standard_normal(len(self.weights))
        challenger = self.weights + self.delta * direction / np.linalg.norm(direction)
        orders = [np.argsort(-features @ w).tolist() for w in (self.weights, challenger)]
        ranking = []
        while len(ranking) < self.n_positions:
            k = len(ranking)
            if orders[0][: k + 1] == orders[1][: k + 1]:
                ranking.append(orders[0][k])
                continue
            for order in rng.permutation(orders):
                ranking.append(next(item for item in order.tolist() if item not in ranking))
        return ranking[: self.n_positions]

    def learn(self, ranking, clicks):
        won = sum(
            (team == 1) - (team == 0) for team, c in zip(self.teams, clicks, strict=True) if c
        )
        if won > 0:
            self.weights = self.weights + self.gamma * self.direction
        super().learn(ranking, clicks)

    def agrees(self, state):
        """Take over weights that agree up to rounding, so that rounding errors do not add up over
        sessions.
        """
        agreed = np.allclose(state.weights, self.weights, rtol=1e-12, atol=1e-12 * self.gamma)
        self.weights = state.weights.copy()
        return bool(agreed)
