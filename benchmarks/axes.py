"""Time of a session whose clicks come late, from bots, or on items that come and go, as a multiple of one without."""

from __future__ import annotations

import gymnasium as gym
from report import fastest_sessions, publish, table

AXES = {
    "batch": {"arrival": "batch:1000"},
    "delay": {"arrival": "delay:100"},
    "random delay": {"arrival": "delay:geometric:500"},
    "bots": {"bots": "farm:share=0.01"},
    "churn": {"churn": 1e-4},
    "7 of 10 available": {"available": 7},
}
AGENTS = ("CascadeKLUCB", "CascadeUCB1", "CascadeTS", "TopRank", "PBMUCB")
HORIZON = 1_000_000
REPEATS = 5


def main() -> None:
    envs = {axis: gym.make("CMRank-v0", **values) for axis, values in ({"without": {}} | AXES).items()}
    rows = []
    for name in AGENTS:
        seconds = fastest_sessions({axis: (env, name, HORIZON) for axis, env in envs.items()}, REPEATS)
        floor = seconds["without"]
        rows.append([name, f"{floor * 1e9:.0f} ns", *(f"{seconds[axis] / floor:.1f}×" for axis in AXES)])
    publish(table(["agent, `CMRank-v0`", "without", *AXES], rows))


if __name__ == "__main__":
    main()
