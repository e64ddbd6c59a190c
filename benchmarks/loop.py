"""Time of a session for each agent: in the compiled loop, and through ``env.step``.

The floor is the same loop, drawing the same clicks, with an agent that does nothing (`Fixed`).
"""

from __future__ import annotations

import time

import gymnasium as gym
from report import publish, table

import clickgym
from clickgym.agents import AGENTS, CONTEXTUAL_AGENTS

PLACES = {"PBMRank-v0": AGENTS, "CMRank-v0": AGENTS, "ContextualPBMRank-v0": CONTEXTUAL_AGENTS}
HORIZONS = {"compiled": 100_000, "python": 1_000}
"""What a session costs changes as an agent learns: times are means over the whole run."""
REPEATS = 2


def seconds_per_session(env: gym.Env, name: str, n_sessions: int, engine: str) -> float:
    agent = clickgym.make_agent(name, env, horizon=10**6, seed=0)
    start = time.process_time()
    clickgym.run(agent, env, n_sessions, seed=0, checkpoints=[n_sessions], engine=engine)
    return (time.process_time() - start) / n_sessions


def fastest(env_id: str) -> dict[tuple[str, str], float]:
    """Seconds of a session by agent and engine, measured in turns after all have compiled."""
    env = gym.make(env_id)
    runs = [(name, engine) for name in PLACES[env_id] for engine in HORIZONS]
    for name, engine in runs:
        seconds_per_session(env, name, 1, engine)
    rounds = [
        [seconds_per_session(env, name, HORIZONS[engine], engine) for name, engine in runs]
        for _ in range(REPEATS)
    ]
    return dict(zip(runs, map(min, zip(*rounds, strict=True)), strict=True))


def main() -> None:
    rows = []
    for env_id, agents in PLACES.items():
        times = fastest(env_id)
        floor = times.get(("Fixed", "compiled"))
        for name in agents:
            compiled, python = times[name, "compiled"], times[name, "python"]
            multiple = f"{compiled / floor:.1f}" if floor else ""
            cells = [f"{compiled * 1e9:,.0f} ns", multiple, f"{python * 1e6:.0f} µs"]
            rows.append([name, env_id, *cells])
    publish(table(["agent", "environment", "compiled", "of Fixed", "`env.step`"], rows))


if __name__ == "__main__":
    main()
