"""Users who click by a rule of your own, at compiled speed and with exact regret.

python examples/your_own_click_model.py

The users read position k with probability patience^k. docs/own_click_model.md explains each part.
"""

from typing import NamedTuple

import numpy as np

import clickgym
from clickgym.envs import ClickModel, kernel


class Parameters(NamedTuple):
    attraction: np.ndarray
    patience: float


@kernel
def sample(users, ranking, uniforms, clicks, examined):  # a session
    for k in range(len(ranking)):
        examined[k] = uniforms[k] < users.patience**k
        clicks[k] = uniforms[k] < users.patience**k * users.attraction[ranking[k]]
    return -1  # nobody leaves satisfied


@kernel
def marginals(users, ranking, examination, clicks, scratch):  # the probabilities of the same
    for k in range(len(ranking)):
        examination[k] = users.patience**k
        clicks[k] = examination[k] * users.attraction[ranking[k]]


@kernel
def expected(users, ranking, reward, cutoff, scratch):  # the clicks that a list gets on average
    n_clicks = 0.0
    for k in range(cutoff):
        n_clicks += users.patience**k * users.attraction[ranking[k]]
    return n_clicks


class TiringModel(ClickModel):
    """Tiring model: users look at lower positions less often, and click what attracts them."""

    short, title = "Tiring", "tiring model"
    shapes = {"attraction": "L", "patience": ""}  # a value for each item; a number
    rewards = ("clicks",)
    sample_kernel, marginals_kernel, expected_kernel = sample, marginals, expected

    def __init__(self, attraction, patience, n_positions):
        self.parameters = Parameters(np.array(attraction, float), float(patience))
        self.n_positions = n_positions

    def _places(self, reward, cutoff):
        return np.arange(cutoff)  # the best item belongs to the first of these positions

    def position_weights(self):  # how often each is seen, where that depends on no list
        return self.parameters.patience ** np.arange(self.n_positions)


if __name__ == "__main__":
    clickgym.check_click_model(TiringModel)  # raises an error with a line for each fault
    users = TiringModel([0.2, 0.7, 0.4, 0.1, 0.5, 0.3], patience=0.6, n_positions=3)
    print(clickgym.sweep({"tiring users": users}, ["CascadeTS", "TopRank", "Random"], 10_000, 3))
