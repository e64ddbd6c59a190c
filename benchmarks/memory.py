"""Peak memory of a run at two horizons, each in a process of its own.

This process stays small on purpose: on Linux a child's peak begins at that of its parent.
"""

from __future__ import annotations

from report import printed, publish, table

AGENTS = ("BatchRank", "TopRank", "CascadeKLUCB")
HORIZONS = (10**5, 10**7)
CALL = """
import resource, sys
import gymnasium as gym
import clickgym
env = gym.make("PBMRank-v0")
agent = clickgym.make_agent(sys.argv[1], env, horizon=int(sys.argv[2]), seed=0)
clickgym.run(agent, env, 1, seed=0)  # compiles, or loads what is compiled
clickgym.run(agent, env, int(sys.argv[2]), seed=0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_megabytes(agent: str, horizon: int) -> float:
    return int(printed(CALL, agent, horizon)) / 1024


def main() -> None:
    for agent in AGENTS:  # fill the disk cache: compiling takes memory, too
        peak_megabytes(agent, HORIZONS[0])
    rows = [
        [agent, *(f"{peak_megabytes(agent, horizon):.1f} MB" for horizon in HORIZONS)]
        for agent in AGENTS
    ]
    publish(table(["agent in PBMRank-v0", *(f"T = {horizon:,}" for horizon in HORIZONS)], rows))


if __name__ == "__main__":
    main()
