"""Users with a memory beside the cascade model of the same size: a session in the compiled loop,
and steps of streams.

Measured in turns; the ratios are what counts.
"""

from __future__ import annotations

import gymnasium as gym
from report import fastest_sessions, publish, table
from steps import fastest, vector_speed

from clickgym.envs import CascadeModel, load_instance

OURS = "CascadeMDPRank-v0"
AGENTS = ("Random", "CascadeKLUCB", "CascadeVI")
HORIZON = 1_000_000
SIZES = (64, 1024, 65536)
REPEATS = 5


def main() -> None:
    users = load_instance("clickbait").model("CascadeMDP")
    twin = CascadeModel(users.attraction[0], users.n_positions).to_dict()
    envs = {OURS: gym.make(OURS), "CMRank-v0": gym.make("CMRank-v0", instance=twin)}
    runs = {
        (env, name): (envs[env], name, HORIZON)
        for env in envs
        for name in AGENTS
        if env == OURS or name != "CascadeVI"
    }
    times = fastest_sessions(runs, REPEATS)
    rows = []
    for name in AGENTS:
        ours, theirs = times[OURS, name], times.get(("CMRank-v0", name))
        cells = ["", ""] if theirs is None else [f"{theirs * 1e9:.0f} ns", f"{ours / theirs:.1f}"]
        rows.append([f"a session, `{name}`", f"{ours * 1e9:.0f} ns", *cells])
    for size in SIZES:
        streams = [gym.make_vec(OURS, size), gym.make_vec("CMRank-v0", size, instance=twin)]
        ours, theirs = fastest(vector_speed, streams, 4)
        rows.append(
            [
                f"sessions a second, {size} streams",
                f"{ours:,.0f}",
                f"{theirs:,.0f}",
                f"{ours / theirs:.2f}",
            ]
        )
    publish(table(["", OURS, "CMRank-v0", "ratio"], rows))


if __name__ == "__main__":
    main()
