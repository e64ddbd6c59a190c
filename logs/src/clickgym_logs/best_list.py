"""The list that a click model expects most of, for pages of any length."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from clickgym.envs import ClickModel


def best_list(
    users: ClickModel, reward: str = "clicks", cutoff: int | None = None
) -> tuple[NDArray[np.int64], bool]:
    """The best list under a click model, or the best one that a local search finds.

    Where no theorem gives the best list and there are too many lists for an exact search, the
    search starts with the items by attraction, the most attractive at the top. It exchanges two
    items, or an item for one that is not shown, as long as this raises the expected reward.

    Args:
        users: the click model.
        reward, cutoff: what a session earns, as in `ClickModel.expected_reward`.

    Returns:
        ``(K,)`` items, and whether no list is better.

    Raises:
        ValueError: on a reward or a cutoff that the model has not.

    Example:
        >>> from clickgym.envs import UserBrowsingModel
        >>> users = UserBrowsingModel([0.1, 0.5, 0.3], [[0.9, 0.0], [0.5, 0.7]])
        >>> best_list(users)
        (array([1, 2]), True)
    """
    _, counted = users.check_reward(reward, cutoff)
    try:
        return users.optimal_ranking(reward, cutoff), True
    except ValueError:  # the exact search would be too large
        pass
    order = np.argsort(-users.parameters.attraction, kind="stable")
    # All items, the first K of which are shown; exchanges below the cutoff change nothing.
    exchanges = [pair for pair in combinations(range(users.n_items), 2) if pair[0] < counted]
    value, improved = users.expected_reward(order[: users.n_positions], reward, cutoff), True
    while improved:
        improved = False
        for pair in exchanges:
            changed = order.copy()
            changed[[*pair]] = order[[*pair[::-1]]]
            expected = users.expected_reward(changed[: users.n_positions], reward, cutoff)
            if expected > value + 1e-12:
                order, value, improved = changed, expected, True
    return order[: users.n_positions], False


def exact_positions(users: ClickModel) -> int:
    """The most positions of which the best list is known exactly: all, unless a search would take
    too long. Environments of these users require a ``cutoff`` that is no larger, or a reference
    list.

    Example:
        >>> from clickgym.envs import UserBrowsingModel
        >>> exact_positions(UserBrowsingModel([0.5] * 12, [[0.5] * 12] * 12))
        7
    """
    counts = range(users.n_positions, 0, -1)
    exact = [n for n in counts if math.perm(users.n_items, n) <= users.max_search]
    if exact[0] < users.n_positions:
        try:
            users.optimal_ranking()
        except ValueError:
            return exact[0]
    return users.n_positions
