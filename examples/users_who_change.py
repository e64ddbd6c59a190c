"""Users whose taste changes in sessions that you choose: which agents notice?

python examples/users_who_change.py

Any click models of the same size may follow each other. docs/environments.md lists the changes
that clickgym ships.
"""

import clickgym
from clickgym.envs import CascadeModel, PiecewiseStationaryModel

SUMMER = [0.8, 0.7, 0.1, 0.1, 0.2, 0.1, 0.3, 0.1]  # how attractive each of eight items is
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
