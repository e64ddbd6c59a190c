"""Logs of a production ranking, from which agents learn before their first session."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from clickgym.envs import sessions

EXCHANGED = 0.2
"""The share of the sessions of a log in which two items have exchanged their places."""


class Log(NamedTuple):
    """A log of sessions from which an agent learns."""

    rankings: NDArray[np.int64]  # (n, K)
    clicks: NDArray[np.int8]  # (n, K)


def log_of_production(
    users: Any, production: ArrayLike, n: int, seed: Any, exchanged: float = EXCHANGED
) -> Log:
    """Make a log of the production ranking.

    Args:
        users: a click model.
        production: all items in the order of production.
        n: how many sessions.
        seed: of the exchanges and of the clicks.
        exchanged: in what share of the sessions two items, drawn at random among all, have
            exchanged their places.
    """
    rng = np.random.default_rng(seed)
    lists = np.tile(production, (n, 1))
    n_items = lists.shape[1]
    rows = np.flatnonzero(rng.random(n) < exchanged)
    first = rng.integers(n_items, size=len(rows))
    second = (first + rng.integers(1, n_items, size=len(rows))) % n_items
    lists[rows, first], lists[rows, second] = lists[rows, second], lists[rows, first]
    return log_of_lists(users, lists, rng)


def log_of_lists(users: Any, lists: NDArray[np.int64], rng: np.random.Generator) -> Log:
    """Make a log of the beginnings of ``(n, L)`` orders of all items."""
    n, n_positions = len(lists), users.n_positions
    rankings = np.ascontiguousarray(lists[:, :n_positions])
    clicks, examined, earned = (
        np.empty(rankings.shape, np.int8),
        np.empty(rankings.shape, np.int8),
        np.empty((3, n)),
    )
    uniforms, scratch = rng.random((n, users.n_uniforms)), np.empty(n_positions + 1)
    sessions(users)(
        users.parameters, 0, n_positions, scratch, rankings, uniforms, clicks, examined, *earned
    )
    return Log(rankings, clicks)
