"""Your own agent in 15 lines of plain Python, compared with BatchRank in a table and a figure.

    python examples/own_agent.py --out results/own

The same from the command line, in this folder:

    clickgym run PBMRank-v0 --agents BatchRank own_agent:ThompsonSampling --horizon 2e4 --runs 4
    --out results/own
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import clickgym
from clickgym.agents import Agent


class ThompsonSampling(Agent):
    """Rank by a draw from each item's Beta posterior, as if every position were examined."""

    def __init__(self, n_items, n_positions, *, prior=1.0, seed=None):
        self.rng = np.random.default_rng(seed)
        self.n_positions = n_positions
        self.clicked = np.full(n_items, prior)
        self.skipped = np.full(n_items, prior)

    def rank(self, observation):
        return np.argsort(-self.rng.beta(self.clicked, self.skipped))[: self.n_positions]

    def update(self, observation, ranking, clicks, reward):
        self.clicked[ranking] += clicks
        self.skipped[ranking] += 1 - clicks


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--horizon", type=float, default=2e4, help="sessions per run")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--out", required=True, help="folder of the results")
    arguments = parser.parse_args()
    results = clickgym.sweep(
        ["PBMRank-v0", "CMRank-v0"],
        ["BatchRank", "own_agent:ThompsonSampling"],
        arguments.horizon,
        arguments.runs,
        out=arguments.out,
    )
    print(results.table().select("env", "agent", "regret", "regret_ci95"))


if __name__ == "__main__":
    # worker processes import the agent's module by its name
    sys.path.insert(0, str(Path(__file__).parent))
    main()
