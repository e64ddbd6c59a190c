"""Time of a session whose clicks come late, from bots, or on items that come and go, as a multiple of one without."""

from __future__ import annotations

import gymnasium as gym
from report import publish, seconds_per_session, table

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
        seconds: dict[str, list[float]] = {axis: [] for axis in envs}
        for repeat in range(1 + REPEATS):
            for axis, env in envs.items():
                spent = seconds_per_session(env, name, HORIZON, HORIZON if repeat else 1)
                if repeat:  # before, it compiles
                    seconds[axis].append(spent)
        floor = min(seconds["without"])
        rows.append([name, f"{floor * 1e9:.0f} ns", *(f"{min(seconds[axis]) / floor:.1f}×" for axis in AXES)])
    publish(table(["agent, `CMRank-v0`", "without", *AXES], rows))


if __name__ == "__main__":
    main()
