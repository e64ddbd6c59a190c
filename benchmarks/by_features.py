"""Time of a session of every agent that ranks by features, as the number of features grows.

Sessions are those of the position-based model with the same candidates in every session, in the
compiled engine.
"""

from __future__ import annotations

import gymnasium as gym
from report import fastest_sessions, publish, side_by_side

from clickgym.agents import CONTEXTUAL_AGENTS

L, K = 20, 5
SESSIONS = {10: 20_000, 25: 5_000, 50: 2_000, 100: 1_000}
"""Of each agent, by the number of features."""
REPEATS = 5


def main() -> None:
    columns = {}
    for d, n in SESSIONS.items():
        instance = f"linear:n_items={L},n_pool={L},n_users=1,n_positions={K},n_features={d},seed=0"
        env = gym.make("ContextualPBMRank-v0", instance=instance)
        fastest = fastest_sessions({name: (env, name, n) for name in CONTEXTUAL_AGENTS}, REPEATS)
        columns[f"d = {d}"] = {name: f"{seconds * 1e6:.2f} µs" for name, seconds in fastest.items()}
    publish(side_by_side(f"session, L = {L}, K = {K}", columns))


if __name__ == "__main__":
    main()
