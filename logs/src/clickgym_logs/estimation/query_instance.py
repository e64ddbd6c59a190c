"""One query of a log as an instance: its items, its most frequent list, and models of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from clickgym.core.checks import short
from clickgym.envs import ClickModel, Instance

from ..distinct import sorted_distinct
from ..log import ClickLog, frequent_queries

SHOWN = 0.01
"""The share of the sessions of a query that show an item of its instance."""
ORIGIN = "estimated by clickgym from a click log"


def items_of(log: ClickLog, query: str, n_items: int | None) -> list[str]:
    """The labels of the items that a query displayed in most sessions, most first; without a
    number, those in at least `SHOWN` of its sessions, and at least as many as there are positions.

    Raises:
        ValueError: on a query that the log lacks or that has fewer items than positions.
    """
    if not isinstance(query, str) or query not in log.query_labels:
        frequent = ", ".join(frequent_queries(log, 10))
        raise ValueError(
            f"the log has no query {short(query)}; its most frequent ones are {frequent}"
        )
    if n_items is not None and n_items < log.n_positions:
        raise ValueError(f"n_items is {n_items}, but the log has {log.n_positions} positions")
    sessions = log.of_query(query).items
    displays = np.bincount(sessions[sessions >= 0], minlength=len(log.item_labels))
    shown = {log.item_labels[item]: int(displays[item]) for item in np.flatnonzero(displays)}
    if len(shown) < log.n_positions:
        raise ValueError(
            f"the query {query!r} has {len(shown)} items, but the log has {log.n_positions} "
            "positions"
        )
    if n_items is None:
        often = sum(count >= SHOWN * len(sessions) for count in shown.values())
        n_items = max(often, log.n_positions)
    return sorted(shown, key=lambda item: (-shown[item], item))[:n_items]


def query_instance(
    log: ClickLog,
    query: str,
    items: Sequence[str],
    models: Mapping[str, ClickModel],
    origin: str = ORIGIN,
    method: Mapping[str, Any] | None = None,
) -> Instance:
    """The instance of one query.

    Its items are numbered in the order of their labels. So the numbers say nothing about positions
    and clicks; `Instance.labels` tells which item is which. The initial ranking is the most
    frequent list, without documents that are not items. Items that this list lacks follow, most
    displayed first.

    Args:
        log: the log to which the click models were fitted.
        query: its label.
        items: as `items_of` returns them.
        models: over the items in the order of their labels, by the names of their estimators.
        origin: where the log comes from.
        method: what else the instance says of the estimation.
    """
    labels = sorted(items)
    sessions = log.of_query(query).items
    lists, _, counts = sorted_distinct(sessions)
    production = [log.item_labels[item] for item in lists[counts.argmax()].tolist() if item >= 0]
    initial = dict.fromkeys([*filter(set(items).__contains__, production), *items])
    return Instance(
        name=query,
        models={model.kind: model for model in models.values()},
        n_positions=log.n_positions,
        description=f"query {query}, {len(sessions)} sessions, {len(items)} items "
        f"({', '.join(models)})",
        origin=origin,
        initial_ranking=np.array([labels.index(item) for item in initial]),
        estimation={"query": query, "items": labels, "sessions": len(sessions), **(method or {})},
    )
