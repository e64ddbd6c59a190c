"""Compare agents with users whose taste changes in sessions that you choose.

python examples/users_who_change.py

You can chain any click models that have the same numbers of items and positions.
docs/environments.md lists the changing users that clickgym ships.
"""

import clickgym
from clickgym.envs import CascadeModel, PiecewiseStationaryModel

SUMMER = [0.8, 0.7, 0.1, 0.1, 0.2, 0.1, 0.3, 0.1]  # the attractions of eight items
WINTER = [0.1, 0.1, 0.7, 0.8, 0.2, 0.6, 0.3, 0.1]

if __name__ == "__main__":
    summer, winter = (CascadeModel(attraction, n_positions=3) for attraction in (SUMMER, WINTER))
    users = {
        "they stay": summer,
        "they change": PiecewiseStationaryModel([summer, winter, summer], [0, 5_000, 12_000]),
    }
    agents = ["CascadeKLUCB", "CascadeDUCB", "CascadeSWUCB", "GLRCascadeKLUCB", "Random"]
    results = clickgym.sweep(users, agents, horizon=20_000, runs=5)
    print(results)
    results.plot("changes.png", log=False)
    print("\nchanges.png has the figure: dashed lines are where the users change")
