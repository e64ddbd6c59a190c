"""From a click log to a decision, where the truth is known: the log is simulated, and `decide` has to find its way.

    python examples/from_log_to_decision.py --out results/decision

For a log of your own there is a command: ``clickgym decide LOG --query QUERY --out DIR``. Here users of a user browsing model,
from an instance that comes with clickgym, meet a production list whose order changes a little from session to session. What
lists would have earned can then be held against what they do earn.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium as gym
import numpy as np

import clickgym
from clickgym.envs import ClickModel
from clickgym.offline import ClickLog
from clickgym.offline.decision.page import write_decision


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--horizon", type=float, default=1e5, help="T, sessions per run of an agent (default 1e5)")
    parser.add_argument("--runs", type=int, default=5, help="runs per agent (default 5)")
    parser.add_argument("--sessions", type=int, default=30_000, help="of the simulated log (default 30000)")
    parser.add_argument("--out", type=Path, default=Path("results/decision"), help="folder of the page and its figures")
    arguments = parser.parse_args()

    log, truth = simulated_log(arguments.sessions)
    print(f"{len(log):,} sessions simulated from yandex-9982, a user browsing model")
    decision = clickgym.decide(
        log, horizon=int(arguments.horizon), runs=arguments.runs, out=arguments.out, truth=truth, on_step=print
    )  # fmt: skip
    print(f"\n{decision.headline}", *decision.summary, sep="\n")
    for candidate in decision.candidates:
        print(f"\n{candidate.name}: {decision.scores[0].model} predicts {candidate.predicted:.3f}, truth {candidate.truth:.3f}")
        for name, estimate in candidate.estimates.items():
            low, high = estimate.interval
            believed = ", believed" if name in decision.believed else ""
            print(f"  {name:<16} {estimate.value:.3f}  (95 % interval {low:.3f} to {high:.3f}{believed})")
        if candidate.refused:
            print(f"  refused: {', '.join(candidate.refused)}")
    print(f"\nIn {arguments.out}: {', '.join(file.name for file in write_decision(decision, arguments.out))}")


class Production(clickgym.agents.Agent):
    """A list in production, its order blurred by noise."""

    def __init__(self, n_items: int, n_positions: int, *, ranking: np.ndarray, seed: int | None = None) -> None:
        self.rng, self.n_positions = np.random.default_rng(seed), n_positions
        self.score = -np.argsort(ranking).astype(float)

    def rank(self, observation: object) -> np.ndarray:
        return np.argsort(-(self.score + self.rng.gumbel(size=len(self.score))))[: self.n_positions]

    def update(self, observation: object, ranking: np.ndarray, clicks: np.ndarray, reward: float) -> None:
        """It does not learn."""


def simulated_log(n_sessions: int) -> tuple[ClickLog, ClickModel]:
    """A log of users that are known, and these users."""
    env = gym.make("UBMRank-v0")
    users = env.unwrapped
    agent = Production(users.model.n_items, users.model.n_positions, ranking=users.initial_ranking, seed=0)
    return clickgym.record(agent, env, n_sessions, seed=0), users.model


if __name__ == "__main__":
    main()
