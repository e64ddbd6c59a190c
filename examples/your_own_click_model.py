"""Simulate users who click by your own rule, at compiled speed and with exact regret.

python examples/your_own_click_model.py

The users look at position k, counted from 0, with probability patience^k. docs/own_click_model.md
explains each part.
"""

from typing import NamedTuple

import numpy as np

import clickgym
from clickgym.core.checks import check_number, check_positions, probabilities
from clickgym.envs import ClickModel, kernel


class Parameters(NamedTuple):
    attraction: np.ndarray
    patience: float


@kernel
def sample(users, ranking, uniforms, clicks, examined):  # draws the clicks of a session
    for k in range(len(ranking)):
        examined[k] = uniforms[k] < users.patience**k
        clicks[k] = uniforms[k] < users.patience**k * users.attraction[ranking[k]]
    return -1  # nobody leaves satisfied


@kernel
def marginals(users, ranking, examination, clicks, scratch):  # the same events, as probabilities
    for k in range(len(ranking)):
        examination[k] = users.patience**k
        clicks[k] = examination[k] * users.attraction[ranking[k]]


@kernel
def expected(users, ranking, reward, cutoff, scratch):  # the expected number of clicks on a list
    n_clicks = 0.0
    for k in range(cutoff):
        n_clicks += users.patience**k * users.attraction[ranking[k]]
    return n_clicks


class TiringModel(ClickModel):
    """Tiring model: users look at lower positions less often, and click items that attract them."""

    short, title = "Tiring", "tiring model"
    shapes = {
        "attraction": "L",
        "patience": "",
    }  # a value for each item, and a number
    rewards = ("clicks",)
    sample_kernel, marginals_kernel, expected_kernel = sample, marginals, expected

    def __init__(self, attraction, patience, n_positions):
        self.parameters = Parameters(
            probabilities("attraction", attraction, (None,)),
            check_number("patience", patience, 0, 1),
        )
        self.n_positions = check_positions(n_positions, self.n_items)

    def best_ranks(self, reward, cutoff):
        return np.arange(cutoff)  # positions in this order get the best items

    def position_weights(self):  # how often users look at each position, whatever the list
        return self.parameters.patience ** np.arange(self.n_positions)


if __name__ == "__main__":
    clickgym.check_click_model(TiringModel)  # raises an error that names the first fault
    users = TiringModel([0.2, 0.7, 0.4, 0.1, 0.5, 0.3], patience=0.6, n_positions=3)
    print(clickgym.sweep({"tiring users": users}, ["CascadeTS", "TopRank", "Random"], 10_000, 3))
