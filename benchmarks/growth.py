"""How the time of a session grows with the numbers of items and positions, in the compiled engine.

The horizons are short, so these are the times of the expensive beginning, when agents still tell items apart.
"""

from __future__ import annotations

import gymnasium as gym
from report import fastest_sessions, publish, side_by_side

from clickgym.agents import AGENTS

SIZES = ((10, 5, 200_000), (100, 10, 50_000), (1000, 10, 10_000))
REPEATS = 2


def main() -> None:
    columns = {}
    for n_items, n_positions, horizon in SIZES:
        env = gym.make("PBMRank-v0", instance=f"yandex-like:n_items={n_items},n_positions={n_positions},seed=0")
        labels = {name: f"Fixed:ranking={[*range(n_positions)]}" if name == "Fixed" else name for name in AGENTS}
        fastest = fastest_sessions({name: (env, label, horizon) for name, label in labels.items()}, REPEATS)
        cells = {name: f"{seconds * 1e6:.2f} µs" for name, seconds in fastest.items()}
        columns[f"L={n_items}, K={n_positions}, T={horizon:,}"] = cells
    publish(side_by_side("agent", columns))


if __name__ == "__main__":
    main()
