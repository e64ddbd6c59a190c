"""Time to compile a pair, with an empty and a filled disk cache, and the start of ``clickgym run``
with a filled one.

Each measurement is a process of its own. Pairs: processor time of the call of `clickgym.run` with a
horizon of one session,
without imports. The command line: from start to end, by the clock, the fastest of three.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from report import printed, publish, table

from clickgym.agents import AGENTS
from clickgym.envs import ENVIRONMENTS

PAIRS = [("PBMRank-v0", agent) for agent in AGENTS if agent != "Fixed"]
PAIRS += [(env_id, "Fixed") for env_id in ENVIRONMENTS if not env_id.startswith("NonStationary")]
CALL = """
import sys, time
import gymnasium as gym
import clickgym
env = gym.make(sys.argv[1])
agent = clickgym.make_agent(sys.argv[2], env, horizon=1000, seed=0)
start = time.process_time()
clickgym.run(agent, env, 1, seed=0, engine="compiled")
print(time.process_time() - start)
"""


def command_seconds(cache: str) -> float:
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "clickgym", "run", "PBMRank-v0", "--agents", "BatchRank"]
        command += ["--horizon", "1000", "--runs", "1", "--out", f"{out}/results"]
        start = time.perf_counter()
        subprocess.run(
            command, env=os.environ | {"XDG_CACHE_HOME": cache}, check=True, capture_output=True
        )
        return time.perf_counter() - start


def main() -> None:
    rows = []
    for env_id, agent in PAIRS:
        with tempfile.TemporaryDirectory() as cache:
            empty, filled = (
                f"{float(printed(CALL, env_id, agent, XDG_CACHE_HOME=cache)):.2f} s"
                for _ in range(2)
            )
        rows.append([f"{agent} in {env_id}", empty, filled])
    with tempfile.TemporaryDirectory() as cache:
        command_seconds(cache)
        command = min(command_seconds(cache) for _ in range(3))
    rows.append(["`clickgym run` of 1000 sessions, whole process", "", f"{command:.2f} s"])
    publish(table(["pair", "empty cache", "filled cache"], rows))


if __name__ == "__main__":
    main()
