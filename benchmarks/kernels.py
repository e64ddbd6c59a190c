"""Processor time to compile an agent with an environment, with an empty and a filled cache folder.

Each measurement is a process of its own: the call of `clickgym.run`, without imports.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from report import publish, table

from clickgym.agents import AGENTS, CompiledAgent

SHOWN = ("Random", "TopRank", "BatchRank", "CascadeKLUCB", "PBMTS", "PBMHB")

CALL = """
import sys, time
import gymnasium as gym
import clickgym
pairs = [(name, gym.make(env_id)) for env_id in sys.argv[1:2] for name in sys.argv[2:]]
agents = [clickgym.make_agent(name, env, horizon=1000, seed=0) for name, env in pairs]
start = time.process_time()
for agent, (_, env) in zip(agents, pairs):
    clickgym.run(agent, env, 1, seed=0, engine="compiled")
print(time.process_time() - start)
"""


def seconds(cache: str, env_id: str, *agents: str) -> str:
    environment = os.environ | {"XDG_CACHE_HOME": cache}
    command = [sys.executable, "-c", CALL, env_id, *agents]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return f"{float(done.stdout):.2f} s"


def main() -> None:
    rows = []
    for name in SHOWN:
        with tempfile.TemporaryDirectory() as cache:
            empty, filled = (seconds(cache, "PBMRank-v0", name) for _ in range(2))
            second = seconds(cache, "CMRank-v0", name)
        rows.append([name, empty, filled, second])
    with tempfile.TemporaryDirectory() as cache:
        agents = [
            name
            for name, agent in AGENTS.items()
            if issubclass(agent, CompiledAgent) and not agent.observes
        ]
        empty, filled = (seconds(cache, "PBMRank-v0", *agents) for _ in range(2))
    rows.append([f"all {len(agents)} in one process", empty, filled, ""])
    header = ["agent", "PBMRank-v0, empty cache", "filled cache", "then CMRank-v0"]
    publish(table(header, rows))


if __name__ == "__main__":
    main()
