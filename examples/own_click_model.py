"""Your own users: parameters of a click model as arrays and in a JSON file, and your own click
model.

    python examples/own_click_model.py --horizon 1e5 --out results/own
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import gymnasium as gym
import numpy as np

import clickgym
from clickgym.core.checks import check_number, check_positions, probabilities
from clickgym.envs import ClickModel, DependentClickModel, kernel


class Parameters(NamedTuple):
    attraction: np.ndarray  # (L,)
    patience: float


@kernel
def sample(parameters, ranking, uniforms, clicks, examined):
    is_reading = True
    for k in range(len(ranking)):  # one uniform number decides everything at a position
        going_on = parameters.patience if k else 1.0
        is_reading = is_reading and uniforms[k] < going_on
        examined[k] = is_reading
        clicks[k] = is_reading and uniforms[k] < going_on * parameters.attraction[ranking[k]]
    return -1  # or the position at which the user left satisfied


@kernel
def marginals(parameters, ranking, examination, clicks, scratch):
    reading = 1.0
    for k in range(len(ranking)):
        examination[k] = reading
        clicks[k] = reading * parameters.attraction[ranking[k]]
        reading *= parameters.patience


@kernel
def expected(parameters, ranking, reward, cutoff, scratch):
    n_clicks, any_click, reading, no_click = 0.0, 0.0, 1.0, 1.0
    for k in range(cutoff):
        attraction = parameters.attraction[ranking[k]]
        n_clicks += reading * attraction
        any_click += reading * no_click * attraction
        no_click *= 1.0 - attraction
        reading *= parameters.patience
    return n_clicks if reward == 0 else any_click


class FadingModel(ClickModel):
    """Fading model: users continue to the next position with probability γ, clicked or not.

    Args:
        attraction: ``(L,)`` the probability α(i) of a click on an examined item.
        patience: γ, the probability that the user continues to the next position.
        n_positions: K.
    """

    short = "Fading"
    title = "fading model"
    shapes = {"attraction": "L", "patience": ""}
    rewards = ("clicks", "any_click")
    default_instance = None
    sample_kernel, marginals_kernel, expected_kernel = sample, marginals, expected

    def __init__(self, attraction, patience, n_positions):
        self.parameters = Parameters(
            probabilities("attraction", attraction, (None,)),
            check_number("patience", patience, 0, 1),
        )
        self.n_positions = check_positions(n_positions, self.n_items)

    def _places(self, reward, cutoff):
        return np.arange(cutoff)  # the most attractive item first

    def position_weights(self):
        return self.parameters.patience ** np.arange(self.n_positions)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--horizon", type=float, default=1e5, help="sessions per run")
    parser.add_argument("--out", type=Path, required=True, help="folder of the file and results")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)

    # From arrays: the parameters are arguments of the environment.
    attraction, examination = np.linspace(0.5, 0.05, 12), [1.0, 0.7, 0.5, 0.4]
    env = gym.make("PBMRank-v0", attraction=attraction, examination=examination)
    result = clickgym.run("PBMUCB", env, arguments.horizon, seed=0)
    print(f"from arrays: regret {result.regret[-1]:.0f}")

    # From a file, also on the command line: the description of a click model is enough.
    model = DependentClickModel(attraction=[0.6, 0.5, 0.3, 0.2, 0.1], termination=[0.8, 0.6, 0.4])
    file = arguments.out / "mine.json"
    file.write_text(json.dumps(model.to_dict()), encoding="utf-8")
    env = gym.make("DCMRank-v0", instance=str(file), reward="satisfaction")
    print(f"from a file: best list {env.reset()[1]['optimal_ranking']}")

    # Your own model: `check_click_model` compares its kernels with one another.
    clickgym.check_click_model(FadingModel)
    results = clickgym.sweep(
        {"Fading": FadingModel(attraction, 0.8, 4)},
        ["TopRank", "CascadeKLUCB", "Random"],
        arguments.horizon,
        2,
        out=arguments.out / "sweep",
    )
    print(results.table().select("agent", "regret", "regret_ci95"))


if __name__ == "__main__":
    main()
