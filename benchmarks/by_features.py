"""Time of a session of every agent that ranks by features, and of a design of RecurRank, as the number of features grows.

Sessions are those of the position-based model with the same candidates in every session, in the compiled engine. The design is
that of all candidates, which the first session brings; features are independent normal numbers.
"""

from __future__ import annotations

import time

import gymnasium as gym
import numpy as np
from report import publish, seconds_per_session, table

from clickgym.agents import CONTEXTUAL_AGENTS, RecurRank

L, K = 20, 5
SESSIONS = {10: 20_000, 25: 5_000, 50: 2_000, 100: 1_000}
"""Of each agent, by the number of features."""
CANDIDATES = (20, 100, 1000)
"""Of a design."""
REPEATS = 5


def session_seconds(name: str, d: int) -> float:
    instance = f"linear:n_items={L},n_pool={L},n_users=1,n_positions={K},n_features={d},seed=0"
    env, n = gym.make("ContextualPBMRank-v0", instance=instance), SESSIONS[d]
    seconds_per_session(env, name, n, 1)  # compile
    return min(seconds_per_session(env, name, n, seed=seed) for seed in range(REPEATS))


def design_seconds(n_items: int, d: int) -> float:
    fastest = float("inf")
    for seed in range(REPEATS):
        features = np.random.default_rng(seed).normal(size=(n_items, d))
        agent = RecurRank(n_items, K, n_features=d, horizon=10**6, seed=seed)
        start = time.process_time()
        agent.rank({"features": features})
        if seed:  # the first compiles
            fastest = min(fastest, time.process_time() - start)
    return fastest


def main() -> None:
    sessions = [[name, *(f"{session_seconds(name, d) * 1e6:.2f} µs" for d in SESSIONS)] for name in CONTEXTUAL_AGENTS]
    designs = [[f"RecurRank, L = {n}", *(f"{design_seconds(n, d) * 1e3:.2f} ms" for d in SESSIONS)] for n in CANDIDATES]
    header = [f"d = {d}" for d in SESSIONS]
    publish(table([f"session, L = {L}, K = {K}", *header], sessions) + "\n\n" + table(["design", *header], designs))


if __name__ == "__main__":
    main()
