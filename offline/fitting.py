"""From a click log to an instance: which estimators there are, held-out sessions, and one query as a ranking problem."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from ..envs import ClickModel, DependentClickModel
from ..envs.checks import check_count
from ..envs.instances import Instance
from .estimation.estimator import ESTIMATORS, Estimator
from .log import ClickLog

__all__ = ["MODELS", "MODELS_PER_QUERY", "hold_out", "query_instance"]

MODELS = {name: estimator.create for name, estimator in ESTIMATORS.items()}
MODELS_PER_QUERY = {
    name: partial(estimator.create, per_query=True) for name, estimator in ESTIMATORS.items() if estimator.offers_per_query
}


def hold_out(log: ClickLog, share: float, seed: int = 0) -> tuple[ClickLog, ClickLog]:
    """Split a log at random.

    Args:
        log: at least two sessions.
        share: of the sessions, how many are held out; at least one is, and at least one is not.
        seed: the same seed gives the same split.

    Returns:
        The sessions to learn from and those held out, both in the order of the log.

    Raises:
        ValueError: on a share that is not in (0, 1), or fewer than two sessions.

    Example:
        >>> log = ClickLog([[0]] * 5, [[1]] * 5, [0] * 5, ("a",), ("q",))
        >>> [len(part) for part in hold_out(log, 0.2)]
        [4, 1]
    """
    if not 0 < share < 1:
        raise ValueError(f"the share of held-out sessions is {share}; expected a number between 0 and 1")
    if len(log) < 2:
        raise ValueError(f"a log of {len(log)} sessions cannot be split")
    size = min(max(round(share * len(log)), 1), len(log) - 1)
    held_out = np.zeros(len(log), bool)
    held_out[np.random.default_rng(seed).choice(len(log), size, replace=False)] = True
    return log[~held_out], log[held_out]


def query_instance(
    log: ClickLog,
    query: str,
    estimators: Mapping[str, Estimator],
    n_items: int = 10,
    *,
    name: str | None = None,
    origin: str = "",
    estimation: Mapping[str, Any] | None = None,
) -> Instance:
    """One query of a log as an instance.

    Its items are the documents that were displayed in most sessions, numbered in the order of their labels, which knows
    nothing of ranks and clicks; ``estimation["items"]`` lists the labels. The initial ranking is the most frequent list
    without the documents that are not items; items that it lacks follow, most displayed first.

    Args:
        log: the log that the estimators were fitted to, or a part of it.
        query: label of the query.
        estimators: by the short names of their models; fitted.
        n_items: L; fewer, if the query has fewer.
        name: of the instance; None takes the label of the query.
        origin: where the log comes from.
        estimation: what else is to be told of the estimation.

    Raises:
        ValueError: on a query that the log lacks or that has fewer items than positions, and on two estimators of one model.
    """
    if query not in log.query_labels:
        frequent = [log.query_labels[index] for index in np.argsort(-np.bincount(log.queries), kind="stable")[:10]]
        raise ValueError(f"the log has no query {query!r}; its most frequent ones are {', '.join(frequent)}")
    if check_count("n_items", n_items) < log.n_positions:
        raise ValueError(f"n_items is {n_items}, but the log has {log.n_positions} positions")
    sessions = log[log.queries == log.query_labels.index(query)]
    displays = np.bincount(sessions.items.ravel(), minlength=len(log.item_labels))
    shown = np.flatnonzero(displays).tolist()
    if len(shown) < log.n_positions:
        raise ValueError(f"the query {query!r} has {len(shown)} items, but the log has {log.n_positions} positions")
    by_displays = sorted(shown, key=lambda item: (-displays[item], log.item_labels[item]))[:n_items]
    items = sorted(by_displays, key=lambda item: log.item_labels[item])
    lists, counts = np.unique(sessions.items, axis=0, return_counts=True)
    most_frequent = lists[counts.argmax()].tolist()
    initial = [item for item in most_frequent if item in items] + [item for item in by_displays if item not in most_frequent]
    labels = [log.item_labels[item] for item in items]
    models: dict[str, ClickModel] = {}
    for estimator in estimators.values():
        model = estimator.click_model(query, labels)
        if isinstance(model, DependentClickModel) and model.n_positions > 1:
            # No log tells whether a user left after a click at the last position: it repeats the position above.
            model = DependentClickModel(model.attraction, [*model.termination[:-1], model.termination[-2]])
        if model.kind in models:
            raise ValueError(f"two estimates of the {model.kind} ({', '.join(estimators)}); an instance holds one of each kind")
        models[model.kind] = model
    return Instance(
        name=query if name is None else name,
        models=models,
        n_positions=log.n_positions,
        description=f"query {query}, {len(sessions)} sessions, {len(items)} items ({', '.join(estimators)})",
        origin=origin,
        initial_ranking=np.array([items.index(item) for item in initial]),
        estimation={"query": query, "items": labels, "sessions": len(sessions), **(estimation or {})},
    )
