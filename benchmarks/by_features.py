"""Time of a session of every agent that ranks by features, as the number of features grows.

Sessions are those of the position-based model with the same candidates in every session, in the compiled engine.
"""

from __future__ import annotations

import gymnasium as gym
from report import publish, seconds_per_session, table

from clickgym.agents import CONTEXTUAL_AGENTS

L, K = 20, 5
SESSIONS = {10: 20_000, 25: 5_000, 50: 2_000, 100: 1_000}
"""Of each agent, by the number of features."""
REPEATS = 5


def session_seconds(name: str, d: int) -> float:
    instance = f"linear:n_items={L},n_pool={L},n_users=1,n_positions={K},n_features={d},seed=0"
    env, n = gym.make("ContextualPBMRank-v0", instance=instance), SESSIONS[d]
    seconds_per_session(env, name, n, 1)  # compile
    return min(seconds_per_session(env, name, n, seed=seed) for seed in range(REPEATS))


def main() -> None:
    sessions = [[name, *(f"{session_seconds(name, d) * 1e6:.2f} µs" for d in SESSIONS)] for name in CONTEXTUAL_AGENTS]
    publish(table([f"session, L = {L}, K = {K}", *(f"d = {d}" for d in SESSIONS)], sessions))


if __name__ == "__main__":
    main()
