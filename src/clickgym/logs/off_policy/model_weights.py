"""Weights of logged clicks by a click model: expected examinations of an item under the target over
those in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.kernels import entry
from ...envs import ClickModel, UserBrowsingModel
from ..distinct import sorted_distinct
from ..estimation.counting import last_clicks_above
from ..estimation.em import quietly_fitted
from ..estimation.estimator import MODEL_ESTIMATORS, Estimator
from ..log import ClickLog
from .policies import Integers, Policy, check_query, given_length
from .weights import INFINITE, Contributions, Floats, Sessions, check_items

MODEL_BASED = {name.lower(): estimator for name, estimator in MODEL_ESTIMATORS.items()}
"""The click-model estimators of a policy's value, and what fits the click model of each."""


def model_weights(
    sessions: Sessions, estimator: str, model: ClickModel | Estimator | None, counted: bool
) -> Contributions:
    """The contributions by the weights ``X_Φ(a) / X_π(a)`` of a click model.

    Every logged click tells of an item's attraction; the cutoff only enters X_Φ.

    Args:
        sessions: all of a log, with a logging policy.
        estimator, model: as in `contributions`.
        counted: whether X_π is that of the log's own lists; then the UBM is that of He et al. 2020.
    """
    assert sessions.logging is not None
    kind, log = MODEL_BASED[estimator].model_class, sessions.log
    if model is None:
        model = quietly_fitted(MODEL_BASED[estimator], log)
    check_items(sessions, sessions.logging)
    lists, clicks = sessions.lists, log.clicks[sessions.rows]
    # the model's items are numbered in this order
    items = np.union1d(sessions.logging.items, lists[lists >= 0])
    users = _users_of(model, log, items)
    if not isinstance(users, kind):
        raise ValueError(
            f"model is a {type(users).__name__}; the estimator {estimator!r} takes a "
            f"{kind.__name__}"
        )
    if users.n_positions != log.n_positions:
        raise ValueError(
            f"the click model has {users.n_positions} positions; the log has {log.n_positions}"
        )
    index, reached = places(items, lists), (lists >= 0).mean(axis=0)
    if counted and isinstance(users, UserBrowsingModel):
        # Clicks tell only the products with attractions, and a fit has any factor. With the largest
        # examination 1, no attraction is above 1 without need.
        examination = users.examination
        if isinstance(model, Estimator):
            examination = examination / examination.max()
        context = np.arange(log.n_positions), last_clicks_above(clicks)
        examined = examination[context] * (lists >= 0)
        weighed = _sums(index, examined, len(items))
        clicked = _sums(index, clicks, len(items))
        attraction = np.divide(clicked, weighed, out=np.zeros(len(items)), where=weighed > 0).clip(
            max=1.0
        )
        users, logged = UserBrowsingModel(attraction, examination), weighed / len(lists)
    else:
        examined = _examinations(users, index)
        logged = _examinations_of_items(users, sessions.logging, items, reached)
    target = _examinations_of_items(users, sessions.target, items, reached, sessions.cutoff)
    infinite = np.flatnonzero((target > 0) & (logged <= 0))
    if len(infinite):
        raise ValueError(f"{sessions.name(items[infinite[0]])}: {INFINITE}")
    weights = np.divide(target, logged, out=np.zeros(len(items)), where=logged > 0)[index]
    weighted = (weights * examined).sum(axis=1, keepdims=True)
    return Contributions(
        (weights * clicks).sum(axis=1, keepdims=True),
        weighted / (target.sum() or 1.0),
        float(weights[examined > 0].max(initial=0.0)),
    )


def clicks_of(log: ClickLog, target: Policy, cutoff: int | None) -> Callable[[Estimator], Floats]:
    """The expected clicks on each item of a policy, ``(1, n)``, as a function of a click model that
    is fitted to a log of one query.
    """
    reached = (log.items >= 0).mean(axis=0)

    def clicks(model: Estimator) -> Floats:
        users = _users_of(model, log, target.items)
        examined = _examinations_of_items(users, target, target.items, reached, cutoff)
        return (users.attraction * examined)[None]

    return clicks


def _users_of(source: ClickModel | Estimator, log: ClickLog, items: Integers) -> ClickModel:
    """The click model of a log's query in which item i is ``items[i]``."""
    if isinstance(source, Estimator):
        labels = [log.item_labels[item] for item in items.tolist()]
        try:
            return source.click_model(check_query(log), labels)
        except KeyError as error:
            raise ValueError(
                f"the click model was not fitted to the query and item {error}"
            ) from None
    if items[-1] >= source.n_items:
        raise ValueError(
            f"the click model has {source.n_items} items; log or policy show item {items[-1]} "
            "(counted from 0)"
        )
    return source.with_items(
        **{name: getattr(source.parameters, name)[items] for name in source.item_parameters()}
    )


def places(items: Integers, lists: NDArray[np.integer]) -> Integers:
    """The places of lists' items among ``items``; -1 below the end of a list."""
    return np.where(lists >= 0, np.searchsorted(items, lists), -1)


def _examinations(users: ClickModel, lists: Integers) -> Floats:
    """``(N, K)`` probabilities that each position of each list is examined; 0 below its end."""
    distinct, index, _ = sorted_distinct(lists)
    examined, (clicked, scratch) = np.zeros(distinct.shape), np.empty((2, distinct.shape[1] + 1))
    marginals = entry(users.marginals_kernel)
    # The kernel itself, for these lists need no check: it takes most of the time of
    # `examination_probabilities`.
    for ranking, row, n in zip(distinct, examined, (distinct >= 0).sum(axis=1), strict=True):
        marginals(users.parameters, ranking[:n], row[:n], clicked[:n], scratch)
    return examined[index]


def _examinations_of_items(
    users: ClickModel,
    policy: Policy,
    items: Integers,
    reached: Floats,
    cutoff: int | None = None,
) -> Floats:
    """X: the expected number of examinations of each item per list under a policy,
    ``(len(items),)``.

    Each position counts by the share ``reached`` of the lists that have it; those below the cutoff
    do not count.
    """
    weights = users.position_weights()
    if weights is not None:  # only here is it enough to know how often an item is at each position
        result = np.zeros(len(items))
        result[np.searchsorted(items, policy.items)] = (
            policy.item_positions[:, :cutoff] @ (weights * reached)[:cutoff]
        )
        return result
    lists, probabilities = policy.support()
    index = places(items, lists)
    examined = given_length(lists, probabilities) * _examinations(users, index) * reached
    return _sums(index[:, :cutoff], examined[:, :cutoff], len(items))


def _sums(index: Integers, weights: NDArray[Any], size: int) -> Floats:
    """The sum of the weights that fall on each index; on -1 fall none."""
    return np.bincount(index.ravel() + 1, weights.ravel(), size + 1)[1:].astype(
        np.float64, copy=False
    )
