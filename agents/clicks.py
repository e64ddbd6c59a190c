"""Clicks in kernels: 0 or 1 for each position, and -1 from the position on where a list ended."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.checks import as_array, short


def checked_clicks(clicks: ArrayLike, n_positions: int, cut_off: bool) -> NDArray[np.int8]:
    """Return the checked clicks of a session.

    Args:
        clicks: ``(K,)`` 0 or 1 for each position; -1 from the first one on that was not shown.
        n_positions: K.
        cut_off: whether a list may end before its last position.

    Raises:
        ValueError: on anything else.
    """
    array = clicks if type(clicks) is np.ndarray else as_array("clicks", clicks)
    values = array.tolist()
    if array.shape != (n_positions,) or not (
        set(values) <= {0, 1} or (cut_off and _are_of_prefix(values))
    ):
        raise ValueError(
            f"clicks are {clicks!r}; expected 0 or 1 for each of the {n_positions} positions"
            + (", or -1 from the first one that was not shown to the last" if cut_off else "")
        )
    return array.astype(np.int8)


def _are_of_prefix(clicks: list[int]) -> bool:
    """Whether clicks are 0 or 1 down to a position, and -1 below it."""
    return set(clicks[: len(clicks) - clicks.count(-1)]) <= {0, 1}


def sessions_of_log(
    log: Any, n_items: int | None, n_positions: int
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Return the lists and clicks ``(n, K)`` of a log; a list has a 0 without meaning where nothing
    was shown.

    Args:
        log: as for `CompiledAgent.learn`.
        n_items: L; None if ids have no bound.
        n_positions: K.

    Raises:
        TypeError: on what is no log.
        ValueError: on an impossible session; the message names the first one.
    """
    if not (hasattr(log, "rankings") and hasattr(log, "clicks")):
        raise TypeError(
            f"log is {short(log)}; expected an object with rankings and clicks, as a ClickLog"
        )
    rankings, clicks = as_array("rankings", log.rankings), as_array("clicks", log.clicks)
    if rankings.ndim != 2 or rankings.shape != clicks.shape or rankings.shape[1] > n_positions:
        raise ValueError(
            f"the log has rankings {rankings.shape} and clicks {clicks.shape}; expected both to be (sessions, positions), with "
            f"at most {n_positions} positions"
        )
    mask = (clicks >= 0) & (rankings >= 0)
    most = np.inf if n_items is None else n_items - 1
    ids = np.sort(
        np.where(mask, rankings, -1 - np.arange(rankings.shape[1])), axis=1
    )  # those below the end are distinct
    for faults, why in (
        (~np.isin(clicks, (-1, 0, 1)), "has clicks other than 0, 1 and -1"),
        (mask[:, 1:] > mask[:, :-1], "has a position shown below one that was not"),
        ((rankings < -1) | (rankings > most), f"shows an item outside of 0..{most}"),
        (ids[:, 1:] == ids[:, :-1], "shows an item twice"),
    ):
        rows = np.flatnonzero(faults.any(axis=1))
        if len(rows):
            raise ValueError(
                f"session {rows[0]} of the log {why}: {rankings[rows[0]]}, clicks {clicks[rows[0]]}"
            )
    lists = np.zeros((len(rankings), n_positions), np.int64)
    seen = np.full(lists.shape, -1, np.int8)
    columns = rankings.shape[1]
    lists[:, :columns] = np.where(mask, rankings, 0)
    seen[:, :columns] = np.where(mask, clicks, -1)
    return lists, seen
