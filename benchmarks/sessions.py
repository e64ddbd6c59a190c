"""Time of a session for every (click model, agent) pair: compiled, as a multiple of the floor, and
through ``env.step``.

The floor is the same loop, drawing the same clicks, with an agent that does nothing (`Fixed`).
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from report import fastest_sessions, publish, side_by_side

from clickgym.agents import AGENTS
from clickgym.envs import ENVIRONMENTS

# Where the click model changes with time, it is one of these five at any moment.
STATIONARY = [env_id for env_id in ENVIRONMENTS if not env_id.startswith("NonStationary")]
HORIZON = 1_000_000  # what a session costs changes as an agent learns: this is the mean over the whole run
HORIZON_PYTHON = 2_000
REPEATS = 5


def main() -> None:
    columns: dict[str, dict[str, str]] = {}
    for env_id in STATIONARY:
        env = gym.make(env_id)
        sizes: dict[str, tuple[Any, ...]] = {
            "auto": (None, "auto"),
            "python": (HORIZON_PYTHON, "python"),
        }
        runs = {
            (engine, name): (env, name, HORIZON, *size)
            for name in AGENTS
            for engine, size in sizes.items()
        }
        fastest = fastest_sessions(runs, REPEATS)
        floor = fastest["auto", "Fixed"]
        columns[env_id] = {}
        for name in AGENTS:
            compiled, python = fastest["auto", name], fastest["python", name]
            columns[env_id][name] = (
                f"{compiled * 1e9:.0f} ns {compiled / floor:4.1f}× {python * 1e6:3.0f} µs"
            )
    publish(side_by_side("agent", columns))


if __name__ == "__main__":
    main()
