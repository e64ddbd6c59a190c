"""Which click models satisfy the assumptions of BatchRank.

Zoghi et al. 2017, section 3.4, assumptions 3 to 6.

The regret bounds of BatchRank hold where χ(R, k), the probability that position k of the list R is
examined, satisfies four assumptions. Where one of them fails, regret that grows without end
contradicts no theorem. The paper shows that the CM and the PBM satisfy all of them. This program
tries all lists of a click model:

    python examples/papers/zoghi2017_assumptions.py
    python examples/papers/zoghi2017_assumptions.py --envs UBMRank-v0 --instance uniform

Assumption 3 is about one user who is shown two lists. A click model does not say whether it is the
same user, so we test what follows from it: equal probabilities.
"""

from __future__ import annotations

import argparse
from itertools import combinations, permutations

import gymnasium as gym
import numpy as np

import clickgym

ENVS = [f"{name}Rank-v0" for name in ("CM", "PBM", "DCM", "UBM", "DBN", "CCM", "TPBM")]
ROUNDING = 1e-12


def gaps(model: clickgym.envs.ClickModel) -> list[float]:
    """By how much the worst list of a click model contradicts the assumptions 3 to 6.

    Args:
        model: a click model of at most some 50,000 lists.
    """
    n_items, n_positions = model.n_items, model.n_positions
    lists = np.array(list(permutations(range(n_items), n_positions)))  # (N, K)
    chi = np.array([model.examination_probabilities(ranking) for ranking in lists])  # (N, K)
    attraction = model.attraction[lists]  # (N, K)
    row = {tuple(ranking): index for index, ranking in enumerate(lists.tolist())}

    order = [0.0]  # 3: the order of the items above does not matter
    for k in range(n_positions):
        alike = np.column_stack([np.sort(lists[:, :k]), lists[:, k]])
        groups, group = np.unique(alike, axis=0, return_inverse=True)
        least, most = np.full(len(groups), np.inf), np.zeros(len(groups))
        np.minimum.at(least, group, chi[:, k])
        np.maximum.at(most, group, chi[:, k])
        order.append(float((most - least).max()))

    # 4: no position is examined more than one above it
    decreasing = float((chi - np.minimum.accumulate(chi, axis=1)).max())

    scaling = [
        0.0
    ]  # 5: a less attractive item above takes the place of a more attractive one below
    for i, j in combinations(range(n_positions), 2):
        exchanged = lists.copy()
        exchanged[:, [i, j]] = lists[:, [j, i]]
        partner = [row[tuple(ranking)] for ranking in exchanged.tolist()]
        gain = chi[partner, j] - chi[:, j]
        scaling.append(float(gain[attraction[:, i] <= attraction[:, j]].max(initial=0.0)))

    # 6: no list is examined less than the best one; there are several where attractions tie
    best = np.sort(model.attraction)[::-1][:n_positions]
    most = chi[(attraction == best).all(axis=1)].max(axis=0)
    optimal = float((most - chi.min(axis=0)).max())

    return [max(order), decreasing, max(scaling), optimal]


def main() -> None:
    """Print a row for each click model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--envs", nargs="+", metavar="ID", default=ENVS)
    parser.add_argument("--instance", metavar="NAME", help="default: the default of each id")
    options = parser.parse_args()
    print(f"{'':21}3 order  4 decreasing  5 scaling  6 optimal")
    for name in options.envs:
        chosen = {"instance": options.instance} if options.instance else {}
        model = gym.make(name, **chosen).unwrapped.model
        cells = ["holds" if gap <= ROUNDING else f"{gap:.2g}" for gap in gaps(model)]
        print(f"{name:19}{cells[0]:>9}{cells[1]:>14}{cells[2]:>11}{cells[3]:>11}")
    print(
        "A number is the largest difference of two probabilities that contradicts the assumption."
    )


if __name__ == "__main__":
    main()
