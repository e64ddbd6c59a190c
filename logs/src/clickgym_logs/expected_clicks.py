"""Clicks over expected clicks: the order of items that a search team computes from its log."""

from __future__ import annotations

import numpy as np

from clickgym.core.checks import check_at_least, check_kind

from .log import BLOCKS, ClickLog

RECENT = 200
"""Items are shown lately if they are in one of the last 200 sessions of the query, or of its last
twentieth if that is longer.
"""
LEAST_DISPLAYS = 30
"""Items with fewer displays come below all others."""


def clicks_over_expected(log: ClickLog, *, prior: float = 10.0) -> dict[str, tuple[str, ...]]:
    """Rank the items of each query by clicks over expected clicks.

    An item is expected to get, at each display, the click rate of its position over all sessions of
    the log. Its ratio is ``(clicks + prior m) / (expected clicks + prior)``, with m the median of
    the query's items without ``prior``. An item in fewer than 30 sessions comes after all others.
    Items that were not shown lately, in the last 200 sessions of the query or in its last
    twentieth, are left out.

    Args:
        log: the sessions; without times, the last ones of the file are the latest.
        prior: how many expected clicks the median counts; 0 takes the plain ratio.

    Returns:
        By label of each query the labels of its items, the best first. A list of K positions is the
        first K of them.

    Raises:
        ValueError: on a negative prior.

    Source: Zhang, Jones, *Comparing click logs and editorial labels for training query rewriting*,
        Query log analysis workshop, WWW 2007 (clicks over expected clicks).

    Example:
        >>> lists, clicks = [[0, 1], [1, 0]] * 50, [[0, 1], [1, 0]] * 50
        >>> log = ClickLog(lists, clicks, [0] * 100, ("a", "b"), ("q",))
        >>> clicks_over_expected(log)
        {'q': ('b', 'a')}
    """
    check_kind("log", log, ClickLog, "a ClickLog")
    prior = check_at_least("prior", prior, 0.0)
    shown = log.items >= 0
    rates = log.clicks.sum(axis=0) / np.maximum(shown.sum(axis=0), 1)
    n_items, rankings = len(log.item_labels), {}
    for label in log.query_labels:
        part = log.of_query(label)
        items = part.items[part.items >= 0]
        expected = np.broadcast_to(rates, part.items.shape)[part.items >= 0]
        displays, total, clicks = (
            np.bincount(items, weights, n_items)
            for weights in (None, expected, part.clicks[part.items >= 0])
        )
        latest = part.items[part.order[-max(RECENT, len(part) // BLOCKS) :]]
        found = np.unique(latest[latest >= 0])
        if not len(found):
            continue
        plain = clicks[found] / np.maximum(total[found], 1e-9)
        ratio = (clicks[found] + prior * np.median(plain)) / np.maximum(total[found] + prior, 1e-9)
        order = np.lexsort((-ratio, displays[found] < LEAST_DISPLAYS))
        rankings[label] = tuple(log.item_labels[item] for item in found[order])
    return rankings
