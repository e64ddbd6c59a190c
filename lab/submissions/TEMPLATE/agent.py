"""My agent: one sentence about how it ranks and what it learns from clicks."""

import numpy as np

from clickgym.agents import Agent, Range


class MyAgent(Agent):
    """Thompson sampling on how often an item was clicked when it was shown.

    Args:
        n_items, n_positions: L and K.
        prior: how many clicks, and how many sessions without one, each item begins with.
        seed: of its own generator.
    """

    search_space = {"prior": Range(0.01, 10.0, log=True)}  # noqa: RUF012 (what `clickgym tune` may search)

    def __init__(self, n_items, n_positions, *, prior=1.0, seed=None):
        self.rng = np.random.default_rng(seed)
        self.n_positions = n_positions
        self.clicked, self.skipped = np.full(n_items, prior), np.full(n_items, prior)

    def rank(self, observation):
        return np.argsort(-self.rng.beta(self.clicked, self.skipped))[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        self.clicked[ranking] += clicks
        self.skipped[ranking] += 1 - clicks
