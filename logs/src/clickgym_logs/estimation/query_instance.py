"""One query of a log as an instance: its items, its most frequent list, and models of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from clickgym.core.checks import short
from clickgym.envs import Instance

from ..distinct import sorted_distinct
from ..log import ClickLog, frequent_queries

if TYPE_CHECKING:
    from .estimator import Estimator


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
    estimators: Mapping[str, Estimator],
    origin: str = ORIGIN,
    method: Mapping[str, Any] | None = None,
) -> Instance:
    """The instance of one query.

    Its items are numbered in the order of their labels. So the numbers say nothing about positions
    and clicks; `Instance.labels` tells which item is which. The initial ranking is the most
    frequent list, without documents that are not items. Items that this list lacks follow, most
    displayed first.

    Args:
        log: the log that the estimators were fitted to.
        query: its label.
        items: as `items_of` returns them.
        estimators: of different click models, by their names.
        origin: where the log comes from.
        method: what else the instance says of the estimation.
    """
    labels = sorted(items)
    sessions = log.of_query(query).items
    lists, _, counts = sorted_distinct(sessions)
    production = [log.item_labels[item] for item in lists[counts.argmax()].tolist() if item >= 0]
    initial = dict.fromkeys([*filter(set(items).__contains__, production), *items])
    models = [estimator.click_model(query, labels) for estimator in estimators.values()]
    return Instance(
        name=query,
        models={model.kind: model for model in models},
        n_positions=log.n_positions,
        description=f"query {query}, {len(sessions)} sessions, {len(items)} items "
        f"({', '.join(estimators)})",
        origin=origin,
        initial_ranking=np.array([labels.index(item) for item in initial]),
        estimation={"query": query, "items": labels, "sessions": len(sessions), **(method or {})},
    )
