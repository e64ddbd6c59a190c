"""Compare your own algorithm, a class with two methods, with two published algorithms.

python examples/your_own_algorithm.py

docs/own_agent.md says what else your algorithm can do; docs/idea_to_table.md takes you from your
algorithm to the tables in a paper.
"""

import numpy as np

import clickgym


class ClickShare(clickgym.agents.Agent):
    """Shows the items with the highest click rates so far or, with probability ε, a random list."""

    def __init__(self, n_items, n_positions, *, epsilon=0.05, seed=None):
        self.rng = np.random.default_rng(seed)
        self.n_positions, self.epsilon = n_positions, epsilon
        self.clicks, self.shows = np.zeros(n_items), np.ones(n_items)

    def rank(self, observation):
        ties = self.rng.random(len(self.shows))  # break ties at random
        scores = self.clicks / self.shows + 1e-9 * ties
        if self.rng.random() < self.epsilon:
            scores = ties
        return np.argsort(-scores)[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        self.shows[ranking] += 1
        self.clicks[ranking] += clicks


if __name__ == "__main__":
    clickgym.check_agent(ClickShare)  # raises an error that lists all faults
    agents = {"mine": ClickShare, "mine, 0.2": (ClickShare, {"epsilon": 0.2})}
    agents |= {name: name for name in ("CascadeTS", "TopRank", "Random")}
    print(clickgym.sweep(["PBMRank-v0"], agents, horizon=10_000, runs=5))
