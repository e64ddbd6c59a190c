"""Time of a session for each agent: in the compiled loop, and through ``env.step``.

The floor is the same loop with the same clicks and an agent that does nothing (`Fixed`).
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import gymnasium as gym
from report import publish, table

import clickgym
from clickgym.agents import AGENTS, CompiledAgent

SAME_ITEMS, CONTEXTUAL = ("PBMRank-v0", "CMRank-v0"), "ContextualPBMRank-v0"
HORIZONS = {"compiled": 100_000, "python": 1_000}
"""The time of a session changes as an agent learns, so times are means over the whole run."""
REPEATS = 2


def agents_that_observe(*keys: str) -> list[str]:
    """The compiled agents that read these keys of an observation beside the clicks."""
    return [
        name
        for name, agent in AGENTS.items()
        if issubclass(agent, CompiledAgent) and agent.observes == keys
    ]


def seconds_per_session(env: gym.Env, name: str, n_sessions: int, engine: str) -> float:
    agent = clickgym.make_agent(name, env, horizon=10**6, seed=0)
    start = time.process_time()
    clickgym.run(agent, env, n_sessions, seed=0, checkpoints=[n_sessions], engine=engine)
    return (time.process_time() - start) / n_sessions


def fastest(env_id: str, agents: Iterable[str]) -> dict[tuple[str, str], float]:
    """Seconds of a session by agent and engine, measured in turns after all have compiled."""
    env = gym.make(env_id)
    runs = [(name, engine) for name in agents for engine in HORIZONS]
    for name, engine in runs:
        seconds_per_session(env, name, 1, engine)
    rounds = [
        [seconds_per_session(env, name, HORIZONS[engine], engine) for name, engine in runs]
        for _ in range(REPEATS)
    ]
    return dict(zip(runs, map(min, zip(*rounds, strict=True)), strict=True))


def main() -> None:
    agents = agents_that_observe()
    times = {env_id: fastest(env_id, agents) for env_id in SAME_ITEMS}
    rows = []
    for name in agents:
        cells = []
        for env_id in SAME_ITEMS:
            compiled, floor = times[env_id][name, "compiled"], times[env_id]["Fixed", "compiled"]
            cells += [f"{compiled * 1e9:,.0f} ns", f"{compiled / floor:.1f}"]
        rows.append([name, *cells, f"{times['PBMRank-v0'][name, 'python'] * 1e6:.0f} µs"])
    header = [column for env_id in SAME_ITEMS for column in (env_id, "of Fixed")]
    tables = [table(["agent", *header, "`env.step`"], rows)]
    contextual_agents = agents_that_observe("features")
    contextual = fastest(CONTEXTUAL, contextual_agents)
    rows = [
        [
            name,
            f"{contextual[name, 'compiled'] * 1e9:,.0f} ns",
            f"{contextual[name, 'python'] * 1e6:.0f} µs",
        ]
        for name in contextual_agents
    ]
    tables.append(table(["agent", CONTEXTUAL, "`env.step`"], rows))
    publish("\n\n".join(tables))


if __name__ == "__main__":
    main()
