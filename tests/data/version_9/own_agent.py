"""An agent of one's own: a clicked item moves up by one place."""

import own_rule

from clickgym.agents import Agent

FIRST = 0


class MoveUp(Agent):
    """Shows the first K items of its order."""

    def __init__(self, n_items, n_positions, *, reverse=False, seed=None):
        self.order = list(range(FIRST, n_items))  # best first
        if reverse:
            self.order.reverse()
        self.n_positions = n_positions

    def rank(self, observation):
        return self.order[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        for item, click in zip(ranking, clicks, strict=True):
            if click:
                own_rule.one_up(self.order, item)
