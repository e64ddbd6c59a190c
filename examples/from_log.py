"""From a click log to a decision, with a known truth: the log is simulated, and `decide` must find
the better list.

    python examples/from_log.py --out results/decision

For your own log use the command ``clickgym decide LOG --query QUERY --out DIR``. Here users of a
user browsing model, from a shipped instance, see the production list or, in a tenth of the sessions
each, one of three other lists.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium as gym
import numpy as np

import clickgym
import clickgym_logs
from clickgym_logs import write_decisions


class Production(clickgym.agents.Agent):
    """Agent that shows the production list, and in three tenths of the sessions one of three other
    lists for comparison.
    """

    def __init__(self, lists: list[np.ndarray], seed: int = 0) -> None:
        self.rng, self.lists = np.random.default_rng(seed), lists

    def rank(self, observation: object) -> np.ndarray:
        return self.lists[self.rng.choice(4, p=[0.7, 0.1, 0.1, 0.1])]

    def update(
        self, observation: object, ranking: np.ndarray, clicks: np.ndarray, reward: float
    ) -> None:
        """Do nothing: the agent does not learn."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sessions", type=int, default=30_000, help="length of the simulated log (default 30000)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("results/decision"), help="folder of the page"
    )
    arguments = parser.parse_args()

    env = gym.make("UBMRank-v0")
    users = env.unwrapped.model
    production = np.asarray(env.unwrapped.initial_ranking)
    lists = [production[:5], users.optimal_ranking(), production[[1, 0, 2, 3, 4]], production[5:10]]
    log = clickgym_logs.record(Production(lists), env, arguments.sessions, seed=0)
    decision = clickgym_logs.decide(log)
    print(decision.sentence)
    shown = users.expected_reward(production[:5])
    for row in decision.measured:
        truth = users.expected_reward([int(item) for item in row.labels]) - shown
        low, high = row.interval
        measured = f"{row.difference:+.3f} ({low:+.3f} to {high:+.3f})"
        print(f"{', '.join(row.labels)}: {measured}, truth {truth:+.3f}")
    files = write_decisions([decision], arguments.out)
    print(f"In {arguments.out}: {', '.join(file.name for file in files)}")


if __name__ == "__main__":
    main()
