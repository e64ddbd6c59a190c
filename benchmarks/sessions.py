"""Time of a session for every (click model, agent) pair: compiled, as a multiple of the floor, and through ``env.step``.

The floor is the same loop, drawing the same clicks, with an agent that does nothing (`Fixed`).
"""

from __future__ import annotations

import gymnasium as gym
from report import publish, seconds_per_session, table

from clickgym.agents import AGENTS
from clickgym.envs import ENVIRONMENTS

# Where the click model changes with time, it is one of these five at any moment.
STATIONARY = [env_id for env_id in ENVIRONMENTS if not env_id.startswith("NonStationary")]
HORIZON = 1_000_000  # what a session costs changes as an agent learns: this is the mean over the whole run
HORIZON_PYTHON = 2_000
REPEATS = 5


def main() -> None:
    cells: dict[str, list[str]] = {name: [] for name in AGENTS}
    for env_id in STATIONARY:
        env = gym.make(env_id)
        for name in AGENTS:  # compile
            seconds_per_session(env, name, HORIZON, 1)
        compiled: dict[str, list[float]] = {name: [] for name in AGENTS}
        python: dict[str, list[float]] = {name: [] for name in AGENTS}
        for _ in range(REPEATS):
            for name in AGENTS:
                compiled[name].append(seconds_per_session(env, name, HORIZON))
                python[name].append(seconds_per_session(env, name, HORIZON, HORIZON_PYTHON, "python"))
        floor = min(compiled["Fixed"])
        for name in AGENTS:
            fastest = min(compiled[name])
            cells[name].append(f"{fastest * 1e9:.0f} ns {fastest / floor:4.1f}× {min(python[name]) * 1e6:3.0f} µs")
    publish(table(["agent", *STATIONARY], [[name, *cells[name]] for name in AGENTS]))


if __name__ == "__main__":
    main()
